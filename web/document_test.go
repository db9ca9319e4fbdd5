package web_test

// A client that knows the document alone, and requests that nobody foresaw.

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/refold/refold"
	"github.com/refold/refold/refoldtest"
	"github.com/refold/refold/web"
)

// described is an operation as the document has it.
type described struct {
	OperationID string `json:"operationId"`
	Parameters  []struct {
		Name, In string
		Required bool
		Schema   any
	}
	RequestBody *struct {
		Content map[string]struct{ Schema any }
	} `json:"requestBody"`
	Responses map[string]struct {
		Content map[string]struct{ Schema any }
	}
}

// document is the document of a server, with its schemas.
type document struct {
	t        testing.TB
	paths    map[string]map[string]described
	compiler *jsonschema.Compiler
	schemas  map[string]*jsonschema.Schema
	seq      string // of an event of the session s
}

func (w *world) document() *document {
	w.t.Helper()
	text := w.want(http.StatusOK, nil, "", "GET", "/openapi.json", "").text
	var doc struct {
		Paths map[string]map[string]described
	}
	answer{text: text}.into(w.t, &doc)
	whole, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		w.t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource("openapi.json", whole); err != nil {
		w.t.Fatal(err)
	}
	return &document{t: w.t, paths: doc.Paths, compiler: c, schemas: map[string]*jsonschema.Schema{}}
}

// check checks a value against a schema, which is a reference to a component.
func (d *document) check(what string, schema any, text string) {
	d.t.Helper()
	ref, _ := schema.(map[string]any)["$ref"].(string)
	if ref == "" {
		return
	}
	if d.schemas[ref] == nil {
		compiled, err := d.compiler.Compile("openapi.json" + ref)
		if err != nil {
			d.t.Fatalf("%s: %v", ref, err)
		}
		d.schemas[ref] = compiled
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err == nil {
		err = d.schemas[ref].Validate(value)
	}
	if err != nil {
		d.t.Errorf("%s: %s is no %s: %v", what, text, ref, err)
	}
}

// FD-06: each operation of the document is called with what the document says, and its
// answer is of the schema that the document has for its status.
func TestEveryOperationOfTheDocument(t *testing.T) {
	t.Parallel()
	w := serve(t, web.Options{}, refold.Tools(shop()), refold.Model(refoldtest.Model(
		refoldtest.Calls(refoldtest.To("shop_buy", order{"tea"})), refoldtest.Say("I have it."), refoldtest.Say("more"), refoldtest.Say("more"))))
	d := w.document()
	w.want(http.StatusAccepted, nil, "all", "POST", "/v1/sessions/s/runs", `{"agent": "helper", "input": "Buy tea."}`)
	s := w.follow("all", "/v1/sessions/s/updates?after=start")
	u := web.Update{}
	for u.Type != "approval_asked" {
		u, _ = w.update(s)
	}
	hash := u.Call.ArgsHash
	var listed web.EventList
	w.want(http.StatusOK, &listed, "all", "GET", "/v1/sessions/s/events", "")
	d.seq = fmt.Sprint(listed.Events[len(listed.Events)-1].Seq)
	steps := []struct {
		operation, body string
		status          int
	}{
		{"health", "", 200}, {"ready", "", 200}, {"document", "", 200}, {"docs", "", 200},
		{"getSession", "", 200}, {"getTranscript", "", 200}, {"listSessions", "", 200}, {"listApprovals", "", 200}, {"listQuestions", "", 200}, {"followSession", "", 200},
		{"aiSDKMessages", "", 200}, {"aiSDKResume", "", 200},
		{"getCaller", "", 200}, {"listEvents", "", 200}, {"getEvent", "", 200}, {"getRawEvent", "", 200}, {"getEventText", "", 200}, {"getInstallChanges", "", 404}, {"getState", "", 200}, {"getDiff", "", 200}, {"getTimeline", "", 200},
		{"getTools", "", 200}, {"getBatch", "", 200}, {"getEffects", "", 200}, {"previewEvent", `{"type": "RunPauseRequested", "door": "in", "data": {"reason": "lunch"}}`, 200},
		{"getProof", "", 200}, {"getInstall", "", 200}, {"getLog", "", 200}, {"verifySession", "", 200}, {"getFleet", "", 200}, {"getSystem", "", 200}, {"verifyAll", "", 200}, {"followSessions", "", 200}, {"followEvents", "", 200},
		{"startRun", `{"input": "And then?", "when_busy": "queue"}`, 202}, {"getRun", "", 200},
		{"steer", `{"input": [{"text": "Green tea."}]}`, 200}, {"pause", `{"reason": "lunch"}`, 200}, {"resume", `{}`, 200},
		{"storeFile", "a file", 200}, {"setFacts", `{"facts": {"plan": "gold", "name": null}}`, 200},
		{"setOverrides", `{"scope": "session", "enable": []}`, 200},
		{"decide", `{"decision": "approve", "args_hash": "` + hash + `"}`, 200},
		{"reply", `{"output": "tea", "args_hash": "` + hash + `"}`, 409}, {"replyByLink", `{"output": "tea"}`, 404},
		{"setAgent", `{"agent": "helper"}`, 200},
		{"setSchedule", `{"cron": "0 9 * * 1-5", "zone": "Europe/Berlin", "input": "Write the report."}`, 200}, {"listSchedules", "", 200},
		{"pauseSchedule", "", 200}, {"resumeSchedule", "", 200}, {"removeSchedule", "", 200},
		{"aiSDKSend", strings.Replace(bodies["aiSDKSend"], "hidden", "s", 1), 200},
		{"runAGUI", bodies["runAGUI"], 200},
		{"editRun", `{"input": "other"}`, 0}, {"complete", `{"reason": "enough"}`, 0}, {"fail", `{"code": "no_answer"}`, 0}, // they depend on the run
		{"setConfig", `{"config": {"provider": "p", "model": "m"}}`, 200}, {"setProfile", `{"profile": "p"}`, 422}, {"releaseSession", `{"seq": 1, "reason": "x"}`, 409},
		{"setRegistry", `{"registry": {"tools": []}}`, 200},
		{"interrupt", `{}`, 0}, {"cancel", `{}`, 0}, {"cancelRun", `{}`, 0}, // the run may have ended
		{"aiSDKCancel", "", 204},
		{"redactEvent", "", 0}, // it depends on the event
		{"endSession", "", 200},
		{"holdSession", `{"reason": "case 4711"}`, 200}, {"endHold", `{}`, 200}, {"deleteSession", `{"reason": "they asked"}`, 200},
	}
	called := map[string]bool{}
	for _, step := range steps {
		called[step.operation] = true
		for path, methods := range d.paths {
			for method, op := range methods {
				if op.OperationID == step.operation {
					d.call(w, strings.ToUpper(method), path, &op, step.body, step.status)
				}
			}
		}
	}
	for path, methods := range d.paths {
		for method, op := range methods {
			if !called[op.OperationID] {
				t.Errorf("%s %s, %s, is not called", method, path, op.OperationID)
			}
		}
	}
}

// call calls an operation in the session s, whose call r1t1c0 waits, and checks its answer.
func (d *document) call(w *world, method, path string, op *described, body string, status int) {
	w.t.Helper()
	if op.RequestBody != nil && body != "" {
		if of, ok := op.RequestBody.Content["application/json"]; ok {
			d.check(op.OperationID, of.Schema, body)
		}
	}
	path = strings.NewReplacer("{agent}", "helper", "{sid}", "s", "{run}", "1", "{call}", "r1t1c0", "{seq}", d.seq, "{name}", "report").Replace(path)
	got, err := http.DefaultClient.Do(w.request("all", method, path, body))
	if err != nil {
		w.t.Fatal(err)
	}
	defer got.Body.Close()
	if got.Header.Get("Content-Type") == "text/event-stream" {
		if _, typed := op.Responses["200"].Content["text/event-stream"]; !typed || got.StatusCode != http.StatusOK {
			w.t.Errorf("%s: got a stream, %d", op.OperationID, got.StatusCode)
		}
		return
	}
	text, err := io.ReadAll(got.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	if status != 0 && got.StatusCode != status {
		w.t.Errorf("%s: got %d %s, want %d", op.OperationID, got.StatusCode, text, status)
		return
	}
	if got.StatusCode >= 400 {
		d.check(op.OperationID, map[string]any{"$ref": "#/components/schemas/Problem"}, string(text))
		return
	}
	of, ok := op.Responses[fmt.Sprint(got.StatusCode)]
	if ok && got.StatusCode == http.StatusNoContent && len(text) == 0 {
		return
	}
	kind, _, _ := strings.Cut(got.Header.Get("Content-Type"), ";")
	if content, typed := of.Content[kind]; !ok || !typed {
		w.t.Errorf("%s: the document has no answer %d of %s", op.OperationID, got.StatusCode, kind)
	} else {
		d.check(op.OperationID, content.Schema, string(text))
	}
}

// noise are parts of paths, queries, headers and bodies that no client should send.
var noise = []string{
	"", "s", "..", "%2e%2e", "%00", "a b", "ü", "s/../t", "//", strings.Repeat("x", 300), "0", "-1", "99999999999", "null", "{", "[]", `""`, "true",
	"\"\xff\"", `{"input": null}`, `{"input": [{}]}`, `{"input": [{"text": 1}]}`, `{"input": "x", "config": []}`, `{"input": "x", "config": {"model": 7}}`,
	`{"facts": {"": "x"}}`, `{"facts": {"\u0000": null}}`, `{"decision": "approve", "args_hash": "x", "manifest": "y"}`, `{"scope": "moon"}`,
	`{"scope": "session", "enable": [""]}`, strings.Repeat("[", 10_001), `{"agent": "\ud800", "input": "x"}`, `{"reason": "` + strings.Repeat("r", 5000) + `"}`,
	"1-0", "1-0-0-0", "start", "n1", "p1.s", "r1t1c0", "wait=1000000000000", "Bearer all",
}

// FD-06: whatever is sent, the answer is a success or a problem, and no fault of the
// server.
func TestAttackNoisyRequests(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 1))
	w := serve(t, web.Options{Limits: web.Limits{Streams: 1000}}, refold.Model(refoldtest.Model(refoldtest.Say("hello"))))
	pick := func() string { return noise[random.IntN(len(noise))] }
	operations := web.Operations()
	for range 1500 {
		o := operations[random.IntN(len(operations))]
		path := strings.NewReplacer("{sid}", url.PathEscape(pick()), "{agent}", url.PathEscape(pick()), "{run}", url.PathEscape(pick()), "{call}", url.PathEscape(pick()), "{seq}", url.PathEscape(pick())).Replace(o.Path)
		if random.IntN(3) > 0 {
			path = in(o, "s")
		}
		if random.IntN(3) == 0 {
			path += "?" + url.Values{"after": {pick()}, "run": {pick()}, "limit": {pick()}, "session": {pick()}, "since": {pick()}, "at": {pick()}, "from": {pick()}, "turn": {pick()}}.Encode()
		}
		method := o.Method
		if random.IntN(10) == 0 {
			method = []string{"PATCH", "DELETE", "OPTIONS", "HEAD", "TRACE"}[random.IntN(5)]
		}
		body := pick()
		if random.IntN(2) == 0 {
			body = bodies[o.Name]
		}
		var headers []string
		if key := pick(); random.IntN(3) == 0 && strings.IndexFunc(key, func(r rune) bool { return r < ' ' || r > '~' }) < 0 {
			headers = []string{"Idempotency-Key", key, "Last-Event-ID", key, "Content-Type", key}
		}
		w.probe(seed, method, path, body, headers...)
	}
}

// probe sends a request, whose answer must be a success, or a problem that is no fault.
func (w *world) probe(seed uint64, method, path, body string, headers ...string) {
	w.t.Helper()
	got, err := http.DefaultClient.Do(w.request("all", method, path, body, headers...))
	if err != nil {
		w.t.Fatalf("seed %d: %s %s: %v", seed, method, path, err)
	}
	defer got.Body.Close()
	if got.StatusCode < 300 || method == http.MethodHead {
		if got.StatusCode >= 500 {
			w.t.Errorf("seed %d: %s %s: got %d", seed, method, path, got.StatusCode)
		}
		return
	}
	text, err := io.ReadAll(got.Body)
	var p web.Problem
	if err != nil || json.Unmarshal(text, &p) != nil || p.Code == "" || p.Detail == "" || got.StatusCode >= 500 {
		w.t.Errorf("seed %d: %s %q %.200q %q: got %d %s (%v), want a problem", seed, method, path, body, headers, got.StatusCode, text, err)
	}
}
