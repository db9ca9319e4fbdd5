package conformance

// Transcripts for the law: a log in memory, and what is said in it.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	picture "image/png"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/spaces"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/prompt"
	"github.com/refold/refold/proof/strict/draw"
)

// damage is what a model, a tool or a person wrote, by kind, as public reports
// have it.
func damage(t testing.TB) map[string][]string {
	t.Helper()
	content, err := os.ReadFile("testdata/damage.json")
	must(t, err)
	var all []struct{ Kind, Text, Source string }
	must(t, json.Unmarshal(content, &all))
	kinds := map[string][]string{}
	for _, d := range all {
		if !strings.HasPrefix(d.Source, "https://") {
			t.Errorf("%q has no source", d.Text)
		}
		kinds[d.Kind] = append(kinds[d.Kind], d.Text)
	}
	return kinds
}

// transcript is a session's log, its blobs, and the items of its conversation.
type transcript struct {
	events []session.Event // sequence n at n-1
	blobs  map[codec.Ref][]byte
	items  []session.Item
	asks   []int // numbers of items with which a turn was asked
	tools  []executor.Tool
	masked []executor.Tool // defined, if the turn is masked
	choice string
	format *executor.Format
	gen    session.Generation
	run    int
	turn   int
}

// GoString is short: the request that breaks a rule says more.
func (tr *transcript) GoString() string {
	return fmt.Sprintf("a transcript of %d items, with %d tools", len(tr.items), len(tr.tools))
}

func newTranscript() *transcript {
	return &transcript{blobs: map[codec.Ref][]byte{}, gen: session.Generation{
		Class: session.ClassLLM, Effect: "r1t1", Model: "m-1", Provider: "p", Session: "s1", V: session.Version,
	}}
}

// Events, Blob, Remade and Incarnation implement prompt.Store.
func (tr *transcript) Events(_ context.Context, _ string, seqs []uint64) ([]session.Event, error) {
	events := make([]session.Event, len(seqs))
	for i, seq := range seqs {
		events[i] = tr.events[seq-1]
	}
	return events, nil
}

func (tr *transcript) Blob(_ context.Context, ref codec.Ref) ([]byte, error) {
	if content, ok := tr.blobs[ref]; ok {
		return content, nil
	}
	return nil, natsio.ErrNotFound
}

func (tr *transcript) Remade(context.Context, string, codec.Ref) ([]byte, error) {
	return nil, natsio.ErrNotFound
}

func (tr *transcript) Incarnation() uint64 { return 0 }

// say appends an event, and returns its sequence.
func (tr *transcript) say(t rapid.TB, door session.Door, typ string, body any) uint64 {
	payload, err := session.Envelope{V: session.Version, Type: typ}.With(body)
	if err != nil {
		t.Fatalf("%+v: %v", body, err)
	}
	seq := uint64(len(tr.events) + 1)
	tr.events = append(tr.events, session.Event{Session: "s1", Door: door, Seq: seq, Payload: payload})
	return seq
}

// put stores a blob.
func (tr *transcript) put(media string, content []byte) session.Content {
	ref := codec.RefOf(content)
	tr.blobs[ref] = content
	return session.Content{Blob: &ref, MediaType: media, Size: int64(len(content))}
}

// input adds an input of a user.
func (tr *transcript) input(t rapid.TB, c session.Content) {
	tr.items = append(tr.items, session.Item{Role: session.RoleUser, Seq: tr.say(t, session.DoorIn, session.TypeRunRequested, session.RunRequested{Input: c})})
	tr.asks = append(tr.asks, len(tr.items))
}

// answer adds a turn of the model, and the results of its calls.
func (tr *transcript) answer(t rapid.TB, text string, opaque json.RawMessage, calls []session.ObservedCall, result func(call int, effect string) session.Item) {
	tr.turn++
	effect := fmt.Sprintf("r%dt%d", tr.run+1, tr.turn)
	var sealed codec.Raw
	if opaque != nil {
		var err error
		if sealed, err = codec.FromJSON(opaque); err != nil {
			t.Fatalf("%s: %v", opaque, err)
		}
	}
	said := session.Item{Role: session.RoleAssistant}
	if len(calls) == 0 {
		said.Seq = tr.say(t, session.DoorLLM, session.TypeGenerationSettled, session.GenerationSettled{
			Effect: effect, Status: "ok", Text: &session.Content{Text: text}, Opaque: sealed,
		})
		tr.items = append(tr.items, said)
		return
	}
	said.Seq = tr.say(t, session.DoorLLM, session.TypeToolCallsObserved, session.ToolCallsObserved{
		Effect: effect, Text: &session.Content{Text: text}, Opaque: sealed, Calls: calls,
	})
	tr.items = append(tr.items, said)
	for i := range calls {
		item := result(i, fmt.Sprintf("%sc%d", effect, i))
		if item.Seq == 0 {
			item.Seq = said.Seq
		}
		item.Role, item.Call = session.RoleTool, int16(i)
		tr.items = append(tr.items, item)
	}
	tr.asks = append(tr.asks, len(tr.items))
}

// requests returns the request of every turn that was asked.
func (tr *transcript) requests(t rapid.TB) []executor.Request {
	reader := prompt.New(tr)
	var all []executor.Request
	for _, n := range tr.asks {
		g := tr.gen
		g.Items = session.ListItems(tr.items[:n]...)
		req, fault, err := reader.Request(context.Background(), &g)
		if err != nil || fault != nil {
			t.Fatalf("%d items: %v, %v", n, fault, err)
		}
		req.Tools, req.Defined, req.ToolChoice, req.Format = tr.tools, tr.masked, tr.choice, tr.format
		all = append(all, *req)
	}
	return all
}

// said is an answer that an API gave, with thoughts.
type said struct {
	text   string
	calls  []session.ObservedCall
	opaque json.RawMessage
}

// drawing draws transcripts.
type drawing struct {
	damage  map[string][]string
	said    []said
	schemas []json.RawMessage // of reports, and of published servers
	files   [][]byte          // images, documents and others
	large   []byte            // an image of more than 5 MiB in base64, which takes time to check
}

// newDrawing returns what transcripts are drawn from.
func newDrawing(t *testing.T) *drawing {
	t.Helper()
	d := &drawing{damage: damage(t), said: thoughtful(t)}
	for _, c := range schemaCases(t) {
		d.schemas = append(d.schemas, c.Schema)
	}
	for _, s := range publishedServers(t) {
		for i := range s.Tools {
			d.schemas = append(d.schemas, s.Tools[i].InputSchema)
		}
	}
	for _, name := range []string{
		"dot.png", "dot.jpg", "dot.gif", "moving.gif", "dot.webp", "dot.heic", "dot.heif", "dot.avif", "page.pdf", "README.md",
	} {
		d.files = append(d.files, mediaFile(name))
	}
	for _, side := range []image.Rectangle{image.Rect(0, 0, 40, 30), image.Rect(0, 0, 2001, 1), image.Rect(0, 0, 1, 8001)} {
		var p, g, j bytes.Buffer
		m := image.NewNRGBA(side)
		must(t, errors.Join(picture.Encode(&p, m), gif.Encode(&g, m, nil), jpeg.Encode(&j, m, nil)))
		d.files = append(d.files, p.Bytes(), g.Bytes(), j.Bytes())
	}
	d.large = append(mediaFile("dot.png"), make([]byte, 5<<20/4*3)...)
	return d
}

// file draws a file: whole, or cut, or with some bytes changed.
func (d *drawing) file(t *rapid.T) []byte {
	if rapid.IntRange(0, 999).Draw(t, "large file") == 617 { // no bound, which rapid draws often
		return d.large
	}
	data := rapid.SampledFrom(d.files).Draw(t, "file")
	switch rapid.IntRange(0, 3).Draw(t, "damage") {
	case 0:
		return data[:rapid.IntRange(0, len(data)).Draw(t, "length")]
	case 1:
		data = slices.Clone(data)
		for range rapid.IntRange(1, 3).Draw(t, "changes") {
			at := min(rapid.IntRange(0, 700).Draw(t, "at"), len(data)-1)
			data[at] = rapid.Byte().Draw(t, "byte")
		}
	}
	return data
}

// label draws the label of a file.
func (d *drawing) label(t *rapid.T) string {
	return rapid.SampledFrom([]string{
		"image/png", "image/jpeg", "image/jpg", "image/gif", "image/webp", "image/svg+xml", "image/tiff", "application/pdf", "application/octet-stream", "text/plain", "video/mp4", "",
	}).Draw(t, "label")
}

// offer draws the tools of a session, and which of them may be called.
func (d *drawing) offer(t *rapid.T, tr *transcript) {
	name := rapid.OneOf(
		rapid.SampledFrom([]string{"look", "Look", "get-user", "get_user", "21st", "_x", "-", strings.Repeat("9", 64), strings.Repeat("n", 64)}),
		rapid.StringMatching(`[A-Za-z0-9_-]{1,64}`))
	schema := rapid.OneOf(rapid.SampledFrom(d.schemas), rapid.Custom(draw.Document))
	most := 4
	if rapid.IntRange(0, 19).Draw(t, "many tools") == 7 {
		most = 140
	}
	names := rapid.SliceOfNDistinct(name, 0, most, rapid.ID[string]).Draw(t, "tool names")
	if most > 4 { // more than most APIs take
		for i := len(names); i < most; i++ {
			names = append(names, fmt.Sprintf("more_%d", i))
		}
	}
	for i, n := range names {
		tool := executor.Tool{Name: n, Description: d.text().Draw(t, "description"), Schema: json.RawMessage(`{"type":"object"}`)}
		if i < 4 {
			tool.Schema = schema.Draw(t, "schema")
		}
		tr.tools = append(tr.tools, tool)
	}
	if rapid.IntRange(0, 2).Draw(t, "format") == 0 {
		tr.format = &executor.Format{Name: rapid.SampledFrom([]string{"", "sum"}).Draw(t, "format name"), Schema: schema.Draw(t, "format schema"), Strict: rapid.Bool().Draw(t, "strict")}
	}
	tr.choice = rapid.SampledFrom(append([]string{"", "", "none", "required"}, names...)).Draw(t, "choice")
	if len(names) > 0 && rapid.IntRange(0, 2).Draw(t, "masked") == 0 {
		tr.masked = tr.tools
		tr.tools = slices.Clone(tr.tools[:rapid.IntRange(0, len(names)).Draw(t, "allowed")])
		if len(tr.choice) > 0 && tr.choice != "none" {
			tr.choice = ""
		}
	}
}

// called draws the name of a called tool.
func (d *drawing) called(t *rapid.T, tr *transcript) string {
	names := []string{"look"}
	for i := range tr.tools {
		names = append(names, tr.tools[i].Name)
	}
	return rapid.OneOf(rapid.SampledFrom(names), rapid.SampledFrom(d.damage["name"])).Draw(t, "name")
}

// text draws a text that an event can hold.
func (d *drawing) text() *rapid.Generator[string] {
	return rapid.OneOf(rapid.SampledFrom(d.damage["text"]), rapid.SampledFrom([]string{"hi", "Grüße 🙂"}), rapid.String())
}

// arguments draws the arguments of a call.
func (d *drawing) arguments() *rapid.Generator[string] {
	object := rapid.Custom(func(t *rapid.T) string {
		value := rapid.OneOf(rapid.Just(any("x")), rapid.Just(any(1.5)), rapid.Map(rapid.String(), func(s string) any { return s }))
		key := rapid.OneOf(rapid.SampledFrom(draw.Keys), rapid.String())
		text, err := json.Marshal(rapid.MapOfN(key, value, 0, 3).Draw(t, "object"))
		must(t, err)
		return string(text)
	})
	return rapid.OneOf(
		rapid.SampledFrom(d.damage["arguments"]), object, rapid.String(),
		rapid.Custom(func(t *rapid.T) string { // one that broke off
			text := object.Draw(t, "whole")
			return strings.ToValidUTF8(text[:rapid.IntRange(0, len(text)).Draw(t, "length")], "")
		}),
		rapid.StringMatching(`\{"a":"(\\u[dD][89aBcC][0-9a-f]{2}|\\u0000|\\\\|\\u00e9|x){0,4}"\}`),
		rapid.Map(rapid.IntRange(1, 200), func(n int) string { return `{"a":` + strings.Repeat("[", n) + strings.Repeat("]", n) + "}" }),
	)
}

// content draws an input or an output: text, a blob of any bytes, or parts with
// files.
func (d *drawing) content(t *rapid.T, tr *transcript) session.Content {
	text := session.Content{Text: d.text().Draw(t, "text")}
	switch rapid.IntRange(0, 3).Draw(t, "content") {
	case 0:
		return tr.put("text/plain", rapid.SliceOfN(rapid.Byte(), 1, 12).Draw(t, "bytes"))
	case 1:
		parts := []session.Content{text}
		for range rapid.IntRange(1, 3).Draw(t, "files") {
			c := tr.put(d.label(t), d.file(t))
			c.Name = rapid.SampledFrom([]string{"", "a.png", "b\x00.pdf"}).Draw(t, "file name")
			parts = append(parts, c)
		}
		return session.Content{Parts: parts}
	}
	return text
}

// result draws a call's result.
func (d *drawing) result(t *rapid.T, tr *transcript, effect string) session.Item {
	settled := session.ToolCallSettled{Effect: effect, Status: "succeeded"}
	switch rapid.IntRange(0, 3).Draw(t, "result") {
	case 0:
		return session.Item{Code: "cancelled", Detail: "the run was cancelled"}
	case 1:
		settled.Status, settled.Error = "failed", &session.Fault{Code: "exit_status", Detail: "it\x00failed"}
	case 2:
		output := d.content(t, tr)
		settled.Output = &output
	}
	return session.Item{Seq: tr.say(t, session.DoorTool, session.TypeToolCallSettled, settled)}
}

// transcript draws a session: inputs, turns with calls and results, answers, empty
// ones, and runs that ended before the model answered.
func (d *drawing) transcript() *rapid.Generator[*transcript] {
	return rapid.Custom(func(t *rapid.T) *transcript {
		tr := newTranscript()
		tr.run = rapid.SampledFrom([]int{0, 9, 99_999}).Draw(t, "run")
		tr.gen.System = d.text().Draw(t, "system")
		if rapid.Bool().Draw(t, "example") { // its messages end with the assistant's, and may begin with it
			for i := rapid.IntRange(1, 2).Draw(t, "first"); i <= 2; i++ {
				role := []spaces.PromptRole{spaces.PromptUser, spaces.PromptAssistant}[i-1]
				tr.gen.Prompt = append(tr.gen.Prompt, spaces.PromptPart{Role: role, Ref: tr.put("", []byte(d.text().Draw(t, "example text"))).Blob.Hash})
			}
		}
		if rapid.IntRange(0, 3).Draw(t, "context files") == 0 {
			tr.gen.Prompt = append(tr.gen.Prompt, spaces.PromptPart{
				Role: spaces.PromptImage, MediaType: d.label(t), Names: []string{"c"}, Ref: tr.put("", d.file(t)).Blob.Hash,
			})
		}
		d.offer(t, tr)
		tr.input(t, d.content(t, tr))
		for range rapid.IntRange(0, 6).Draw(t, "steps") {
			result := func(_ int, effect string) session.Item { return d.result(t, tr, effect) }
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0:
				tr.input(t, d.content(t, tr))
			case 1, 2:
				var calls []session.ObservedCall
				for range rapid.IntRange(1, 3).Draw(t, "calls") {
					calls = append(calls, session.ObservedCall{ToolName: d.called(t, tr), Arguments: d.arguments().Draw(t, "arguments"), ProviderCallID: "call_0"})
				}
				tr.answer(t, d.text().Draw(t, "words"), nil, calls, result)
			case 3:
				s := rapid.SampledFrom(d.said).Draw(t, "with thoughts")
				tr.answer(t, s.text, s.opaque, s.calls, result)
			case 4: // the run ends, and the next one begins
				tr.answer(t, d.text().Draw(t, "answer"), nil, nil, nil)
				tr.run, tr.turn = tr.run+1, 0
				tr.input(t, d.content(t, tr))
			}
		}
		return tr
	})
}
