package bench

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/llm/recorded"
	"github.com/refold/refold/planner"
)

// Prefix is how much of a conversation's requests a prefix cache can hold.
type Prefix struct {
	Conversation  string
	Turns         int // requested generations
	Exact, Masked Held
}

// Held counts the bytes of requests: of definitions, system text and messages.
type Held struct {
	Sent int64 // in all requests
	Held int64 // of these, what the previous request began with too
}

// Share returns the share of the sent bytes that a cache can hold.
func (h Held) Share() float64 { return float64(h.Held) / float64(max(h.Sent, 1)) }

// Prefixes folds the conversations of a recording in memory, each with exact and
// with masked tools, and calls each for one after the other. The registry gates
// tools by the session's state, as the built-in one gates the host tools: until
// the conversation's first batch of calls opens a host session, it offers only
// the tools of that batch, and then all. definitions is the file with the tools;
// "": the one in the recording's folder.
func Prefixes(file, definitions, system string, each func(Prefix) error) error {
	r, record, _, err := recorded.LoadInstall(file, definitions, nil)
	if err != nil {
		return err
	}
	install, err := session.ParseInstall(record)
	if err != nil {
		return err
	}
	for _, c := range r.Conversations() {
		p := Prefix{Conversation: c.ID}
		for _, mode := range []struct {
			tools string
			held  *Held
		}{{session.ToolsExact, &p.Exact}, {session.ToolsMasked, &p.Masked}} {
			f, err := newPrefixFold(&install.Record, c, mode.tools, system)
			if err == nil {
				err = f.play(c)
			}
			if err != nil {
				return fmt.Errorf("%s, %s: %w", c.ID, mode.tools, err)
			}
			*mode.held, p.Turns = f.held, f.turns
		}
		if err := each(p); err != nil {
			return err
		}
	}
	return nil
}

// prefixFold is a session that is folded in memory, and its requests.
type prefixFold struct {
	state   *session.State
	blobs   map[codec.Hash]string // definitions
	texts   map[uint64]string     // of items, by event
	seq     uint64
	before  []string // parts of the latest request, in order
	held    Held
	sent    int64 // bytes of the latest request
	largest int64
	turns   int
	started bool // the first batch has begun
}

func newPrefixFold(record *session.InstallRecord, c *recorded.Conversation, mode, system string) (*prefixFold, error) {
	own, config := *record, *record.Config
	config.ToolsMode, config.System = mode, system
	if system == "" {
		config.System = c.System
	}
	first := firstBatch(c)
	own.Config, own.Tools = &config, nil
	for _, tool := range record.Tools {
		if !first[tool.ToolName] {
			tool.Availability = []planner.Rule{{Kind: planner.RuleHostSessionReady}}
		}
		own.Tools = append(own.Tools, tool)
	}
	text, err := codec.Marshal(own)
	if err != nil {
		return nil, err
	}
	install, err := session.ParseInstall(text)
	if err != nil {
		return nil, err
	}
	f := &prefixFold{state: session.New(install, c.Session()), blobs: map[codec.Hash]string{}, texts: map[uint64]string{}, seq: 1}
	for _, b := range install.Registry.Blobs() {
		f.blobs[b.Ref.Hash] = string(b.Content)
	}
	return f, nil
}

// firstBatch returns the names of the tools in a conversation's first batch.
func firstBatch(c *recorded.Conversation) map[string]bool {
	names := map[string]bool{}
	for _, run := range c.Runs {
		for _, turn := range run.Turns {
			for _, call := range turn.Calls {
				names[call.Name] = true
			}
			if len(names) > 0 {
				return names
			}
		}
	}
	return names
}

// evolve folds an event. text is the event's text as a model is shown it.
func (f *prefixFold) evolve(door session.Door, typ string, body any, text string) error {
	data, err := codec.Marshal(body)
	if err != nil {
		return err
	}
	payload, err := codec.Marshal(session.Envelope{Data: data, Type: typ, V: session.Version})
	if err != nil {
		return err
	}
	f.seq++
	f.texts[f.seq] = text
	_, rejected := f.state.Evolve(session.Event{Session: f.state.Session, Door: door, Seq: f.seq, Time: 1, Payload: payload})
	if rejected != nil {
		return fmt.Errorf("%s: %w", typ, rejected)
	}
	return nil
}

// play folds the conversation.
func (f *prefixFold) play(c *recorded.Conversation) error {
	for _, run := range c.Runs {
		input := session.RunRequested{Input: session.Content{Text: run.User}}
		if err := f.evolve(session.DoorIn, session.TypeRunRequested, input, run.User); err != nil {
			return err
		}
		for i := range run.Turns {
			name, err := f.generation()
			if err == nil {
				err = f.turn(name, &run.Turns[i])
			}
			if err != nil {
				return err
			}
		}
		if run.Ends().Code == "" {
			continue
		}
		name, err := f.generation()
		if err == nil { // the recording ends without this turn
			ended := session.GenerationSettled{Effect: name, Status: "failed", Error: &session.Fault{Code: run.Ends().Code}}
			err = f.evolve(session.DoorLLM, session.TypeGenerationSettled, ended, "")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// generation counts the request of the open generation, and returns its name. Before, it
// counts and settles a compaction.
func (f *prefixFold) generation() (string, error) {
	for _, e := range f.state.Open() {
		if e.Class != session.ClassLLM {
			continue
		}
		var g session.Generation
		if err := codec.Unmarshal(e.Payload, &g); err != nil {
			return "", err
		}
		if err := f.count(&g); err != nil {
			return "", err
		}
		if g.Compact == "" {
			return e.Name, nil
		}
		settled := session.GenerationSettled{Effect: e.Name, Status: "ok", Text: &session.Content{Text: summary}, Usage: f.usage()}
		if err := f.evolve(session.DoorLLM, session.TypeGenerationSettled, settled, summary); err != nil {
			return "", err
		}
		return f.generation()
	}
	return "", errors.New("the session opens no generation where the recording has a turn")
}

// count compares a request with the previous one.
func (f *prefixFold) count(g *session.Generation) error {
	items, err := g.Items.Items()
	if err != nil {
		return err
	}
	defined := g.Defined
	if defined == nil {
		defined = g.Tools
	}
	parts := make([]string, 0, len(defined)+1+len(items))
	for _, hash := range defined {
		parts = append(parts, f.blobs[hash])
	}
	parts = append(parts, g.System)
	if g.Cut > 0 {
		parts = append(parts, fmt.Sprintf("%d earlier messages are not shown%s", g.Cut, f.texts[g.Summary]))
	}
	for _, it := range items {
		text := f.texts[it.Seq]
		switch it.Shown {
		case session.ShownCleared:
			text = cleared
		case session.ShownCut:
			text = text[:min(len(text), int(it.Bytes))]
		}
		parts = append(parts, string(it.Role)+strconv.Itoa(int(it.Call))+it.Code+it.Detail.String()+text)
	}
	if g.Compact != "" {
		parts = append(parts, g.Compact)
	}
	same, before := true, f.held.Sent
	for i, text := range parts {
		same = same && i < len(f.before) && f.before[i] == text
		f.held.Sent += int64(len(text))
		if same {
			f.held.Held += int64(len(text))
		}
	}
	f.before, f.turns, f.sent = parts, f.turns+1, f.held.Sent-before
	f.largest = max(f.largest, f.sent)
	return nil
}

// cleared is about what stands in the place of a cleared result.
const cleared = "The result of this call was cleared to save space. If you need it, call the tool again."

// summary is as long as a summary of 1,000 tokens.
var summary = strings.Repeat("What was said before. ", 1000*session.BytesPerToken/22)

// usage is what a provider would count for the latest request.
func (f *prefixFold) usage() *session.Usage {
	return &session.Usage{InputTokens: f.sent / session.BytesPerToken}
}

// turn settles a generation as it was recorded, and its calls.
func (f *prefixFold) turn(name string, turn *recorded.Turn) error {
	var text *session.Content
	if turn.Text != "" {
		text = &session.Content{Text: turn.Text}
	}
	if len(turn.Calls) == 0 {
		return f.evolve(session.DoorLLM, session.TypeGenerationSettled, session.GenerationSettled{Effect: name, Status: "ok", Text: text, Usage: f.usage()}, turn.Text)
	}
	observed, shown := session.ToolCallsObserved{Effect: name, Text: text, Usage: f.usage()}, turn.Text
	for _, c := range turn.Calls {
		observed.Calls = append(observed.Calls, session.ObservedCall{Arguments: c.Arguments, ProviderCallID: c.ProviderID, ToolName: c.Name})
		shown += c.Name + c.Arguments
	}
	if err := f.evolve(session.DoorLLM, session.TypeToolCallsObserved, observed, shown); err != nil {
		return err
	}
	if !f.started {
		f.started = true
		if err := f.evolve(session.DoorCtl, session.TypeHostSessionUpdated, session.HostSessionUpdated{ID: "h1", Status: "ready"}, ""); err != nil {
			return err
		}
	}
	return f.settleCalls(turn)
}

// settleCalls settles the calls of a turn, group by group.
func (f *prefixFold) settleCalls(turn *recorded.Turn) error {
	for {
		settled := false
		for _, e := range f.state.Open() {
			if e.Class != session.ClassTool {
				continue
			}
			var call session.ToolCall
			if err := codec.Unmarshal(e.Payload, &call); err != nil {
				return err
			}
			result := turn.Calls[call.Call].Result
			body := session.ToolCallSettled{Effect: e.Name, Status: string(session.CallSucceeded), Output: &session.Content{Text: result}}
			if err := f.evolve(session.DoorTool, session.TypeToolCallSettled, body, result); err != nil {
				return err
			}
			settled = true
		}
		if !settled {
			return nil
		}
	}
}
