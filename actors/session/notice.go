package session

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/refold/refold/codec"
)

// Notice is a message from the fold about one event. Notices are numbered per
// session from 1 without gaps; a repeat has the same number. Observers read them as
// JSON on refold.out.<sid>:
// {"v":1,"n":3,"type":"RunFinished","session":"s1","seq":41,"at":…,"data":{…}}.
type Notice struct {
	N       uint64 // 0 only on SessionQuarantined, which no fold publishes, and on progress
	Type    string
	Seq     uint64 // of its event
	At      int64  // session clock, Unix milliseconds
	Session string
	Data    any // one of the structs below
}

// Notice types: the wire's names.
const (
	NoticeSessionOpened      = "SessionOpened"
	NoticeRunQueued          = "RunQueued"
	NoticeRunStarted         = "RunStarted"
	NoticeRunFinished        = "RunFinished"
	NoticeEventRejected      = "EventRejected"
	NoticeToolRejected       = "ToolRejected"
	NoticeCallsPlanned       = "CallsPlanned"
	NoticeApprovalRequested  = "ApprovalRequested"
	NoticeBudgetExceeded     = "BudgetExceeded"
	NoticeSessionQuarantined = "SessionQuarantined"
)

// SessionOpened is the data of the first notice.
type SessionOpened struct {
	Install codec.Hash `json:"install"` // of the pinned install record
	Rules   int        `json:"rules"`
}

// RunPlaced is the data of RunQueued and RunStarted.
type RunPlaced struct {
	Run        uint32 `json:"run"`
	Seq        uint64 `json:"seq"` // of its RunRequested
	Provider   string `json:"provider"`
	Model      string `json:"model"`
	Submission string `json:"submission,omitempty"`
	// Ignored are names in `disable` of a client's request that the registry did not
	// have: they disable nothing. The first notice about the run has them.
	Ignored []string `json:"ignored,omitempty"`
}

// placed returns a notice's data for a run that waits or starts.
func (r *Run) placed(ignored ...string) RunPlaced {
	return RunPlaced{Run: r.Number, Seq: r.Seq, Provider: r.Config.Provider, Model: r.Config.Model, Submission: r.Submission, Ignored: ignored}
}

// RunFinished is the data of the notice that ends a run. If the output's JSON does
// not fit a notice (256 KiB of text can be 1.5 MiB of it), OutputSeq replaces it:
// the event of that sequence has it, as `text`.
type RunFinished struct {
	Run          uint32      `json:"run"`
	Lifecycle    Lifecycle   `json:"lifecycle"` // completed, failed, cancelled, interrupted
	Code         string      `json:"code,omitempty"`
	Detail       string      `json:"detail,omitempty"`
	FinishReason string      `json:"finish_reason,omitempty"` // of the answer that ended the run, or with which it waited for input, unless that is FinishStop
	Output       *Content    `json:"output,omitempty"`
	OutputSeq    uint64      `json:"output_seq,omitempty"` // 0: the output is in Output, or there is none
	Usage        UsageTotal  `json:"usage"`
	Cost         int64       `json:"cost,omitempty"`           // micro-units
	OverBudget   *OverBudget `json:"over_budget,omitempty"`    // absent: the run ended within its budget
	Untaken      []uint64    `json:"untaken_steers,omitempty"` // sequences of steers that a cancelled run did not take
}

// ApprovalRequested is the data of the notice that a call waits for a person.
type ApprovalRequested struct {
	Call         string `json:"call"` // r1t2c0
	ToolID       string `json:"tool_id"`
	ToolName     string `json:"tool_name"`
	Arguments    string `json:"arguments,omitempty"`     // JSON text, as the model wrote it
	ArgumentsSeq uint64 `json:"arguments_seq,omitempty"` // replaces arguments too large for a notice: the event that has them
	ArgsHash     string `json:"args_hash"`               // hex; the decision names it
	Deadline     int64  `json:"deadline"`                // Unix ms; the call is denied then

	Grant *ApprovalGrant `json:"grant,omitempty"` // of the pack that the call enables
	Pack  *ApprovalPack  `json:"pack,omitempty"`  // the pack itself, as it was read
}

// OverBudget is by how much a run exceeded its budget: the first exceeded one, in
// the order of BudgetExceeded.
type OverBudget struct {
	Budget string `json:"budget" msgpack:"budget"` // tokens, cost, session_tokens, session_cost
	Limit  int64  `json:"limit" msgpack:"limit"`
	Used   int64  `json:"used" msgpack:"used"` // more than the limit
}

// BudgetExceeded is the data of the notice that a run is paused because a budget is
// too small for its next turn: usage plus the estimate of the turn's input are at
// least the limit.
type BudgetExceeded struct {
	Run      uint32 `json:"run"`
	Budget   string `json:"budget"` // tokens, cost, session_tokens, session_cost
	Limit    int64  `json:"limit"`
	Used     int64  `json:"used"`
	Estimate int64  `json:"estimate"` // of the next turn's input: tokens, or their cost
}

// EventRejected is the data of the notice about an event that had no effect.
type EventRejected struct {
	Seq    uint64    `json:"seq"`
	Type   string    `json:"type,omitempty"` // absent if undecodable
	Code   Rejection `json:"code"`
	Detail string    `json:"detail,omitempty"`
}

// ToolRejected is the data of the notice about a call that was not run: the session
// did not open it, or its executor refused it (IsRefusedCode).
type ToolRejected struct {
	Effect   string `json:"effect"` // its name, or the name that it would have had
	ToolName string `json:"tool_name"`
	Code     string `json:"code"`
	Detail   string `json:"detail,omitempty"`
}

// CallsPlanned is the data of the notice that a group with calls for a host loop
// has begun. It is published for the first group of every batch with such calls,
// and for each later group with some.
type CallsPlanned struct {
	Batch    string   `json:"batch"`
	PlanHash string   `json:"plan_hash"`
	Groups   [][]int  `json:"groups"` // indexes of calls
	Group    int      `json:"group"`  // the group that has begun
	Calls    []string `json:"calls"`  // names of the calls that the host loop must run now
}

// SessionQuarantined is the data of the notice that a session is stopped. The
// session-actor publishes it, not the fold, so it has no number.
type SessionQuarantined struct {
	Reason string `json:"reason"`
}

// noticeJSON is a notice's form on refold.out.<sid>.
type noticeJSON struct {
	V       int    `json:"v"`
	N       uint64 `json:"n,omitempty"`
	Type    string `json:"type"`
	Session string `json:"session"`
	Seq     uint64 `json:"seq"`
	At      int64  `json:"at"`
	Data    any    `json:"data"`
}

// JSON returns the notice's JSON, at most NoticeBytesMax bytes. Markup is not
// escaped: escaping is for pages, and would make six bytes of one.
func (n Notice) JSON() []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(noticeJSON{V: Version, N: n.N, Type: n.Type, Session: n.Session, Seq: n.Seq, At: n.At, Data: n.Data})
	if err != nil {
		panic("session: a notice does not encode: " + err.Error())
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// jsonBytesMax is an upper bound of the size of c's JSON. It does not use an
// encoder: the fold decides by this number, and encoders may change what they
// escape.
func (c *Content) jsonBytesMax() int {
	const keys = len(`{"blob":"","media_type":"","name":"","parts":[],"size":,"text":""},`) + len(`sha256-`) + 2*len(codec.Hash{}) + 20
	n := keys + jsonTextBytesMax(c.Text) + jsonTextBytesMax(c.MediaType) + jsonTextBytesMax(c.Name)
	for i := range c.Parts {
		n += c.Parts[i].jsonBytesMax()
	}
	return n
}

// jsonTextBytesMax is an upper bound of the size of a text in JSON.
func jsonTextBytesMax(text string) int {
	n := len(text)
	for _, c := range []byte(text) {
		switch {
		case c == '"', c == '\\', c == '\n', c == '\r', c == '\t':
			n++
		case c < ' ':
			n += len(`\u0000`) - 1
		case c == 0xE2: // begins the two separators that are escaped, of three bytes each
			n += len(`\u2028`) - 3
		}
	}
	return n
}

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
	s.changeTurnSettled(func(d *TurnSettled) { d.Invalid = problem })
}

// turnRetries adds the time of the next attempt to the latest progress, which
// reports a failed attempt.
func (s *State) turnRetries(at int64) {
	s.changeTurnSettled(func(d *TurnSettled) { d.RetryAt = at })
}

// changeTurnSettled changes the latest progress, if it reports a turn.
func (s *State) changeTurnSettled(change func(*TurnSettled)) {
	last := len(s.progress) - 1
	if last < 0 {
		return
	}
	if d, ok := s.progress[last].Data.(TurnSettled); ok {
		change(&d)
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
