package e2e_test

// A test release: under its rules 2 a turn waits otherwise before another attempt, an event
// has one more field, and there is one more event. What rules 1 do stays in a package of
// its own. It is this tree with the edits below, which the go command takes as an overlay.

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
)

// rules2 are the places at which rules 2 differ.
var rules2 = []edit{
	{"actors/session/rules.go", "const RulesVersion = 1\n", "const RulesVersion = 2\n"},
	{"actors/session/turn.go", "s.Clock + r.backoff(failed)", "s.Clock + r.backoff(s.Rules, failed)"},
	{"actors/session/turn.go", "func (r *Retry) backoff(failed uint8) int64 {", "func (r *Retry) backoff(rules, failed uint8) int64 {"},
	{"actors/session/turn.go", `	for range failed {
		wait = min(2*wait, most)
	}
	return min(wait, most)
`, `	if rules == 1 {
		return rules1.Backoff(wait, most, failed)
	}
	return min(wait*int64(1+failed), most)
`},
	{"actors/session/turn.go", "import (\n", "import (\n\t\"github.com/refold/refold/actors/rules1\"\n"},

	// FactsSet can clear all facts first.
	{"actors/session/event.go", "type FactsSet struct {\n", "type FactsSet struct {\n\tClear bool `msgpack:\"clear,omitempty\"`\n"},
	{"actors/session/offer.go", "	facts := slices.Clone(s.Facts)\n	if bad := factsFault(", `	facts := slices.Clone(s.Facts)
	if b.Clear {
		facts = nil
	}
	if bad := factsFault(`},
	{"actors/session/event.go", "	{name: TypeFactsSet, doors: byOperators, eventBody: body((*State).factsSet)},\n", `	{name: TypeFactsSet, doors: byOperators, eventBody: eventBody{newOf[FactsSet], func(s *State, door Door, data codec.Raw) *refusal {
		if s.Rules == 1 {
			return body(func(s *State, b *rules1.FactsSet) *refusal { return s.factsSet(&FactsSet{Facts: b.Facts}) }).fold(s, door, data)
		}
		return body((*State).factsSet).fold(s, door, data)
	}}},
	{name: "FactsCleared", since: 2, doors: byOperators, eventBody: body(func(s *State, _ *struct{}) *refusal {
		s.Facts, s.toolsMoved = nil, true
		return nil
	})},
`},
	{"actors/session/event.go", "import (\n", "import (\n\t\"github.com/refold/refold/actors/rules1\"\n"},

	// Under rules 1 FactsCleared is unknown: through each door, and to an erased session.
	{"actors/session/event.go", "type eventType struct {\n", "type eventType struct {\n\tsince uint8\n"},
	{"actors/session/evolve.go", "env, bad := open(e)", "env, bad := openUnder(e, s.Rules)"},
	{"actors/session/evolve.go", "return typeOfErased(env.Type)", "return typeOfErased(env.Type, s.Rules)"},
	{"actors/session/evolve.go", "func open(e Event) (Envelope, *refusal) {\n", `func open(e Event) (Envelope, *refusal) { return openUnder(e, RulesVersion) }

func openUnder(e Event, rules uint8) (Envelope, *refusal) {
`},
	{"actors/session/evolve.go", "case of == nil:", "case of == nil || of.since > rules:"},
	{"actors/session/erase.go", "func typeOfErased(typ string) string {\n	if eventTypeOf(typ) == nil {", "func typeOfErased(typ string, rules uint8) string {\n	if of := eventTypeOf(typ); of == nil || of.since > rules {"},
}

// overlay writes the edited files, and returns the file that names them for the go command.
func overlay(t *testing.T) string {
	t.Helper()
	replace, err := edited(t.TempDir(), rules2)
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	replace[filepath.Join(root, "actors/rules1/rules1.go")] = filepath.Join(root, "e2e/testdata/rules2/rules1.txt")
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	return writeFile(t, "overlay.json", string(list))
}

func goCommand(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput(); err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, tail(string(out), 4000))
	}
}

// The test release folds what rules 1 are frozen as, event by event.
func TestATestReleaseKeepsRules1(t *testing.T) {
	t.Parallel()
	goCommand(t, "test", "-count=1", "-vet=off", "-overlay", overlay(t), "../actors/session", "-run", "^TestRules1AreFrozen$")
}

// retried is the config of runs whose turn fails at once, and is tried four times: after
// one, two and four seconds under rules 1; after one, two and three under rules 2.
var retried = object{"provider": "scripted", "model": "m", "retry": object{"attempts": 4, "backoff_ms": 1000, "codes": list{"overloaded"}}}

// lastWait waits for the last attempt of a session's run, and returns how long it waited.
func (s *system) lastWait(sid string, run uint32) time.Duration {
	s.t.Helper()
	v := s.view(sid, "the wait before the last attempt", func(v session.View) bool {
		return v.WaitsFor == "retry" && v.Run != nil && v.Run.Number == run && v.Run.Attempt == 3
	})
	return time.Duration(v.Run.RetryAt-v.Clock) * time.Millisecond
}

func factNames(v session.View) (names []string) {
	for _, f := range v.Facts {
		names = append(names, f.Name)
	}
	return names
}

// An operator moves a session to newer rules while others stay: nothing is folded anew,
// an older session-actor leaves the session to others, and nothing is lost.
func TestRulesAreAdopted(t *testing.T) {
	t.Parallel()
	list := overlay(t)
	for name, folder := range map[string]string{"refold-2": "refold", "session-actor-2": "session-actor"} {
		goCommand(t, "build", "-overlay", list, "-o", executable(name), "../cmd/"+folder)
	}
	s := startSystem(t, nil)
	s.failing("overloaded", false)
	adopt := func(program string, args ...string) (string, int) {
		out, errOut, status := run(t, time.Minute, nil, program, append([]string{"adopt", "--nats", s.url}, args...)...)
		return out + errOut, status
	}
	wants := func(text string, status, want int, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if !strings.Contains(text, part) || status != want {
				t.Fatalf("got status %d and\n%s\nwant status %d and %q", status, text, want, part)
			}
		}
	}
	for _, sid := range []string{"moved", "stays"} {
		s.run(session.DoorCtl, sid, "hello?", retried)
		if got := s.lastWait(sid, 1); got != 4*time.Second {
			t.Errorf("%s: under rules 1 the last attempt waits %v, want 4s", sid, got)
		}
		s.wantEnd(sid, 1, session.Failed, "overloaded")
	}

	// This release knows no rules 2, and a release that does protects its session-actor.
	text, status := adopt("refold", "moved", "--rules", "2", "--dry-run")
	wants(text, status, 1, "rules 2, this release knows 1 to 1: upgrade it")
	text, status = adopt("refold-2", "moved")
	wants(text, status, 1, "session-actors would end", "upgrade them first")
	if err := s.actor.drain(time.Minute); err != nil {
		t.Fatal(err)
	}
	newer := startDaemon(t, "session-actor-2", "--nats", s.url)

	// The comparison tells what would have gone otherwise, and nothing is moved for it.
	text, status = adopt("refold-2", "moved", "--dry-run")
	wants(text, status, 0, "would have left something else under rules 2", "GenerationSettled")
	text, status = adopt("refold-2", "moved")
	wants(text, status, 1, "--differing")
	if v := s.view("moved", "its rules", func(session.View) bool { return true }); v.Rules != 1 {
		t.Fatalf("the session follows rules %d before it was moved", v.Rules)
	}
	text, status = adopt("refold-2", "moved", "--differing")
	wants(text, status, 0, "session moved follows rules 2 from ")

	// Another run of each follows the rules of its session.
	for sid, want := range map[string]time.Duration{"moved": 3 * time.Second, "stays": 4 * time.Second} {
		s.run(session.DoorCtl, sid, "hello again?", retried)
		if got := s.lastWait(sid, 2); got != want {
			t.Errorf("%s: the last attempt waits %v, want %v", sid, got, want)
		}
		s.wantEnd(sid, 2, session.Failed, "overloaded")
	}

	// So do its events: rules 1 have no FactsCleared, and a FactsSet without clear.
	for sid, want := range map[string][2][]string{"moved": {{"c"}, nil}, "stays": {{"a"}, {"a"}}} {
		s.say(session.DoorCtl, sid, session.TypeFactsSet, object{"facts": object{"a": "b"}})
		set := s.say(session.DoorCtl, sid, session.TypeFactsSet, object{"clear": true, "facts": object{"c": "d"}})
		if got := factNames(s.at(sid, set)); !slices.Equal(got, want[0]) {
			t.Errorf("%s: after a FactsSet with clear the facts are %q, want %q", sid, got, want[0])
		}
		cleared := s.say(session.DoorCtl, sid, "FactsCleared", object{})
		if got := factNames(s.at(sid, cleared)); !slices.Equal(got, want[1]) {
			t.Errorf("%s: after a FactsCleared the facts are %q, want %q", sid, got, want[1])
		}
	}

	// A session-actor of this release folds no event of it, and says what to do.
	if err := newer.drain(time.Minute); err != nil {
		t.Fatal(err)
	}
	older := &daemon{t: t, name: "session-actor", args: []string{"--nats", s.url}, out: &output{}}
	older.begin()
	s.run(session.DoorCtl, "moved", "and now?", retried)
	ended := make(chan error, 1)
	process := older.cmd
	go func() { ended <- process.Wait() }()
	select {
	case err := <-ended:
		older.cmd = nil
		if err == nil || !strings.Contains(older.out.String(), "rules 2, this release knows 1 to 1: upgrade it") {
			t.Errorf("the session-actor of this release ended with %v and\n%s", err, tail(older.out.String(), 2000))
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("the session-actor of this release folds a session of rules 2")
	}
	startDaemon(t, "session-actor-2", "--nats", s.url)
	s.wantEnd("moved", 3, session.Failed, "overloaded")

	// All of it folds to the same bytes again.
	out, errOut, status := run(t, time.Minute, nil, "refold-2", "verify", "--nats", s.url, "--all")
	if status != 0 {
		t.Errorf("verify: status %d\n%s%s", status, out, errOut)
	}
	text, errOut, status = run(t, time.Minute, nil, "refold", "replay", "--nats", s.url, "moved", "--verify")
	wants(text+errOut, status, 1, "rules 2, this release knows 1 to 1: upgrade it")
}
