package web

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/session/timeline"
	"github.com/refold/refold/client"
	"github.com/refold/refold/codec"
)

// getTimeline returns the spans of a session within a time.
func (c *call) getTimeline() (any, error) {
	var bounds [2]int64
	for i, name := range []string{"from", "to"} {
		text := c.r.URL.Query().Get(name)
		if text == "" {
			continue
		}
		var err error
		if bounds[i], err = strconv.ParseInt(text, 10, 64); err != nil {
			return nil, problem(http.StatusBadRequest, CodeBadRequest, "%s: it is a time in Unix milliseconds", name)
		}
	}
	h, leave, err := c.history()
	if err != nil {
		return nil, err
	}
	defer leave()
	var all []*span
	for _, s := range slices.Concat(h.openSpans(), h.timers(), spansOf(h.spans)) {
		if (bounds[1] == 0 || s.Begin <= bounds[1]) && (s.End == 0 || s.End >= bounds[0]) {
			all = append(all, &s)
		}
	}
	// Parents before their children: they begin no later, and end no earlier.
	slices.SortStableFunc(all, func(a, b *span) int {
		return cmp.Or(cmp.Compare(a.Begin, b.Begin), cmp.Compare(len(a.Place), len(b.Place)))
	})
	return columnsOf(all), nil
}

// span is a part of a session's time.
type span struct {
	Place, Parent        string // in the session, such as r1t2c0
	Kind                 string
	Run                  uint32
	Begin, End           int64 // Unix milliseconds; End 0: it is open
	Seq                  uint64
	Label, Outcome, Code string
	Failed               bool
	Deadline             int64 // Unix milliseconds; 0: none
}

// columnsOf returns spans as columns.
func columnsOf(spans []*span) *Timeline {
	n := len(spans)
	t := &Timeline{
		Names: []string{""}, Places: make([]string, n), Parents: make([]int, n), Kinds: make([]int, n), Runs: make([]int64, n),
		Begins: make([]int64, n), Took: make([]int64, n), Seqs: make([]int64, n), Labels: make([]int, n), Outcomes: make([]int, n),
		Codes: make([]int, n), Failed: make([]int, n), Deadlines: make([]int64, n),
	}
	names, places := map[string]int{"": 0}, map[string]int{}
	number := func(name string) int {
		at, ok := names[name]
		if !ok {
			at = len(t.Names)
			names[name] = at
			t.Names = append(t.Names, name)
		}
		return at
	}
	for i, s := range spans {
		places[s.Place] = i
	}
	before := &span{}
	for i, s := range spans {
		t.Places[i], t.Kinds[i], t.Labels[i], t.Outcomes[i], t.Codes[i] = s.Place, number(s.Kind), number(s.Label), number(s.Outcome), number(s.Code)
		if parent, ok := places[s.Parent]; ok {
			t.Parents[i] = parent - i
		}
		t.Runs[i], t.Begins[i], t.Seqs[i] = int64(s.Run)-int64(before.Run), s.Begin-before.Begin, int64(s.Seq)-int64(before.Seq)
		if t.Took[i] = -1; s.End != 0 {
			t.Took[i] = s.End - s.Begin
		}
		if s.Failed {
			t.Failed[i] = 1
		}
		if s.Deadline != 0 {
			t.Deadlines[i] = s.Deadline - s.Begin
		}
		before = s
	}
	return t
}

func spansOf(spans []*timeline.Span) (all []span) {
	for _, s := range spans {
		shown := span{
			Place: s.Place, Parent: s.Parent, Kind: s.Kind.String(), Run: s.Run, Begin: s.Begin, End: s.End, Seq: s.Seq,
			Failed: s.Failed, Code: s.Code, Label: s.Model, Outcome: s.Decision,
		}
		switch {
		case s.Call != nil:
			shown.Label = s.Call.ToolName
			shown.Outcome = cmp.Or(shown.Outcome, string(s.Call.Status))
		case s.Outcome != nil:
			shown.Outcome = string(s.Outcome.Lifecycle)
		case s.Kind == timeline.KindStep:
			shown.Label = s.Hook
		}
		all = append(all, shown)
	}
	return all
}

// openSpans returns what is open now: the run, its turn, its effects, and calls that wait
// for a person.
func (h *history) openSpans() (all []span) {
	s := h.latest
	if s.Run == nil {
		return nil
	}
	run := timeline.RunPlace(s.Run.Number)
	all = append(all, span{Place: run, Kind: timeline.KindRun.String(), Run: s.Run.Number, Begin: h.timeOf(s.Run.Seq), Seq: s.Run.Seq, Label: s.Run.Config.Model, Deadline: s.Run.Deadline})
	parent := run
	if t := s.Turn; t != nil && t.Run == s.Run.Number && len(h.turns) > 0 && (t.Open || t.Batch != nil || t.Step != nil && t.Step.Open) {
		begun := h.turns[len(h.turns)-1]
		parent = begun.Turn
		all = append(all, span{Place: begun.Turn, Parent: run, Kind: timeline.KindTurn.String(), Run: t.Run, Begin: h.timeOf(begun.Seq), Seq: begun.Seq})
		all = append(all, h.waiting(s, parent)...)
	}
	h.complete(s, func(name string) int { return h.open[name] }) // all that is open
	for _, at := range h.open {
		e := &h.effects[at]
		if e.Class == string(session.ClassWake) { // it outlives what it was set for
			continue
		}
		kind := map[string]string{"llm": "attempt", "tool": "call"}[e.Class]
		all = append(all, span{
			Place: timeline.PlaceOf(e.Effect), Parent: parent, Kind: cmp.Or(kind, e.Class), Run: s.Run.Number, Begin: e.Asked, Seq: e.Seq,
			Label: e.Target, Deadline: e.Deadline,
		})
	}
	return all
}

// timers returns the wakes: from when they were set to when they woke the session.
func (h *history) timers() (all []span) {
	for i := range h.effects {
		e := &h.effects[i]
		if e.Class != string(session.ClassWake) {
			continue
		}
		place, _ := h.find(e.Seq) // it is an event of the session
		all = append(all, span{Place: e.Effect, Kind: "wake", Run: h.heads[place].Run, Begin: e.Asked, End: e.Ended, Seq: e.Seq, Label: e.Target, Deadline: e.Deadline})
	}
	return all
}

// waiting returns the calls that wait for a person.
func (h *history) waiting(s *session.State, turn string) (all []span) {
	batch := s.View().Batch
	if batch == nil {
		return nil
	}
	for i := range batch.Calls {
		if c := &batch.Calls[i]; c.Status == session.CallAwaiting {
			all = append(all, span{
				Place: c.Effect + "p", Parent: turn, Kind: timeline.KindApproval.String(), Run: s.Run.Number, Begin: h.timeOf(batch.Seq), Seq: batch.Seq,
				Label: c.ToolName, Deadline: c.Deadline,
			})
		}
	}
	return all
}

// timeOf returns when the event at seq was stored.
func (h *history) timeOf(seq uint64) int64 {
	if place, err := h.find(seq); err == nil {
		return h.heads[place].Time
	}
	return h.heads[0].Time
}

// turnForm is that of the names of turns.
var turnForm = regexp.MustCompile(`^r[1-9][0-9]{0,8}t[1-9][0-9]{0,8}$`)

// getTools says which tools a turn was offered, and why not the others.
func (c *call) getTools() (any, error) {
	name := c.r.URL.Query().Get("turn")
	if name != "" && !turnForm.MatchString(name) {
		return nil, problem(http.StatusBadRequest, CodeBadRequest, "turn: it is a name such as r1t2: run 1, turn 2")
	}
	h, leave, err := c.history()
	if err != nil {
		return nil, err
	}
	defer leave()
	at := slices.IndexFunc(h.turns, func(t TurnShown) bool { return t.Turn == name })
	if name == "" {
		at = len(h.turns) - 1
	}
	if at < 0 {
		return nil, problem(http.StatusNotFound, CodeNoTurn, "the session has no turn %s", cmp.Or(name, "yet"))
	}
	place, err := h.exact(h.turns[at].Seq)
	if err != nil {
		return nil, err
	}
	state, err := c.at(h, place)
	if err != nil {
		return nil, err
	}
	view := state.View()
	shown := ToolsShown{Turn: h.turns[at].Turn, Seq: h.turns[at].Seq, Decided: *view.Turn, Tools: []ToolShown{}, Turns: h.turns}
	registry := state.TurnRegistry()
	for _, tool := range view.Tools {
		t := ToolShown{ViewTool: tool}
		if index, ok := registry.LookupID(tool.ToolID); ok {
			spec := registry.Tool(index)
			t.Description, t.RetrySafe, t.Approval = spec.Description, spec.RetrySafe, spec.Approval
			t.Executor = spec.Executor.Kind + "/" + spec.Executor.Target
			if schema, err := codec.ToJSON(spec.ArgsSchema); err == nil && len(schema) <= valueBytesMax {
				t.Schema = schema
			}
		}
		shown.Tools = append(shown.Tools, t)
	}
	return shown, nil
}

// effectsMax is how many effects of a session are listed.
const effectsMax = 200

// getEffects lists the latest effects of a session, and what became of them.
func (c *call) getEffects() (any, error) {
	limit, err := c.limit(effectsMax, effectsMax)
	if err != nil {
		return nil, err
	}
	h, leave, err := c.history()
	if err != nil {
		return nil, err
	}
	defer leave()
	from := max(0, len(h.effects)-limit)
	if err := c.describe(h, from); err != nil {
		return nil, err
	}
	list := EffectList{Effects: append([]EffectShown{}, h.effects[from:]...), More: from > 0}
	slices.Reverse(list.Effects)
	stored, err := c.client.Effects(c.ctx(), c.sid)
	switch {
	case client.IsDenied(err):
		list.Unknown = err.Error()
		return list, nil
	case err != nil:
		return nil, err
	}
	hashes := map[string]string{}
	for _, e := range stored {
		hashes[e.Name] = codec.Sum(e.Payload).String()
	}
	for i := range list.Effects {
		e := &list.Effects[i]
		switch hash := hashes[e.Effect]; {
		case e.Class == string(session.ClassWake): // a schedule: it is no message of this stream
			continue
		case hash == "":
			e.Stored = "gone"
		case hash == e.Hash:
			e.Stored = "same"
		default:
			e.Stored = "other"
		}
		if e.EndedSeq == 0 {
			if e.Holder, err = c.client.Holder(c.ctx(), c.sid, session.Class(e.Class), e.Target, e.Effect); err != nil {
				return nil, err
			}
		}
	}
	return list, nil
}

// previewEvent says what would come of an event. It publishes nothing.
func (c *call) previewEvent() (any, error) {
	var body PreviewRequest
	if err := c.decode(&body, false); err != nil {
		return nil, err
	}
	door := session.Door(body.Door)
	if door != session.DoorIn && door != session.DoorCtl && door != session.DoorApprove {
		return nil, problem(http.StatusBadRequest, CodeBadRequest, "door: it is %s, %s or %s", session.DoorIn, session.DoorCtl, session.DoorApprove)
	}
	text, err := json.Marshal(map[string]any{"type": body.Type, "v": session.Version, "by": c.caller.Subject, "data": body.Data})
	if len(body.Data) == 0 {
		text, err = json.Marshal(map[string]any{"type": body.Type, "v": session.Version, "by": c.caller.Subject})
	}
	if err != nil {
		return nil, fmt.Errorf("preview: %w", err)
	}
	h, leave, err := c.history()
	if err != nil {
		return nil, err
	}
	defer leave()
	state, err := c.at(h, len(h.heads)-1)
	if err != nil {
		return nil, err
	}
	last, err := c.client.LastEvent(c.ctx())
	if err != nil {
		return nil, err
	}
	o, err := c.tried(state, session.Event{
		Session: c.sid, Door: door, Seq: max(last, state.Seq) + 1, Time: max(c.clock(), state.Clock), Payload: text,
	})
	return o.Preview, err
}

// clock returns the time of the log's server, in Unix milliseconds.
func (c *call) clock() int64 { return c.client.Clock(c.ctx())().UnixMilli() }

// heardWithin is how long a request listens to the fleet at most.
const heardWithin = 2 * time.Second
