package prompt

// The prompt before the transcript: the order of its parts, filling in templates,
// and parts that are not stored.

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/spaces"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/space"
)

// prompted returns a generation with a prompt, whose parts are stored.
func prompted(t *testing.T, l *fakeLog, parts ...spaces.PromptPart) session.Generation {
	t.Helper()
	user := l.say(t, session.DoorIn, "s1", session.TypeRunRequested, session.RunRequested{Input: session.Content{Text: "hello"}})
	g := generation("r1t1", session.Item{Role: session.RoleUser, Seq: user})
	g.System, g.Prompt = "be careful", parts
	g.Vars = codec.Pairs{{Key: "fact.region", Value: raw(t, `"{{run}}"`)}, {Key: "session", Value: raw(t, `"s1"`)}}
	return g
}

// part stores content and returns a part that names it.
func (l *fakeLog) part(role spaces.PromptRole, content string, names ...string) spaces.PromptPart {
	p := spaces.PromptPart{Ref: l.put(content).Hash, Role: role, Names: names}
	if role == spaces.PromptImage {
		p.MediaType = "image/png"
	}
	return p
}

func TestPromptPrecedesTheTranscript(t *testing.T) {
	t.Parallel()
	l := newLog()
	g := prompted(
		t, l,
		l.part("", "You are {{session}} in {{fact.region}}.\n\n"),
		l.part(spaces.PromptDocument, "# {{session}}\n", `docs/"a".md`),
		l.part("", "{{unknown}} stays, {{{{ too"), // a prompt ref is no template
		l.part("", ""),
		l.part(spaces.PromptImage, "image 1", "a.png"),
		l.part(spaces.PromptImage, "image 2", "b.png"),
		l.part(spaces.PromptUser, "example of {{session}}"),
		l.part(spaces.PromptAssistant, "answer"),
	)
	r := New(l)
	for _, when := range []string{"from the store", "from the cache"} {
		got, fault, err := r.Request(t.Context(), &g)
		if err != nil || fault != nil {
			t.Fatalf("%s: %v, %v", when, fault, err)
		}
		want := "be careful\n\nYou are s1 in {{run}}.\n\n<document path=\"docs/&quot;a&quot;.md\">\n# {{session}}\n</document>\n\n{{unknown}} stays, {{{{ too"
		if got.System != want {
			t.Errorf("%s: got system %q, want %q", when, got.System, want)
		}
		messages := []executor.Message{
			{Role: "user", Text: "example of s1", Parts: []executor.Part{
				{Name: "a.png", MediaType: "image/png", Data: []byte("image 1")}, {Name: "b.png", MediaType: "image/png", Data: []byte("image 2")}, {Text: "example of s1"},
			}},
			{Role: "assistant", Text: "answer"},
			{Role: "user", Text: "hello"},
		}
		if diff := cmp.Diff(messages, got.Messages); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
		l.lose()
	}
}

// A skill that the run's config names has the run's input as its arguments; one
// without placeholders does not repeat it.
func TestSkillsOfAConfigHaveTheInputAsArguments(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Greet $1; all: $ARGUMENTS; $12, $HOME.\n": "Greet hello; all: hello; , $HOME.",
		"Plain.": "Plain.",
		strings.Repeat("$ARGUMENTS", space.SkillFilledBytesMax/4): "",
	} {
		l := newLog()
		skill := l.part(spaces.PromptSkill, text, "greet")
		g := prompted(t, l, skill)
		g.Prompt[0].Input = uint64(g.Items.Seqs[0])
		got, fault, err := New(l).Request(t.Context(), &g)
		switch {
		case want == "" && (fault == nil || fault.Code != "request_too_large"):
			t.Errorf("too long: got %v, %v", fault, err)
		case want == "":
		case fault != nil || err != nil:
			t.Fatal(fault, err)
		case got.System != "be careful\n\n"+space.ShownSkill("greet", want):
			t.Errorf("%.20q: got %q, want %q", text, got.System, want)
		}
	}
}

// The cached message stays unchanged.
func TestImagesGoToTheFirstUserMessage(t *testing.T) {
	t.Parallel()
	l := newLog()
	image := l.part(spaces.PromptImage, "image", "a.png")
	g := prompted(t, l, image)
	r := New(l)
	for range 2 {
		got, fault, err := r.Request(t.Context(), &g)
		if err != nil || fault != nil {
			t.Fatal(fault, err)
		}
		want := []executor.Message{{Role: "user", Text: "hello", Parts: []executor.Part{{Name: "a.png", MediaType: "image/png", Data: []byte("image")}, {Text: "hello"}}}}
		if diff := cmp.Diff(want, got.Messages); diff != "" || got.System != "be careful" {
			t.Errorf("system %q (-want +got):\n%s", got.System, diff)
		}
	}
}

func TestUnreadablePromptIsAFault(t *testing.T) {
	t.Parallel()
	l := newLog()
	large := l.part("", strings.Repeat("x", space.ShownBytesMax/2))
	for name, c := range map[string]struct {
		parts []spaces.PromptPart
		code  string
	}{
		"not stored":   {[]spaces.PromptPart{{Ref: codec.Sum([]byte("gone"))}}, "prompt_missing"},
		"an image":     {[]spaces.PromptPart{{Ref: codec.Sum([]byte("gone")), Role: spaces.PromptImage, Names: []string{"a.png"}}}, "prompt_missing"},
		"too large":    {[]spaces.PromptPart{large, large}, "request_too_large"},
		"a newer role": {[]spaces.PromptPart{l.part("hologram", "x")}, "prompt_missing"},
	} {
		g := prompted(t, l, c.parts...)
		_, fault, err := New(l).Request(t.Context(), &g)
		if err != nil || fault == nil || fault.Code != c.code || fault.Detail == "" {
			t.Errorf("%s: got %v, %v, want %s", name, fault, err, c.code)
		}
	}
	g := prompted(t, l, l.part("", strings.Repeat("x", space.ShownBytesMax-len("be careful"))))
	if _, fault, err := New(l).Request(t.Context(), &g); fault != nil || err != nil {
		t.Errorf("just as large as may be: got %v, %v", fault, err)
	}
}
