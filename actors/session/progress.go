package session

import (
	"cmp"
	"strings"
)

// Progress is what a session says about the turns and calls of a run under way,
// so that a client can follow it without reading the log. It is published on
// refold.progress.<sid> in the form of a notice, has no number, and is kept
// nowhere: a stored message costs more than all else that a session says about
// a call. RunFinished is the stored truth.
const (
	ProgressTurnSettled = "TurnSettled"
	ProgressCallSettled = "CallSettled"
)

// TurnSettled is the data of the progress that an attempt at a turn has ended:
// it was settled, or its deadline came. A turn that ends its run, or that a
// cancelled run had open, is reported by RunFinished alone.
type TurnSettled struct {
	Effect       string     `json:"effect"`
	Calls        int        `json:"calls,omitempty"`      // that the model made
	Text         string     `json:"text,omitempty"`       // its beginning
	TextBytes    int64      `json:"text_bytes,omitempty"` // of all of it, if Text is not all
	FinishReason string     `json:"finish_reason,omitempty"`
	Code         string     `json:"code,omitempty"` // of a turn that failed
	Detail       string     `json:"detail,omitempty"`
	RetryAt      int64      `json:"retry_at,omitempty"` // Unix ms: a turn that failed is asked again then
	Usage        UsageTotal `json:"usage"`              // of this attempt
}

// CallSettled is the data of the progress that a call has its result.
type CallSettled struct {
	Effect      string     `json:"effect"`
	ToolName    string     `json:"tool_name"`
	Status      CallStatus `json:"status"`
	Code        string     `json:"code,omitempty"` // of the error, or of a result that the session gave
	Detail      string     `json:"detail,omitempty"`
	DurationMS  int64      `json:"duration_ms,omitempty"`  // as the settlement says
	Output      string     `json:"output,omitempty"`       // its beginning
	OutputBytes int64      `json:"output_bytes,omitempty"` // of all of it, if Output is not all
}

// Progress returns what the event folded last says about a run under way, in
// order, and forgets it. It is nil while the state is quiet. The notices have
// no number, and are the caller's.
func (s *State) Progress() []Notice {
	if s.scratch == nil || len(s.progress) == 0 {
		return nil
	}
	progress := s.progress
	s.progress = nil
	if s.isIdle() {
		s.releaseScratch()
	}
	return progress
}

func sayProgress[T any](s *State, typ string, data T) {
	s.progress = append(s.progress, Notice{Type: typ, Seq: s.Seq, At: s.Clock, Session: s.Session, Data: data})
}

// turnSettled says that the attempt at a turn that b settles has ended; bad is
// why b does not count.
func (s *State) turnSettled(b *settlement, bad *refusal) {
	if s.quiet {
		return
	}
	d := TurnSettled{Effect: string(b.effect)}
	usage, fault := b.answer.Usage, b.answer.Error
	switch {
	case bad != nil:
		usage, fault = nil, &Fault{Code: CodeBadSettlement, Detail: bad.detail}
	case b.typ == TypeToolCallsObserved:
		usage, d.Calls = b.observed.Usage, len(b.observed.Calls)
		d.Text, d.TextBytes = b.observed.Text.beginning(ProgressTextMax)
	case b.hasText:
		d.Text, d.TextBytes = beginning(b.text, ProgressTextMax)
	default:
		d.Text, d.TextBytes = b.answer.Text.beginning(ProgressTextMax)
	}
	if bad == nil && b.typ == TypeGenerationSettled {
		d.FinishReason = cmp.Or(b.answer.FinishReason, string(b.finishReason))
	}
	if usage != nil {
		d.Usage = UsageTotal(*usage)
	}
	if fault != nil {
		d.Code, d.Detail = fault.Code, clip(fault.Detail, DetailBytesMax)
	}
	sayProgress(s, ProgressTurnSettled, d)
}

// turnRetries adds to the latest progress, which says that an attempt at a turn
// failed, when the next attempt is asked.
func (s *State) turnRetries(at int64) {
	last := len(s.progress) - 1
	if s.scratch == nil || last < 0 {
		return
	}
	if d, ok := s.progress[last].Data.(TurnSettled); ok {
		d.RetryAt = at
		s.progress[last].Data = d
	}
}

// forgetTurnSettled drops the progress of a turn that ends its run: RunFinished
// says the same, and more.
func (s *State) forgetTurnSettled() {
	if s.scratch == nil || len(s.progress) == 0 {
		return
	}
	if last := len(s.progress) - 1; s.progress[last].Type == ProgressTurnSettled {
		s.progress = s.progress[:last]
	}
}

// turnFailed says that the open attempt at a turn has ended without a settlement.
func (s *State) turnFailed(f *Fault) {
	if !s.quiet {
		sayProgress(s, ProgressTurnSettled, TurnSettled{Effect: s.Turn.name(), Code: f.Code, Detail: f.Detail})
	}
}

// callSettled says that call i has its result. It is that of settlement b, with
// text as its output if the output was not decoded. If b is nil, the session gave
// the result.
func (s *State) callSettled(i int, b *ToolCallSettled, text []byte) {
	if s.quiet {
		return
	}
	t := s.Turn
	c := &t.Batch.Calls[i]
	d := CallSettled{Effect: callName(t.Run, t.Number, i), ToolName: c.ToolName, Status: c.Status, Code: c.Code, Detail: c.Detail}
	if b != nil {
		d.DurationMS = max(0, b.DurationMS)
		if b.Error != nil {
			d.Code, d.Detail = b.Error.Code, clip(b.Error.Detail, DetailBytesMax)
		}
		if text != nil {
			d.Output, d.OutputBytes = beginning(text, ProgressOutputMax)
		} else {
			d.Output, d.OutputBytes = b.Output.beginning(ProgressOutputMax)
		}
	}
	sayProgress(s, ProgressCallSettled, d)
}

// beginning returns at most limit bytes of a text, and how many it has if that
// is not all.
func beginning[T ~string | ~[]byte](text T, limit int) (begin string, of int64) {
	if len(text) <= limit {
		return string(text), 0
	}
	for limit > 0 && text[limit]&0xC0 == 0x80 {
		limit--
	}
	return string(text[:limit]), int64(len(text))
}

// beginning returns the same of a content: its texts, one after the other, up to
// the first blob. A blob without a size counts as one byte.
func (c *Content) beginning(limit int) (begin string, of int64) {
	switch {
	case c == nil:
		return "", 0
	case c.Blob != nil:
		return "", max(c.Size, 1)
	case len(c.Parts) == 0:
		return beginning(c.Text, limit)
	}
	var b strings.Builder
	all, cut := int64(0), false
	for i := range c.Parts {
		text, of := c.Parts[i].beginning(limit - b.Len())
		if all += max(of, int64(len(text))); !cut {
			b.WriteString(text)
		}
		cut = cut || of > 0
	}
	if !cut {
		return b.String(), 0
	}
	return b.String(), all
}
