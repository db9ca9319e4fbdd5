package session

import "strings"

// Progress reports the turns and calls of an active run, so that a client can
// follow the run without reading the log. It is published on refold.progress.<sid>
// in the form of a notice without a number, and is not stored: a stored message
// costs more than everything else that a session publishes about a call.
// RunFinished is the stored truth.
const (
	ProgressTurnSettled = "TurnSettled"
	ProgressCallSettled = "CallSettled"
)

// TurnSettled is the data of the progress that an attempt at a turn has ended: it
// was settled, or its deadline passed. A turn that ends its run, or that was open
// in a cancelled run, is reported by RunFinished alone.
type TurnSettled struct {
	Effect       string     `json:"effect"`
	Calls        int        `json:"calls,omitempty"`      // of the model's answer
	Text         string     `json:"text,omitempty"`       // the beginning of the text
	TextBytes    int64      `json:"text_bytes,omitempty"` // of the whole text, if Text is cut
	FinishReason string     `json:"finish_reason,omitempty"`
	Code         string     `json:"code,omitempty"` // of a failed turn
	Detail       string     `json:"detail,omitempty"`
	Invalid      string     `json:"invalid,omitempty"`  // why the answer does not have the required form: another turn lets the model repair it
	RetryAt      int64      `json:"retry_at,omitempty"` // Unix ms: time of the next attempt at a failed turn
	Usage        UsageTotal `json:"usage"`              // of this attempt
}

// CallSettled is the data of the progress that a call has its result.
type CallSettled struct {
	Effect      string     `json:"effect"`
	ToolName    string     `json:"tool_name"`
	Status      CallStatus `json:"status"`
	Code        string     `json:"code,omitempty"` // of the error, or of a result that the session made
	Detail      string     `json:"detail,omitempty"`
	DurationMS  int64      `json:"duration_ms,omitempty"`  // from the settlement
	Output      string     `json:"output,omitempty"`       // the beginning of the output
	OutputBytes int64      `json:"output_bytes,omitempty"` // of the whole output, if Output is cut
}

// Progress returns the progress of an active run in the last folded event, in
// order, and forgets it. It is nil while the state is quiet. The caller owns the
// notices.
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

func addProgress[T any](s *State, typ string, data T) {
	s.progress = append(s.progress, Notice{Type: typ, Seq: s.Seq, At: s.Clock, Session: s.Session, Data: data})
}

// turnSettled reports that a settlement has ended an attempt at a turn, with the
// beginning of its text.
func (s *State) turnSettled(text *Content, usage *Usage, d TurnSettled) {
	if s.quiet {
		return
	}
	d.Text, d.TextBytes = text.beginning(ProgressTextMax)
	if usage != nil {
		d.Usage = UsageTotal(*usage)
	}
	addProgress(s, ProgressTurnSettled, d)
}

// turnFaulty adds what is wrong with an answer to the latest progress, which reports
// its turn.
func (s *State) turnFaulty(problem string) {
	last := len(s.progress) - 1
	if s.scratch == nil || last < 0 {
		return
	}
	if d, ok := s.progress[last].Data.(TurnSettled); ok {
		d.Invalid = problem
		s.progress[last].Data = d
	}
}

// turnRetries adds the time of the next attempt to the latest progress, which
// reports a failed attempt.
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

// forgetTurnSettled drops the progress of a turn that ends its run: RunFinished has
// the same and more.
func (s *State) forgetTurnSettled() {
	if s.scratch == nil || len(s.progress) == 0 {
		return
	}
	if last := len(s.progress) - 1; s.progress[last].Type == ProgressTurnSettled {
		s.progress = s.progress[:last]
	}
}

// turnFailed reports that the open attempt at a turn ended without a settlement.
func (s *State) turnFailed(f *Fault) {
	if !s.quiet {
		addProgress(s, ProgressTurnSettled, TurnSettled{Effect: s.Turn.name(), Code: f.Code, Detail: f.Detail})
	}
}

// callSettled reports that call i has its result: that of settlement b. If b is nil,
// the session made the result.
func (s *State) callSettled(i int, b *ToolCallSettled) {
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
		d.Output, d.OutputBytes = b.Output.beginning(ProgressOutputMax)
	}
	addProgress(s, ProgressCallSettled, d)
}

// beginning returns at most limit bytes of a text, and the size of the whole text
// if it was cut.
func beginning(text string, limit int) (begin string, of int64) {
	if len(text) <= limit {
		return text, 0
	}
	for limit > 0 && text[limit]&0xC0 == 0x80 {
		limit--
	}
	return text[:limit], int64(len(text))
}

// beginning does the same for a content: it joins the texts up to the first blob. A
// blob without a size counts as one byte.
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
