package session

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/refold/refold/actors/sentence"
	"github.com/refold/refold/codec"
)

// Notice is a message from the fold about one event. Notices are numbered per
// session from 1 without gaps; a repeat has the same number. Observers read them as
// JSON on refold.out.<sid>:
// {"v":1,"n":3,"type":"RunFinished","session":"s1","seq":41,"at":…,"data":{…}}.
type Notice struct {
	N       uint64 // 0 on SessionChanged, on the two notices that no fold publishes, and on progress
	Type    string
	Seq     uint64 // of its event
	At      int64  // session clock, Unix milliseconds
	Session string
	Data    any      // one of the structs below
	Summary *Summary // of the last notice about an event; else nil
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
	NoticeModelChanged       = "ModelChanged"
	NoticeContextCleared     = "ContextCleared"
	NoticeContextCompacted   = "ContextCompacted"
	NoticeContextCut         = "ContextCut"
	NoticeLimitNear          = "LimitNear"
	NoticeScheduleSkipped    = "ScheduleSkipped"
	NoticeSchedulePaused     = "SchedulePaused"
	NoticeSessionChanged     = "SessionChanged"
	NoticeSessionQuarantined = "SessionQuarantined"
	NoticeSessionReleased    = "SessionReleased"
)

// SessionOpened says that the session has its first event. This is always the first
// notice.
type SessionOpened struct {
	// SHA-256 of the canonical bytes of the install record that the session pinned, for
	// life.
	Install codec.Hash `json:"install"`
	// Version of the rules that the session follows.
	Rules int `json:"rules" lim:"1.."`
}

// RunPlaced is the data of RunQueued and RunStarted.
type RunPlaced struct {
	// The number of the run; runs count from 1.
	Run uint32 `json:"run" lim:"1.."`
	// Sequence of the event with its input.
	Seq uint64 `json:"seq" lim:"1.."`
	// The target of the run's generations.
	Provider string `json:"provider" lim:"@token"`
	// The provider's name of the model, as the run's config has it.
	Model string `json:"model" lim:"1..NameBytesMax"`
	// The submission of the request.
	Submission string `json:"submission,omitempty" lim:"..IDBytesMax"`
	// The firing of a schedule that requested it.
	Scheduled *Scheduled `json:"scheduled,omitempty"`
	// Names in disable of a client's request that the registry does not have. Only the
	// first notice about the run has them.
	Ignored []string `json:"ignored,omitempty" lim:"..NamesMax,item=..NameBytesMax"`
}

// placed returns a notice's data for a run that waits or starts.
func (r *Run) placed(ignored ...string) RunPlaced {
	return RunPlaced{Run: r.Number, Seq: r.Seq, Provider: r.Config.Provider, Model: r.Config.Model, Submission: r.Submission, Scheduled: r.Scheduled, Ignored: ignored}
}

// RunFinished says that a run ended.
//
// If the output's JSON does not fit a notice (256 KiB of text can be 1.5 MiB of it),
// OutputSeq replaces it: the event of that sequence has it, as `text`.
type RunFinished struct {
	// The number of the run.
	Run uint32 `json:"run" lim:"1.."`
	// How the run ended.
	Lifecycle Lifecycle `json:"lifecycle" lim:"enum=completed|failed|cancelled|interrupted"`
	// Why it ended: one of the session's codes, the model's error code, or that of
	// RunCompleted or RunFailed.
	Code string `json:"code,omitempty" lim:"1..CodeBytesMax"`
	// Detail for people.
	Detail string `json:"detail,omitempty" lim:"..DetailBytesMax"`
	// Why the answer that ended the run ended, or the one with which it waited for input,
	// if not by stop: length, content_filter, refusal, empty, thoughts_only, tool_calls,
	// or the provider's own word.
	FinishReason string `json:"finish_reason,omitempty" lim:"..NameBytesMax"`
	// The model's last text: of a completed run, or of a run that was interrupted while
	// the text arrived.
	Output *Content `json:"output,omitempty"`
	// Instead of an output that is too large for a notice, or that an earlier event has,
	// as for a run that waited for input: the event that has it, as `text`.
	OutputSeq uint64 `json:"output_seq,omitempty" lim:"1.."`
	// Usage of the run.
	Usage UsageTotal `json:"usage"`
	// Cost of the run, in micro-units by its prices; 0 if absent.
	Cost int64 `json:"cost,omitempty" lim:"0.."`
	// The budget that was exceeded. Absent: the run ended within its budget.
	OverBudget *OverBudget `json:"over_budget,omitempty"`
	// Sequences of the steers that a cancelled run did not take.
	Untaken []uint64 `json:"untaken_steers,omitempty" lim:"..SteersMax,item=1.."`
}

// ApprovalRequested says that a call waits for a person.
type ApprovalRequested struct {
	// The call's name.
	Call string `json:"call" lim:"@call"`
	// The tool.
	ToolID string `json:"tool_id" lim:"@tool_id"`
	// The tool's name as the model wrote it, cut at 128 bytes.
	ToolName string `json:"tool_name" lim:"..NameBytesMax"`
	// The arguments, as JSON text that the model wrote.
	Arguments string `json:"arguments,omitempty" lim:"any"`
	// In place of arguments that are too large for a notice: sequence of the
	// ToolCallsObserved that holds them.
	ArgumentsSeq uint64 `json:"arguments_seq,omitempty" lim:"1.."`
	// SHA-256 of the text of the arguments. The decision names it.
	ArgsHash string `json:"args_hash" lim:"@hash"`
	// Unix milliseconds. The call is then refused, approval_expired.
	Deadline int64 `json:"deadline"`

	// The grant under which the call would enable a pack.
	Grant *ApprovalGrant `json:"grant,omitempty"`
	// Of a call of `extensions_enable`: the pack itself, as it was read.
	Pack *ApprovalPack `json:"pack,omitempty"`
}

// OverBudget is the budget that a run exceeded, and by how much.
//
// It is the first exceeded one, in the order of BudgetExceeded.
type OverBudget struct {
	// The field of the run's budget, the first in this order.
	Budget string `json:"budget" msgpack:"budget" lim:"enum=tokens|cost|session_tokens|session_cost"`
	// The limit, in tokens or micro-units.
	Limit int64 `json:"limit" msgpack:"limit" lim:"1.."`
	// What was used, in the same unit: more than the limit.
	Used int64 `json:"used" msgpack:"used" lim:"2.."`
}

// BudgetExceeded says that a run is paused because a budget does not suffice for its
// next turn.
//
// Usage and the estimate of the turn's input are together at least the limit.
type BudgetExceeded struct {
	// The number of the run.
	Run uint32 `json:"run" lim:"1.."`
	// The field of the run's budget.
	Budget string `json:"budget" lim:"enum=tokens|cost|session_tokens|session_cost"`
	// The limit, in tokens or micro-units.
	Limit int64 `json:"limit" lim:"1.."`
	// What was used, in the same unit.
	Used int64 `json:"used" lim:"0.."`
	// About how much of it the input of the next turn takes: tokens, or their cost.
	Estimate int64 `json:"estimate" lim:"0.."`
}

// ModelChanged says that a model failed, and that another one of the run's config is asked
// in its place.
type ModelChanged struct {
	// The number of the run.
	Run uint32 `json:"run" lim:"1.."`
	// The generation that failed.
	Effect string `json:"effect" lim:"@generation"`
	// Code of the failure.
	Code string `json:"code" lim:"..CodeBytesMax"`
	// Its provider.
	FromProvider string `json:"from_provider" lim:"@token"`
	// Its model.
	FromModel string `json:"from_model" lim:"any"`
	// The provider that is asked from now on.
	Provider string `json:"provider" lim:"@token"`
	// The model that is asked from now on.
	Model string `json:"model" lim:"any"`
}

// ContextCleared says that results of earlier calls are not shown to the model any more:
// one line stands in the place of each.
type ContextCleared struct {
	// The number of the run.
	Run uint32 `json:"run" lim:"1.."`
	// The results that were cleared.
	Results int `json:"results" lim:"1.."`
	// Estimated tokens of the next generation before.
	TokensBefore int64 `json:"tokens_before" lim:"0.."`
	// Estimated tokens of the next generation now.
	Tokens int64 `json:"tokens" lim:"0.."`
}

// ContextCompacted says that a summary took the place of the oldest turns in the window.
// They stay in the log.
type ContextCompacted struct {
	// The number of the run.
	Run uint32 `json:"run" lim:"1.."`
	// The generation that wrote the summary.
	Effect string `json:"effect" lim:"@generation"`
	// The messages that left the window.
	Items int `json:"items" lim:"0.."`
	// Usage of the generation.
	Usage UsageTotal `json:"usage"`
	// Sequence of the GenerationSettled whose text is the summary.
	SummarySeq uint64 `json:"summary_seq" lim:"1.."`
	// Estimated tokens of the next generation before.
	TokensBefore int64 `json:"tokens_before" lim:"0.."`
	// Estimated tokens of the next generation now.
	Tokens int64 `json:"tokens" lim:"0.."`
}

// ContextCut says that the oldest turns left the window. They stay in the log.
type ContextCut struct {
	// The number of the run.
	Run uint32 `json:"run" lim:"1.."`
	// The messages that left the window.
	Items int `json:"items" lim:"1.."`
	// Estimated tokens of the next generation before.
	TokensBefore int64 `json:"tokens_before" lim:"0.."`
	// Estimated tokens of the next generation now.
	Tokens int64 `json:"tokens" lim:"0.."`
}

// EventRejected says that an event had no effect: only the head of the state has
// changed.
type EventRejected struct {
	// Sequence of the event.
	Seq uint64 `json:"seq" lim:"1.."`
	// Type of the event; absent if it could not be read.
	Type string `json:"type,omitempty" lim:"..IDBytesMax"`
	// Why the event was rejected.
	Code Rejection `json:"code"`
	// For people.
	Detail string `json:"detail,omitempty" lim:"..DetailBytesMax"`
}

// ToolRejected says that a call of the model does not run: the session did not open
// it, or a bridge or host loop refused it. The model is shown code and detail as its
// result.
//
// Of an executor's refusals it names those of IsRefusedCode.
type ToolRejected struct {
	// The name of the call; if it was not opened, the name that it would have had.
	Effect string `json:"effect" lim:"@call"`
	// The tool's name as the model wrote it, cut at 128 bytes.
	ToolName string `json:"tool_name" lim:"..NameBytesMax"`
	// See Codes: one of the first six results, `limit_exceeded` of a `skill_load`, or one
	// of Refused calls.
	Code string `json:"code" lim:"enum=tool_unknown|tool_disabled|tool_unavailable|tool_unbound|tool_denied|invalid_arguments|tool_changed|tool_gone|tool_not_pinned|tool_not_served|service_refused|limit_exceeded"`
	// For the model; of a settlement's detail, the beginning.
	Detail string `json:"detail,omitempty" lim:"..DetailBytesMax"`
}

// CallsPlanned says that a group of calls has begun, and a host loop carries some of
// the batch out: see the view.
//
// It is published for the first group of every batch with such calls, and for each
// later group with some.
type CallsPlanned struct {
	// The turn that made the calls.
	Batch string `json:"batch" lim:"@turn"`
	// BLAKE2b-256 of the plan. Repeat it in the settlement.
	PlanHash string `json:"plan_hash" lim:"@hash"`
	// The plan: positions of calls that may run concurrently, group by group.
	Groups [][]int `json:"groups" lim:"item=item=0.."`
	// The group that has begun.
	Group int `json:"group" lim:"0.."`
	// The calls that the host loop carries out now. Empty: it has calls in a later group
	// only.
	Calls []string `json:"calls" lim:"..CallsMax,item=@call"`
}

// SessionQuarantined says that a session-actor stopped the session, which can't go on
// without doing harm. Its events are kept.
//
// The session-actor publishes it, not the fold, so it has no number.
type SessionQuarantined struct {
	// Why the session is stopped.
	Reason string `json:"reason" lim:"any"`
}

// SessionChanged says that an event without another notice changed the lifecycle of the
// run, whether the session waits for a person, or whether it is closed.
//
// It has no number, and its data is empty.
type SessionChanged struct{}

// SessionReleased says that the quarantine of the session has ended.
//
// The session-actor publishes it, not the fold, so it has no number.
type SessionReleased struct{}

// NewQuarantined returns the notice that a session is stopped before the event at seq.
// last is the summary of its notice before.
func NewQuarantined(sid string, seq uint64, at int64, reason string, last Summary) Notice {
	last.Quarantined = true
	return Notice{Type: NoticeSessionQuarantined, Seq: seq, At: at, Session: sid, Data: SessionQuarantined{Reason: reason}, Summary: &last}
}

// NewReleased returns the notice that a session, stopped before the event at seq, goes
// on. last is the summary of its notice before.
func NewReleased(sid string, seq uint64, at int64, last Summary) Notice {
	last.Quarantined = false
	return Notice{Type: NoticeSessionReleased, Seq: seq, At: at, Session: sid, Data: SessionReleased{}, Summary: &last}
}

// noticeJSON is a session's report about one event: a line of a message on
// refold.out.<session>.
type noticeJSON struct {
	// Version of the protocol.
	V int `json:"v" lim:"=1"`
	// Number of the notice: counts from 1 in each session, without gaps. A repeat has the
	// same number.
	N uint64 `json:"n,omitempty" lim:"1.."`
	// Type of the notice.
	Type string `json:"type" lim:"any"`
	// The session.
	Session string `json:"session" lim:"@session"`
	// Sequence of the event in REFOLD_LOG.
	Seq uint64 `json:"seq" lim:"1.."`
	// The session's clock, Unix milliseconds.
	At int64 `json:"at"`
	// The body, according to type.
	Data any `json:"data" lim:"object"`
	// What a list shows of the session. The last notice about an event has it.
	Summary *Summary `json:"summary,omitempty"`
}

// JSON returns the notice's JSON, at most NoticeBytesMax bytes. Markup is not
// escaped: escaping is for pages, and would make six bytes of one.
func (n Notice) JSON() []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(noticeJSON{V: Version, N: n.N, Type: n.Type, Session: n.Session, Seq: n.Seq, At: n.At, Data: n.Data, Summary: n.Summary})
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

// TurnSettled says that an attempt at a turn has ended: it was settled, or its
// deadline passed.
//
// A turn that ends its run, or that was open in a cancelled run, is reported by
// RunFinished alone.
type TurnSettled struct {
	Effect string `json:"effect" lim:"@generation"`
	// Number of calls that the model made.
	Calls int `json:"calls,omitempty" lim:"1.."`
	// The beginning of the model's text.
	Text string `json:"text,omitempty" lim:"..ProgressTextMax"`
	// The length of the whole text in bytes, if `text` is not all; a blob without a size
	// counts as 1.
	TextBytes int64 `json:"text_bytes,omitempty" lim:"1.."`
	// Why the answer ended, as its settlement says.
	FinishReason string `json:"finish_reason,omitempty" lim:"..NameBytesMax"`
	// Code of a failed turn.
	Code string `json:"code,omitempty" lim:"..CodeBytesMax"`
	// The same as code, for people.
	Detail string `json:"detail,omitempty" lim:"..DetailBytesMax"`
	// Why the text does not fit the schema of the response_format: another turn asks the
	// model to repair it.
	Invalid string `json:"invalid,omitempty" lim:"..DetailBytesMax"`
	// Unix milliseconds: when the failed turn is attempted again.
	RetryAt int64 `json:"retry_at,omitempty"`
	// Usage of this attempt.
	Usage UsageTotal `json:"usage"`
}

// CallSettled says that a call has its result.
type CallSettled struct {
	Effect string `json:"effect" lim:"@call"`
	// The tool's name as the model wrote it.
	ToolName string `json:"tool_name" lim:"..NameBytesMax"`
	// How the call ended.
	Status CallStatus `json:"status" lim:"enum=succeeded|failed|cancelled|outcome_unknown|ignored"`
	// Code of the error, or of a result that the session gave.
	Code string `json:"code,omitempty" lim:"..CodeBytesMax"`
	// The same as code, for people.
	Detail string `json:"detail,omitempty" lim:"..DetailBytesMax"`
	// Duration, as the settlement reports it.
	DurationMS int64 `json:"duration_ms,omitempty" lim:"1.."`
	// The beginning of the output.
	Output string `json:"output,omitempty" lim:"..ProgressOutputMax"`
	// The length of the whole output in bytes, if `output` is not all; a blob without a
	// size counts as 1.
	OutputBytes int64 `json:"output_bytes,omitempty" lim:"1.."`
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
	s.text = text
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
		addProgress(s, ProgressTurnSettled, TurnSettled{Effect: s.generationName(), Code: f.Code, Detail: f.Detail})
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
	d := CallSettled{Effect: callName(t.Run, t.Number, i), ToolName: c.ToolName, Status: c.Status, Code: c.Code, Detail: c.Detail.String()}
	if b != nil {
		d.DurationMS = max(0, b.DurationMS)
		if b.Error != nil {
			d.Code, d.Detail = b.Error.Code, sentence.Clip(b.Error.Detail, DetailBytesMax)
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
