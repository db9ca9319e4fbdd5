//go:build peers

package conformance

// Plays the recordings to our clients from a local server.

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/llm"
	"github.com/refold/refold/internal/llm/endpoint"
	"github.com/refold/refold/internal/llm/openai"
)

// dialect is how an API's recordings are read.
type dialect struct {
	api   string
	urls  *regexp.Regexp // its group is the model, where that is in no body
	told  func(body []byte) (told, error)
	heard func(body string, stream bool) (heard, error)
	whole bool // our client can ask for answers that are no streams
}

func dialects() []dialect {
	return []dialect{
		{"openai-chat", regexp.MustCompile(`/chat/completions$()`), toldChat, heardChat, true},
		{"openai", regexp.MustCompile(`/responses$()`), toldResponses, heardResponses, true},
		{"anthropic", regexp.MustCompile(`/v1/messages()(?:\?beta=true)?$|/publishers/anthropic/models/([^/:]+):(?:streamR|r)awPredict$`), toldAnthropic, heardAnthropic, false},
		{"gemini", regexp.MustCompile(`/models/([^/:]+):(?:streamG|g)enerateContent(?:\?alt=sse)?$`), toldGemini, heardGemini, false},
	}
}

// dialectOf returns how an exchange is read; nil: it is of an API that Refold
// does not speak.
func dialectOf(x exchange) *dialect {
	for _, d := range dialects() {
		if d.urls.MatchString(x.url) {
			return &d
		}
	}
	return nil
}

// model is which model was asked.
func (d *dialect) model(x exchange) string {
	var in struct{ Model string }
	_ = json.Unmarshal(x.sent, &in)
	return in.Model + strings.Join(d.urls.FindStringSubmatch(x.url)[1:], "")
}

// stream reports whether an answer came in events.
func (x exchange) stream() bool { return strings.HasPrefix(x.media, "text/event-stream") }

// open makes our client of an API.
func (d *dialect) open(t *testing.T, base string, whole bool) executor.Model {
	t.Helper()
	c := endpoint.Config{BaseURL: base, Key: key}
	log := slog.New(slog.DiscardHandler)
	m, err := apiOf(t, d.api).open(c, log)
	if whole {
		c.BaseURL += "/v1"
		m, err = openai.New(openai.Config{Config: c, Chat: d.api == "openai-chat", Whole: true}, log)
	}
	must(t, err)
	return m
}

// raw is an answer as it goes over the wire.
func (x exchange) raw() string {
	return "HTTP/1.1 200 OK\r\nContent-Type: " + x.media + "\r\nConnection: close\r\n\r\n" + x.answer
}

// playable reports whether all of a recording can be played: it is of one API
// that Refold speaks, and its answers come as our client asks for them.
func (r recording) playable() (*dialect, string) {
	d := dialectOf(r.turns[0])
	if d == nil {
		return nil, "Bedrock's API, which Refold does not speak"
	}
	if !r.turns[0].stream() && !d.whole {
		return nil, d.api + ", whole: our client asks for streams alone"
	}
	return d, ""
}

func TestRecordingsPlayed(t *testing.T) {
	t.Parallel()
	counts := map[string]int{}
	for _, r := range recordings(t) {
		d, why := r.playable()
		if d == nil {
			counts["not played: "+why] += len(r.turns)
			continue
		}
		name := d.api
		if !r.turns[0].stream() {
			name += ", whole"
		}
		played, foreign := r.play(t, d)
		counts[name] += played
		counts["not compared: pieces and tools that a provider runs by itself, which Refold does not offer"] += foreign
	}
	floors := map[string]int{
		"openai-chat": 157, "openai-chat, whole": 151, "openai": 39, "openai, whole": 39, "anthropic": 28, "gemini": 42,
		"not played: anthropic, whole: our client asks for streams alone": 27, "not played: gemini, whole: our client asks for streams alone": 42,
		"not played: Bedrock's API, which Refold does not speak":                                     20,
		"not compared: pieces and tools that a provider runs by itself, which Refold does not offer": 16,
	}
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%4d: %s", counts[name], name)
	}
	if !reflect.DeepEqual(counts, floors) {
		t.Errorf("played %v, want %v", counts, floors)
	}
}

// wordsLost are the requests in which who recorded them left out words that the
// model had said, and ours has them: goesBack compares those with the answer.
var wordsLost = map[string]struct{}{
	"TestAnthropicComputerUse/claude-sonnet-4/computer_use_streaming.yaml, 1": {},
	"TestOpenAICompatibleCommon/avian-kimi/multi_tool_streaming.yaml, 1":      {},
}

// play plays a recording, and returns how many answers it has, and how many
// pieces of it are foreign.
func (r recording) play(t *testing.T, d *dialect) (played, foreign int) {
	t.Helper()
	raws := make([]string, 0, len(r.turns)+1)
	for _, x := range r.turns {
		raws = append(raws, x.raw())
	}
	p := &soFar{server: serve(t, append(raws, raws[len(raws)-1])...)}
	m := d.open(t, p.server.url, !r.turns[0].stream())
	var all []heard
	var req executor.Request
	for i, x := range r.turns {
		of := fmt.Sprintf("%s, %d", r.file, i)
		in, err := d.told(x.sent)
		if err != nil {
			t.Fatalf("%s: the recorded request: %v", of, err)
		}
		if req, err = p.request(d.model(x), in); err != nil {
			t.Fatalf("%s: %v", of, err)
		}
		said, err := d.heard(x.answer, x.stream())
		if err != nil {
			t.Fatalf("%s: the recorded answer: %v", of, err)
		}
		var pieces []string
		answer, err := m.Generate(t.Context(), req, func(text string) { pieces = append(pieces, text) })
		if err != nil {
			t.Fatalf("%s: %v", of, err)
		}
		foreign += in.foreign + said.foreign
		said.hold(t, of, d, answer, pieces, x.stream())
		d.sent(t, of, p.server.got()[i], x, in, all)
		p.answers, all = append(p.answers, answer), append(all, said)
	}
	last := all[len(all)-1]
	if _, err := m.Generate(t.Context(), p.again(req, last), func(string) {}); err != nil {
		t.Fatalf("%s, once more: %v", r.file, err)
	}
	body := p.server.got()[len(r.turns)].body
	d.check(t, r.file+", once more", body)
	out, err := d.told(body)
	if err != nil {
		t.Fatalf("%s, once more: %v", r.file, err)
	}
	goesBack(t, r.file+", once more", out, all)
	return len(r.turns), foreign
}

// hold compares an answer that our client made with what was heard.
func (h heard) hold(t *testing.T, of string, d *dialect, got executor.Answer, pieces []string, stream bool) {
	t.Helper()
	if got.Text != h.text || strings.Join(pieces, "") != h.text {
		t.Errorf("%s: got %q, streamed %q, want %q", of, got.Text, pieces, h.text)
	}
	if stream && len(h.text) > 200 && len(pieces) < 2 {
		t.Errorf("%s: %d bytes came in %d pieces", of, len(h.text), len(pieces))
	}
	calls := slices.Clone(got.Calls)
	for i := range calls {
		if d.api == "gemini" { // whose arguments are no text
			calls[i].Arguments = argued(calls[i].Arguments)
		}
	}
	if !slices.Equal(calls, h.calls) {
		t.Errorf("%s: called %+v, want %+v", of, calls, h.calls)
	}
	if got.FinishReason != h.finish || got.Model != h.model || got.Usage != h.usage {
		t.Errorf("%s: ended by %s of %s for %+v, want %s of %s for %+v", of, got.FinishReason, got.Model, got.Usage, h.finish, h.model, h.usage)
	}
	if u := got.Usage; u.InputTokens == 0 || u.OutputTokens == 0 || u.CachedTokens > u.InputTokens || u.ReasoningTokens > u.OutputTokens {
		t.Errorf("%s: a usage that can't be: %+v", of, u)
	}
}

// check holds a body of ours against the API's rules.
func (d *dialect) check(t *testing.T, of string, body []byte) {
	t.Helper()
	if err := apiOf(t, d.api).check(body); err != nil {
		t.Errorf("%s: what we sent: %v\n%.2000s", of, err, body)
	}
}

// sent compares a request of ours with the recorded one, which the provider
// took.
func (d *dialect) sent(t *testing.T, of string, got request, x exchange, in told, all []heard) {
	t.Helper()
	d.check(t, of, got.body)
	out, err := d.told(got.body)
	if err != nil {
		t.Fatalf("%s: what we sent: %v", of, err)
	}
	if u, err := url.Parse(got.path); err != nil || d.api == "gemini" && !strings.Contains(u.Path, "/"+d.model(x)+":") {
		t.Errorf("%s: asked %s", of, got.path)
	}
	want, said := plain(in.entries), plain(out.entries)
	for i := range want {
		if want[i].Kind == "call" || want[i].Who == "tool" {
			want[i].ID = llm.CallID(want[i].ID)
		}
	}
	if _, ok := wordsLost[of]; ok {
		if slices.Equal(said, want) {
			t.Errorf("%s: the recorded request has all words: it needs no exemption", of)
		}
		words := func(e entry) bool { return e.Who == "model" && e.Kind == "text" }
		want, said = slices.DeleteFunc(want, words), slices.DeleteFunc(said, words)
	}
	if !slices.Equal(said, want) {
		t.Errorf("%s: sent\n%+v\nwant\n%+v", of, said, want)
	}
	if !slices.Equal(out.tools, in.tools) || out.choice != in.choice || !reflect.DeepEqual(out.format, in.format) {
		t.Errorf("%s: sent %+v %s %+v\nwant %+v %s %+v", of, out.tools, out.choice, out.format, in.tools, in.choice, in.format)
	}
	for name, value := range in.rest {
		if canon(out.rest[name]) != canon(value) {
			t.Errorf("%s: sent %s %s, want %s", of, name, out.rest[name], value)
		}
	}
	goesBack(t, of, out, all)
	carries(t, of, out.entries, in.entries)
}

// plain is a conversation without what only its provider can read.
func plain(all []entry) []entry {
	out := slices.DeleteFunc(slices.Clone(all), func(e entry) bool { return e.Kind == "item" })
	for i := range out {
		out[i].Mark = ""
	}
	return merged(out)
}

// goesBack compares the turns of the model in a request of ours with what was
// heard: all of it goes back, in its order, but for a thought of which nothing
// came, and blank words.
func goesBack(t *testing.T, of string, out told, all []heard) {
	t.Helper()
	var got, want []entry
	for _, e := range out.entries {
		if e.Who == "model" {
			e.ID = "" // ours, or the server's
			got = append(got, e)
		}
	}
	for _, h := range all {
		said := slices.Clone(h.entries)
		for len(said) > 0 && said[len(said)-1].Kind == "item" {
			said = said[:len(said)-1]
		}
		for _, e := range said {
			if e.ID = ""; e.Kind == "call" {
				e.Value = argued(e.Value)
			}
			want = append(want, e)
		}
	}
	if got, want = merged(got), merged(want); !slices.Equal(got, want) {
		t.Errorf("%s: sent back\n%+v\nwant\n%+v", of, got, want)
	}
}

// carries reports what a recorded request carried of the provider's own, and
// ours does not.
func carries(t *testing.T, of string, ours, recorded []entry) {
	t.Helper()
	own := func(all []entry) (words, verbatim []string) {
		for _, e := range all {
			if e.Kind == "item" {
				w, v := leaves(e.Value)
				words, verbatim = append(words, w...), append(verbatim, v...)
			}
			if e.Mark != "" {
				verbatim = append(verbatim, e.Mark)
			}
		}
		return words, verbatim
	}
	words, verbatim := own(ours)
	moreWords, moreVerbatim := own(recorded)
	for _, v := range moreVerbatim {
		if !slices.Contains(verbatim, v) {
			t.Errorf("%s: the recorded request has %.60q…, ours has not", of, v)
		}
	}
	for _, w := range moreWords {
		if !slices.ContainsFunc(words, func(mine string) bool { return strings.Contains(mine, w) }) {
			t.Errorf("%s: the recorded request has the thought %.60q…, ours has not", of, w)
		}
	}
}
