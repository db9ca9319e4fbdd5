package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/spaces"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/llm"
)

// timelinePrinter prints a line for each event, with the time since the first
// one. It marks refused events, and settlements without an effect.
type timelinePrinter struct {
	out   io.Writer
	began int64             // timestamp of the first printed event, Unix ms
	since map[string]int64  // when each effect was opened
	open  map[string]bool   // effects and calls that were open before the event
	items int               // length of the transcript before the event
	calls map[string]string // tool of each call
	name  string            // of the session, printed on each line; "": none
	quiet bool              // without the texts of users and models
}

func newTimelinePrinter(out io.Writer) *timelinePrinter {
	return &timelinePrinter{out: out, since: map[string]int64{}, calls: map[string]string{}}
}

// tell prints one event. notices are those that the fold returned for it,
// and after is the state after it.
func (s *timelinePrinter) tell(e session.Event, notices []session.Notice, after *session.State) {
	s.began = cmp.Or(s.began, e.Time)
	var names mentions
	env, err := session.ReadEnvelope(e.Payload)
	if err == nil { // else it is printed by its rejection
		names.read(env.Data)
	}
	if refused := rejection(notices); refused != nil {
		s.line(e, "%s refused: %s: %s", s.about(e, refused.Type, names), refused.Code, refused.Detail)
	} else {
		s.taken(e, &env, names, notices, after)
	}
	for _, n := range notices {
		s.notice(e, names, n)
	}
	for _, effect := range after.OpenExcept(func(p session.Place) bool { return s.since[p.String()] != 0 }) {
		s.since[effect.Name] = e.Time
	}
	s.items, s.open = after.ItemCount(), opened(after)
}

// rejection returns why an event had no effect, or nil if the session accepted it.
func rejection(notices []session.Notice) *session.EventRejected {
	for _, n := range notices {
		if d, ok := n.Data.(session.EventRejected); ok {
			return &d
		}
	}
	return nil
}

// mentions are the names in an event's data.
type mentions struct {
	Effect string `json:"effect"`
	Call   string `json:"call"`
	Batch  string `json:"batch"`
}

// read reads the names, even if the rest of the data has a fault.
func (m *mentions) read(data codec.Raw) {
	if text, err := codec.ToJSON(data); err == nil {
		_ = json.Unmarshal(text, m) // other values have no names
	}
}

// about returns an event's type, with the names in its data.
func (s *timelinePrinter) about(e session.Event, typ string, names mentions) string {
	if typ == "" {
		return fmt.Sprintf("an event of %d bytes through %s", len(e.Payload), e.Door)
	}
	place := cmp.Or(names.Effect, names.Call, names.Batch)
	return strings.Join(strings.Fields(typ+" "+s.calls[place]+" "+place), " ")
}

// opened returns the names of open effects, and of open calls of host loops.
func opened(after *session.State) map[string]bool {
	names := map[string]bool{}
	after.EachOpen(nil, func(p session.Place) bool {
		names[p.String()] = true
		return true
	}, nil)
	if t := after.Turn; t != nil && t.Batch != nil {
		for i := range t.Batch.Calls {
			if t.Batch.Calls[i].Status == session.CallOpen {
				names[callName(t, i)] = true
			}
		}
	}
	return names
}

func callName(t *session.Turn, i int) string { return fmt.Sprintf("r%dt%dc%d", t.Run, t.Number, i) }

// taken prints an event that the session accepted.
func (s *timelinePrinter) taken(e session.Event, env *session.Envelope, names mentions, notices []session.Notice, after *session.State) {
	if !s.counts(e, env, names, notices, after) {
		s.line(e, "%s again: no effect", s.about(e, env.Type, names))
		return
	}
	switch env.Type {
	case session.TypeRunRequested:
		if b, ok := bodyOf[session.RunRequested](env); ok {
			s.line(e, "run requested: %s", s.words(&b.Input))
		}
	case session.TypeToolCallsObserved, session.TypeGenerationSettled:
		s.generation(e, env, names, after)
	case session.TypeToolCallSettled:
		s.result(e, env.Data, names.Effect, after)
	case session.TypeSteerRequested:
		if b, ok := bodyOf[session.SteerRequested](env); ok {
			s.line(e, "steered: %s", s.words(&b.Input))
		}
	case session.TypeRunEdited:
		if b, ok := bodyOf[session.RunEdited](env); ok {
			s.line(e, "run %d edited: %s", b.Run, s.words(&b.Input))
		}
	case session.TypeApprovalDecided:
		if b, ok := bodyOf[session.ApprovalDecided](env); ok {
			s.decision(e, b)
		}
	case session.TypeStepPrepared:
		if t := after.Turn; t != nil && t.Step != nil && t.Step.Code != "" {
			s.line(e, "step %s%s does not count: %s: %s", names.Effect, s.took(e, names.Effect), t.Step.Code, t.Step.Detail)
			return
		}
		s.raw(e, env)
	default:
		s.raw(e, env)
	}
}

// raw prints an event's data on one line.
func (s *timelinePrinter) raw(e session.Event, env *session.Envelope) {
	text, err := codec.ToJSON(env.Data)
	if err != nil || s.quiet {
		text = nil
	}
	s.line(e, "%s %s", env.Type, shorten(string(text)))
}

// counts reports whether an accepted event had an effect; a repeat has none.
func (s *timelinePrinter) counts(e session.Event, env *session.Envelope, names mentions, notices []session.Notice, after *session.State) bool {
	switch env.Type {
	case session.TypeRunRequested:
		return len(notices) > 0 || after.Run != nil && slices.ContainsFunc(after.Run.Steers, func(of session.Steer) bool { return of.Seq == e.Seq }) ||
			slices.ContainsFunc(after.ItemsSince(s.items), func(it session.Item) bool { return it.Seq == e.Seq })
	case session.TypeToolBatchSettled:
		return after.ItemCount() > s.items
	case session.TypeToolCallsObserved, session.TypeGenerationSettled, session.TypeToolCallSettled, session.TypeStepPrepared, session.TypeWakeSettled:
		return s.open[names.Effect]
	}
	return true
}

// notice prints what a notice adds to the event's line.
func (s *timelinePrinter) notice(e session.Event, names mentions, n session.Notice) {
	switch d := n.Data.(type) {
	case session.ToolRejected:
		if d.Effect != names.Effect { // else the settlement's line shows it
			s.line(e, "  refused  %s: %s: %s", d.ToolName, d.Code, d.Detail)
		}
	case session.ApprovalRequested:
		s.line(e, "  waits for approval  %s %s", d.ToolName, d.Call)
	case spaces.WorkspaceStaged, spaces.WorkspaceApplied, spaces.WorkspaceFailed, spaces.WorkspaceGone, spaces.WorkspaceDisplaced:
		s.line(e, "  %s", aboutSpace(d))
	case session.RunPlaced:
		if n.Type == session.NoticeRunQueued {
			s.line(e, "  run %d is queued", d.Run)
		}
	case session.RunFinished:
		if d.Lifecycle != session.Completed {
			s.line(e, "  %s", ended(d.Run, d.Lifecycle, d.Code, d.Detail))
		}
		if d.FinishReason != "" {
			s.line(e, "  %s", answerEnded(d.FinishReason))
		}
	}
}

// line writes one line.
func (s *timelinePrinter) line(e session.Event, format string, args ...any) {
	seconds := float64(e.Time-s.began) / 1000
	name := s.name
	if name != "" {
		name += "  "
	}
	fmt.Fprintf(s.out, "%8.3fs  %s%s\n", seconds, name, lineBreaks.Replace(fmt.Sprintf(format, args...)))
}

// took returns how long an effect was open.
func (s *timelinePrinter) took(e session.Event, effect string) string {
	if since := s.since[effect]; since != 0 {
		return fmt.Sprintf(" (%d ms)", e.Time-since)
	}
	return ""
}

// generation prints how a turn of the model ended.
func (s *timelinePrinter) generation(e session.Event, env *session.Envelope, names mentions, after *session.State) {
	var calls session.ToolCallsObserved
	var answer session.GenerationSettled
	taken := slices.Contains(after.ItemsSince(s.items), session.Item{Role: session.RoleAssistant, Seq: e.Seq})
	turn := "turn " + names.Effect + s.took(e, names.Effect)
	switch {
	case taken && env.Type == session.TypeToolCallsObserved && codec.Decode(env.Data, &calls) == nil:
		s.line(e, "%s: %s", turn, s.words(calls.Text))
		s.groups(e, &calls, after)
	case taken && codec.Decode(env.Data, &answer) == nil:
		s.line(e, "%s: %s", turn, s.words(answer.Text))
	case codec.Decode(env.Data, &answer) == nil && answer.Error != nil && answer.Error.Code == llm.CodeRecordingEnded:
		s.line(e, "%s: the recording has no more turns", turn)
	case codec.Decode(env.Data, &answer) == nil && answer.Error != nil:
		s.line(e, "%s failed: %s: %s", turn, answer.Error.Code, shorten(answer.Error.Detail))
	default: // it has no text, or can't be used: then the run's end shows why
		s.line(e, "%s: without an answer", turn)
	}
	if r := after.Run; r != nil && isEffectOf(names.Effect, r.Number) && answer.FinishReason != "" && answer.FinishReason != session.FinishStop {
		s.line(e, "  %s", answerEnded(answer.FinishReason)) // the end of a run shows it otherwise
	}
	for _, it := range after.ItemsSince(s.items) {
		if it.Role == session.RoleUser && it.Code != "" {
			s.line(e, "  the answer does not have the required form: %s; the model is asked to repair it", it.Detail)
		}
	}
}

// groups prints the calls of a turn, group by group.
func (s *timelinePrinter) groups(e session.Event, b *session.ToolCallsObserved, after *session.State) {
	t := after.Turn
	if t == nil || t.Batch == nil || t.Batch.Seq != e.Seq {
		return // all calls were refused, and the next turn is open
	}
	for g, calls := range t.Batch.Plan.Groups {
		for _, i := range calls {
			name := t.Batch.Calls[i].ToolName
			s.calls[callName(t, i)] = name
			s.line(e, "  group %d of %d  %s %s", g+1, len(t.Batch.Plan.Groups), name, shorten(b.Calls[i].Arguments))
		}
	}
}

// decision prints what a person decided over a call.
func (s *timelinePrinter) decision(e session.Event, b *session.ApprovalDecided) {
	text := strings.TrimSpace(s.calls[b.Call] + " " + b.Call)
	if b.Decision == session.DecisionApprove {
		text = "approved " + text
	} else {
		text = "denied " + text
	}
	if b.Arguments != "" && !s.quiet {
		text += " with " + shorten(b.Arguments)
	}
	if b.Reason != "" {
		text += ": " + shorten(b.Reason)
	}
	s.line(e, "  %s", text)
}

// result prints how a call ended.
func (s *timelinePrinter) result(e session.Event, data codec.Raw, effect string, after *session.State) {
	name := strings.TrimSpace(s.calls[effect]+" "+effect) + s.took(e, effect)
	var b session.ToolCallSettled
	faulty := codec.Decode(data, &b) != nil
	if code, detail := s.given(effect, after); code != "" || faulty {
		s.line(e, "  failed %s: %s: %s", name, code, shorten(detail))
		return
	}
	if b.Error != nil {
		s.line(e, "  %s %s: %s: %s", b.Status, name, b.Error.Code, shorten(b.Error.Detail))
		return
	}
	s.line(e, "  %s %s: %s", b.Status, name, s.words(b.Output))
}

// given returns the code and the detail of a call's result that the session
// itself made. The results of a complete batch are in the transcript.
func (s *timelinePrinter) given(effect string, after *session.State) (code, detail string) {
	for _, it := range after.ItemsSince(s.items) {
		if it.Role == session.RoleTool && strings.HasSuffix(effect, fmt.Sprintf("c%d", it.Call)) {
			return it.Code, it.Detail.String()
		}
	}
	if t := after.Turn; t != nil && t.Batch != nil {
		for i := range t.Batch.Calls {
			if callName(t, i) == effect {
				return t.Batch.Calls[i].Code, t.Batch.Calls[i].Detail.String()
			}
		}
	}
	return "", ""
}

// words returns content on one line.
func (s *timelinePrinter) words(c *session.Content) string {
	switch {
	case c == nil, s.quiet:
		return ""
	case c.Blob != nil:
		return fmt.Sprintf("[%d bytes, %s]", c.Size, c.Blob)
	case len(c.Parts) > 0:
		return fmt.Sprintf("[%d parts]", len(c.Parts))
	}
	return shorten(c.Text)
}

// lineMax is the number of a text's characters that one line shows.
const lineMax = 100

// shorten puts text on one line of at most lineMax characters.
func shorten(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > lineMax {
		return string(runes[:lineMax]) + "…"
	}
	return text
}

// lineBreaks keeps text on its line; the writer escapes other terminal controls.
var lineBreaks = strings.NewReplacer("\n", " ", "\t", " ")
