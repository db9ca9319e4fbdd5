//go:build peers

package web_test

// What: texts of clients, models and tools are shown as texts: nothing runs, no request
// leaves, the policy has nothing to refuse, and the layout holds (UI-10).
//
// How: one test sends each of 600 texts through a session, as a client, a model and a tool
// do. The other one writes them into each field of the server's answers that one of these
// fills, also where a limit keeps them out today: all of them into each field, and then
// each field with one of its own. A page that asks anybody, or that its policy refuses
// something, has a fault, which fails its test.

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/refold/refold"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/browser"
	"github.com/refold/refold/internal/inside"
	"github.com/refold/refold/refoldtest"
	"github.com/refold/refold/web"
)

// hostile are at least 600 texts that pages of others have carried out, or been broken by:
// each kernel in each frame, and some alone, the last of which has a megabyte.
var hostile = func() (all []string) {
	kernels := []string{
		`<script>window.hit = 1</script>`, `<img src=x onerror="window.hit = 1">`, `<svg onload="window.hit = 1">`, `<iframe src="javascript:parent.hit=1"></iframe>`,
		`javascript:window.hit=1`, `data:text/html,<script>parent.hit=1</script>`, `{{constructor.constructor("window.hit=1")()}}`, `${window.hit=1}`,
		`<svg><animate onbegin=window.hit=1 attributeName=x></svg>`, `<details open ontoggle=window.hit=1>`, `<math><mtext><style><img src=x onerror=window.hit=1></style></mtext></math>`,
		`<base href="http://127.0.0.1:1/">`, `<meta http-equiv="refresh" content="0;url=http://127.0.0.1:1/">`, `<link rel=stylesheet href=http://127.0.0.1:1/x.css>`,
		`<form action=http://127.0.0.1:1/><input autofocus onfocus=window.hit=1>`, `<object data="javascript:window.hit=1"></object>`, `<a href="javascript:window.hit=1">x</a>`, `![x](http://127.0.0.1:1/leak)`,
		"\u202egnp.exe\u202c", "\u2066hidden\u2069", "a\u200bb\u00adc\ufeff", "\x1b[31mred\x1b[0m\x07", "\u2028\u2029", "\U000e0041\U000e0042", "\u0000null", "__proto__", `%s%n&#x3c;`,
	}
	frames := []string{
		"%s", `"%s"`, `'%s'`, "`%s`", `">%s`, `'>%s`, "-->%s<!--", "</script>%s", "</style>%s", "</textarea>%s", "</title>%s", "<![CDATA[%s]]>", "```\">%s\n```", "[x](%s)", "<b>%s", "\\%s",
		"%s\u202e", "\u001b]8;;%s\u0007", "//%s", "\t%s\r\n", "&lt;%s&gt;", "<noscript>%s", "<!--%s",
	}
	for _, frame := range frames {
		for _, kernel := range kernels {
			all = append(all, strings.Replace(frame, "%s", kernel, 1))
		}
	}
	return append(all, strings.Repeat("W", 20_000), strings.Repeat("\u0301", 500), strings.Repeat("W", 1<<20))
}()

// short are those of them that are not large.
var short = hostile[:len(hostile)-3]

// holds reports what is wrong with a page that shows hostile texts.
func holds(t *testing.T, p *browser.Page, path string) {
	t.Helper()
	browser.Value[bool](p, `(document.querySelectorAll("details").forEach((d) => { d.open = true; }), new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true)))))`)
	if browser.Value[bool](p, `window.hit !== undefined || ({}).polluted !== undefined || document.querySelector("main script, main img, main iframe, main object, main base, main style, main link, main meta, main math, main a[href^='javascript']") !== null`) {
		t.Errorf("%s: a text became more than text", path)
	}
	text := p.Text()
	if at := strings.IndexAny(text, "\u0000\u0007\u202e\u2066\u200b\x1b\u2028\U000e0041"); at >= 0 {
		t.Errorf("%s shows a character that can't be seen, in %q", path, text[max(0, at-80):min(len(text), at+80)])
	}
	if wide := browser.Value[string](p, `document.documentElement.scrollWidth <= innerWidth ? "" : [...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".tabs, .table-wrap, .strip, .clip, pre, .groups")).map((e) => e.outerHTML.slice(0, 120)).slice(0, 6).join("\n") || "it"`); wide != "" {
		t.Errorf("%s scrolls sideways: %s", path, wide)
	}
}

// UI-10, through a session: each text is an argument of a model's call, the result of a
// tool, and a part of an input and of a model's text.
func TestPageShowsHostileTextsAsTexts(t *testing.T) {
	t.Parallel()
	if len(hostile) < 600 {
		t.Fatalf("%d texts, want at least 600", len(hostile))
	}
	echo := refold.Func("docs.search", func(_ context.Context, in search) (string, error) { return in.Query, nil }, refold.RetrySafe())
	var turns []refoldtest.Turn
	for part := range slices.Chunk(hostile, 60) { // a batch has at most 64 calls
		var calls []executor.AnswerCall
		for _, text := range part {
			calls = append(calls, refoldtest.To("docs_search", search{text[:min(len(text), 20_000)]}))
		}
		turns = append(turns, refoldtest.Calls(calls...))
	}
	turns = append(turns, refoldtest.Say(strings.Join(hostile, "\n")[:200_000]))
	w := serve(t, web.Options{}, refold.Tools(echo), refold.Model(refoldtest.Model(turns...)))
	input, err := json.Marshal(strings.Join(short, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	w.want(http.StatusOK, nil, "all", "POST", "/v1/sessions/s/runs", `{"agent": "helper", "input": `+string(input)+`}`, "Prefer", "wait=110")
	value := hostile[0]
	if _, err := inside.Of(w.rt).Client().SetFacts(w.ctx, "s", map[string]*string{"x": &value}, ""); err != nil {
		t.Fatal(err)
	}
	var list web.EventList
	w.want(http.StatusOK, &list, "all", "GET", "/v1/sessions/s/events", "")
	if n := list.Total; n < len(hostile) {
		t.Errorf("the session has %d events, want a result of each of %d texts", n, len(hostile))
	}
	p := browser.Open(t, phone)
	for _, path := range []string{"/", "/s/s", "/s/s?tab=events", "/s/s?tab=state&part=record", "/s/s?tab=timeline", "/s/s?tab=tools", "/s/s?tab=effects", "/?name=" + url.QueryEscape(hostile[1])} {
		p.Do(chromedp.Navigate("about:blank"), chromedp.Navigate(w.url+path+"#token=all"))
		ready(p)
		holds(t, p, path)
		for path == "/s/s" && browser.Value[bool](p, `document.querySelector("#earlier")?.disabled === false`) { // a long conversation has parts
			press(p, "#earlier")
			holds(t, p, path)
		}
	}
}

// absent are fields that the session of the test does not have by itself, by the path of
// the answer. They are put into its objects, and into each object of its lists.
var absent = map[string]string{
	`^/v1/sessions$`:  `{"sessions": [{"text": "x", "provider": "x", "model": "x"}]}`,
	`^/v1/approvals$`: `{"approvals": [{"code": "x", "detail": "x", "parents": [{"session": "s", "call": "x"}], "pack": {"manifest": "x", "name": "x", "signer": "x", "texts": {"a.md": "x"}}}]}`,
	`^/v1/questions$`: `{"questions": [{"session": "s", "call": "q", "run": 1, "tool": "x", "tool_id": "x", "by": "clients", "arguments": "x", "args_hash": "x"}]}`,
	`^/v1/fleet$`: `{"bridges": [{"name": "x", "version": "x", "troubles": [{"target": "x", "code": "x", "detail": "x"}]}], "session_actors": [{"not_ready": ["x"], "work": {"version": "x"}}],
		"targets": [{"lacks": ["x"]}], "installs": [{"unserved": ["x"]}]}`,
	`^/v1/system$`:        `{"quarantines": [{"session": "s", "seq": 1, "reason": "x"}], "timers": {"unknown": "x"}, "streams": [{"leader": "x"}]}`,
	`^/v1/sessions/s$`:    `{"troubles": [{"target": "x", "code": "x", "detail": "x"}], "unserved": ["x"], "quarantined": {"seq": 1, "reason": "x"}}`,
	`^/v1/.*/state$`:      `{"view": {"waits_for": "model", "profile": "x", "parent": {"session": "s", "call": "x"}, "children": [{"session": "s", "call": "x", "state": "x"}], "facts": [{"name": "x", "value": "x"}]}}`,
	`^/v1/.*/batch$`:      `{"text": "x", "calls": [{"code": "x", "detail": "x", "asked_by": "x", "key": "x", "access": "read"}]}`,
	`^/v1/.*/effects$`:    `{"unknown": "x", "effects": [{"holder": "x"}]}`,
	`^/v1/.*/tools$`:      `{"tools": [{"why": "x", "description": "x", "schema": {"title": "x"}}], "decided": {"profile": "x", "profile_why": "x", "step": {"from": "x"}}}`,
	`^/v1/.*/events$`:     `{"events": [{"by": "x", "line": "x"}]}`,
	`^/v1/.*/events/\d+$`: `{"by": "x", "id": "x", "rejected": "bad_payload", "detail": "x", "line": "x", "data": {"x": "x"}, "said": [{"type": "SessionChanged", "data": {"x": "x"}}], "changes": [{"path": "x", "old": "x", "new": "x"}]}`,
	`^/v1/.*/diff$`:       `{"changes": [{"path": "x", "old": "x", "new": "x"}]}`,
	`^/v1/.*/transcript$`: `[{"kind": "failed", "seq": 1, "turn": "r1t1", "code": "x", "detail": "x"}, {"kind": "rejected", "seq": 1, "status": "x", "code": "x", "detail": "x"}, {"kind": "paused", "seq": 1, "code": "x", "detail": "x"},
		{"kind": "window", "seq": 1, "detail": "x"}, {"kind": "end", "seq": 1, "run": 1, "status": "completed", "code": "x", "detail": "x"}, {"kind": "steer", "seq": 1, "text": "x"}, {"kind": "repair", "seq": 1, "text": "x"},
		{"kind": "run", "seq": 1, "run": 1, "model": "x"}, {"kind": "text", "seq": 1, "turn": "r1t1", "text": "x", "finish_reason": "x"}, {"kind": "call", "seq": 1, "turn": "r1t1", "call": "k", "tool": "x", "arguments": "x"},
		{"kind": "decided", "seq": 1, "call": "k", "status": "approve", "by": "x", "detail": "x", "arguments": "x"}, {"kind": "result", "seq": 1, "call": "k", "status": "failed", "code": "x", "detail": "x", "text": "x"}]`,
}

// merged puts what an answer lacks into it.
func merged(into, from any) any {
	switch from := from.(type) {
	case map[string]any:
		to, _ := into.(map[string]any)
		if to == nil {
			to = map[string]any{}
		}
		for name, value := range from {
			to[name] = merged(to[name], value)
		}
		return to
	case []any:
		to, _ := into.([]any)
		if len(from) == 1 && len(to) > 0 {
			for i := range to {
				to[i] = merged(to[i], from[0])
			}
			return to
		}
		return append(to, from...)
	}
	return from
}

// ours are names and codes that nobody fills: the fold and the server make them.
var (
	oursByName = regexp.MustCompile(`^(session|hash|chain|leaf|\w*_hash|toolset|registry|install|effect|turn|call|batch|state|status|lifecycle|waits_for|kind|class|door|instance|durability|executor|stored|base|access|approval|next|position|notices|opened|names|places|withdrawn|owner|when_busy|rejected)$`)
	oursByForm = regexp.MustCompile(`^(r\d+[a-z\d]*|w\d+|[0-9a-f]{32,64}|[0-9A-Z]{26})$`)
)

// filler writes hostile texts into answers.
type filler struct {
	mu     sync.Mutex
	text   func() string
	filled map[string]bool // by the path of the answer and the names of the fields
}

func (f *filler) fill(at string, value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name, v := range value {
			theirs := at == "timeline" && name == "names" || at == "transcript" && name == "status" && value["kind"] == "rejected" // a client's type of an event
			_, isObject := v.(map[string]any)
			list, _ := v.([]any)
			if len(list) > 0 {
				_, isObject = list[0].(map[string]any)
			}
			if theirs || isObject || !oursByName.MatchString(name) {
				value[name] = f.fill(at+"."+name, v)
			}
		}
	case []any:
		for i, v := range value {
			value[i] = f.fill(at, v)
		}
	case string:
		if !oursByForm.MatchString(value) {
			f.filled[at] = true
			return f.text()
		}
	}
	return value
}

// serve answers as a server does, with texts of the filler's.
func (f *filler) serve(rw http.ResponseWriter, r *http.Request, server http.Handler) {
	switch path := r.URL.Path; {
	case path == "/v1/sessions/s/updates":
		f.mu.Lock()
		text, _ := json.Marshal(web.Update{Type: "text", Run: 1, Turn: 1, Delta: f.text()})
		f.mu.Unlock()
		rw.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(rw, "id: 1-0\ndata: %s\n\n", text)
		_ = http.NewResponseController(rw).Flush()
		<-r.Context().Done()
	case !strings.HasPrefix(path, "/v1/") || strings.HasSuffix(path, "/live") || path == "/v1/caller":
		server.ServeHTTP(rw, r)
	default:
		got := httptest.NewRecorder()
		server.ServeHTTP(got, r)
		var answer any
		d := json.NewDecoder(got.Body)
		d.UseNumber()
		if got.Code != http.StatusOK || d.Decode(&answer) != nil {
			rw.WriteHeader(got.Code)
			return
		}
		for form, more := range absent {
			if regexp.MustCompile(form).MatchString(path) {
				var from any
				_ = json.Unmarshal([]byte(more), &from) // what is no JSON fills no field, which the test says
				answer = merged(answer, from)
			}
		}
		f.mu.Lock()
		answer = f.fill(regexp.MustCompile(`^/v1/(sessions/s/)?`).ReplaceAllString(regexp.MustCompile(`/\d+`).ReplaceAllString(path, "/n"), ""), answer)
		f.mu.Unlock()
		rw.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(rw).Encode(answer)
	}
}

// fields are those that a client, a model or a tool fills, and an operator, a bridge or a
// server of NATS beside them.
var fields = []string{
	"sessions.sessions.text", "sessions.sessions.model", "approvals.approvals.arguments", "approvals.approvals.tool", "approvals.approvals.code", "approvals.approvals.detail", "approvals.approvals.pack.name", "approvals.approvals.pack.signer", "approvals.approvals.pack.texts.a.md",
	"questions.questions.arguments", "questions.questions.tool", "transcript.text", "transcript.tool", "transcript.arguments", "transcript.code", "transcript.detail", "transcript.by", "transcript.finish_reason", "transcript.model", "transcript.status",
	"events.events.type", "events.events.by", "events.events.line", "events/n.by", "events/n.id", "events/n.type", "events/n.data.x", "events/n.detail", "events/n.said.data.x", "events/n.changes.path", "events/n.changes.old", "events/n.changes.new",
	"state.view.facts.name", "state.view.facts.value", "state.view.profile", "state.view.schedules.name", "state.view.schedules.cron", "state.view.run.model", "state.view.batch.calls.tool_name",
	"state.record", "diff.changes.path", "tools.tools.tool_name", "tools.tools.description", "tools.tools.why", "tools.tools.schema.title", "tools.decided.profile", "tools.decided.profile_why", "tools.decided.step.from",
	"batch.text", "batch.calls.tool", "batch.calls.code", "batch.calls.detail", "batch.calls.asked_by", "batch.calls.key", "effects.effects.target", "effects.unknown", "timeline.names",
	"sessions/s.troubles.target", "sessions/s.troubles.code", "sessions/s.troubles.detail", "sessions/s.unserved", "sessions/s.quarantined.reason", "fleet.bridges.name", "fleet.bridges.version", "fleet.bridges.targets", "fleet.bridges.troubles.detail",
	"fleet.session_actors.not_ready", "fleet.targets.lacks", "fleet.installs.unserved", "system.quarantines.reason", "system.timers.unknown", "system.streams.name", "system.nats",
}

// UI-10, in each field.
func TestPagesShowHostileFieldsAsTexts(t *testing.T) {
	t.Parallel()
	w, _ := waiting(t, func(string) {})
	w.want(http.StatusOK, nil, "all", "PUT", "/v1/sessions/s/schedules/daily", `{"cron": "0 8 * * *", "input": "hi"}`)
	var list web.EventList
	w.want(http.StatusOK, &list, "all", "GET", "/v1/sessions/s/events", "")
	server := web.Handler(w.rt, web.Options{Auth: auth, Limits: web.Limits{PerSecond: 1_000_000}})
	p := browser.Open(t, phone)
	next := 0
	for name, text := range map[string]func() string{
		"all of them": func() string { return strings.Join(short, "\n") },
		"one of them": func() string { next++; return hostile[next%len(hostile)] },
	} {
		f := &filler{text: text, filled: map[string]bool{}}
		url := newServer(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { f.serve(rw, r, server) }))
		for _, path := range []string{
			"/", "/approvals", "/fleet", "/system", "/s/s", "/s/s?tab=timeline", "/s/s?tab=events", fmt.Sprintf("/s/s?tab=events&at=%d", list.Events[1].Seq), "/s/s?tab=state", "/s/s?tab=state&part=record",
			fmt.Sprintf("/s/s?tab=state&part=diff&compare=%d", list.Events[0].Seq), "/s/s?tab=tools", "/s/s?tab=batch", "/s/s?tab=effects", "/s/s?tab=schedules",
		} {
			p.Do(chromedp.Navigate("about:blank"), chromedp.Navigate(url+path+"#token=all"))
			ready(p)
			holds(t, p, name+" in "+path)
			if path == "/s/s" {
				p.Eventually(`document.querySelector("#streaming")`)
			}
		}
		p.Do(chromedp.Navigate("about:blank"))
		f.mu.Lock()
		filled := slices.Sorted(maps.Keys(f.filled))
		f.mu.Unlock()
		for _, field := range fields {
			if !slices.ContainsFunc(filled, func(of string) bool { return of == field || strings.HasPrefix(of, field+".") }) {
				t.Errorf("%s: the field %s was not filled", name, field)
			}
		}
		t.Logf("%s: %d fields", name, len(filled))
	}
	if next < len(hostile) {
		t.Errorf("%d of %d texts were written alone", next, len(hostile))
	}
}
