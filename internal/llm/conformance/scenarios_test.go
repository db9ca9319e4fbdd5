package conformance

// The requests of the sessions in the scenario files, in order. Texts are
// derived from sequences: each item of a transcript has its own.

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/session/scenario"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/codec"
)

func scenarios(t *testing.T) (all []turns) {
	t.Helper()
	files, err := filepath.Glob("../../../actors/session/testdata/scenarios/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no scenarios: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		parsed, err := scenario.Parse(string(text))
		must(t, err)
		p := play{t: t, name: filepath.Base(file), payloads: map[uint64][]byte{}, asked: map[string]bool{}}
		for _, step := range parsed.Steps {
			p.do(step.Input)
		}
		all = append(append(all, p.windows...), turns{name: p.name, requests: p.requests})
	}
	return all
}

// play is a scenario that is played.
type play struct {
	t        *testing.T
	name     string
	state    *session.State
	time     int64
	payloads map[uint64][]byte // of events, by sequence
	asked    map[string]bool   // names of generations
	requests []executor.Request
	window   string  // what of the transcript the latest request leaves out
	windows  []turns // requests of earlier windows: the law holds within each
}

func (p *play) do(input string) {
	p.t.Helper()
	var action scenario.Action
	var err error
	if p.state == nil {
		action, err = scenario.Read(input, nil)
	} else {
		action, err = scenario.Read(input, p.state.InstallRecord().Registry, p.state.View())
	}
	if err != nil {
		p.t.Fatalf("%s: %s: %v", p.name, input, err)
	}
	switch action.Kind {
	case scenario.KindInstall:
		record := action.Payload
		if record == nil {
			record = session.BuiltinInstall()
		}
		if install, err := session.ParseInstall(record); err == nil { // some scenarios show bad ones
			p.state = session.New(install, "s1")
		}
		return
	case scenario.KindClock:
		p.time += action.Clock
		return
	case scenario.KindShow:
		return
	}
	seq := uint64(len(p.payloads) + 2)
	p.payloads[seq] = action.Payload
	// What is refused asks for nothing.
	_, _ = p.state.Evolve(session.Event{Session: "s1", Door: action.Door, Seq: seq, Time: p.time, Payload: action.Payload})
	for _, e := range p.state.Open() {
		if e.Class == session.ClassLLM && !p.asked[e.Name] {
			p.asked[e.Name] = true
			request, window := p.request(e.Payload)
			if request.Compact {
				p.compacts(request, window)
				continue
			}
			if window != p.window {
				p.windows = append(p.windows, turns{p.name, p.requests})
				p.requests, p.window = nil, window
			}
			p.requests = append(p.requests, request)
		}
	}
}

// request returns the request of a generation, and which of its messages the window
// changes.
func (p *play) request(payload []byte) (req executor.Request, window string) {
	p.t.Helper()
	var g session.Generation
	must(p.t, codec.Unmarshal(payload, &g))
	req = executor.Request{
		Session: "s1", Effect: g.Effect, Model: g.Model, System: g.System, ToolChoice: g.ToolChoice, CacheTTL: g.CacheTTL,
		Tools: toolsOf(g.Tools), Defined: toolsOf(g.Defined),
	}
	if _, named := map[string]bool{"": true, "none": true, "auto": true, "required": true}[g.ToolChoice]; !named {
		req.ToolChoice = "" // tools have other names here
	}
	if len(g.ResponseFormat) > 0 {
		req.Format = &executor.Format{Name: "form", Schema: json.RawMessage(`{"type":"object"}`)}
	}
	batch := ""
	items, err := g.Items.Items()
	if err != nil {
		p.t.Fatal(err)
	}
	window = fmt.Sprint(g.Cut, g.Summary)
	if g.Cut > 0 {
		req.Messages = append(req.Messages, executor.Message{Role: "user", Text: window + " left"})
	}
	for i, it := range items {
		if it.Shown != session.ShownWhole {
			window += fmt.Sprintf(" %d:%d", i, it.Bytes)
		}
		m := executor.Message{Role: string(it.Role), Text: fmt.Sprintf("%s at %d", it.Role, it.Seq)}
		switch it.Role {
		case session.RoleAssistant:
			calls, effect := p.calls(it.Seq)
			batch, _, _ = strings.Cut(effect, "a")
			for i, c := range calls {
				m.Calls = append(m.Calls, executor.MessageCall{ID: batch + "c" + strconv.Itoa(i), Name: c.ToolName, Arguments: c.Arguments})
			}
		case session.RoleTool:
			m.CallID, m.Error = batch+"c"+strconv.Itoa(int(it.Call)), it.Code != ""
			m.Text += " " + it.Code + it.Detail.String()
		}
		if it.Shown != session.ShownWhole {
			m.Text += fmt.Sprintf(" shown in %d bytes", it.Bytes)
		}
		req.Messages = append(req.Messages, m)
	}
	if g.Compact != "" {
		req.Compact = true
		req.Messages = append(req.Messages, executor.Message{Role: "user", Text: g.Compact})
	}
	return req, window
}

// calls returns the calls that a turn made, if it made any.
func (p *play) calls(seq uint64) ([]session.ObservedCall, string) {
	p.t.Helper()
	payload := p.payloads[seq]
	if payload[0] == '{' {
		var err error
		payload, err = codec.FromJSON(payload)
		must(p.t, err)
	}
	var envelope session.Envelope
	must(p.t, codec.Unmarshal(payload, &envelope))
	if envelope.Type != session.TypeToolCallsObserved {
		return nil, ""
	}
	var body session.ToolCallsObserved
	must(p.t, codec.Decode(envelope.Data, &body))
	return body.Calls, body.Effect
}

// toolsOf returns a tool for each descriptor, nil for none.
func toolsOf(hashes []codec.Hash) (all []executor.Tool) {
	for _, h := range hashes {
		all = append(all, executor.Tool{Name: "t_" + h.String()[:16], Schema: json.RawMessage(`{"type":"object"}`)})
	}
	return all
}

// compacts enters a compaction: without the message that asks for the summary, it is the
// beginning of the latest turn's request in its window, or the other way round.
func (p *play) compacts(request executor.Request, window string) {
	if window != p.window || len(p.requests) == 0 {
		return
	}
	request.Messages = request.Messages[:len(request.Messages)-1]
	pair := []executor.Request{p.requests[len(p.requests)-1], request}
	if len(pair[0].Messages) > len(pair[1].Messages) {
		slices.Reverse(pair)
	}
	p.windows = append(p.windows, turns{p.name, pair})
}
