package session

import (
	"cmp"
	"strconv"

	"github.com/refold/refold/actors/sentence"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// Calls that need no program: a call of the kind reply is open until somebody answers
// it, and one of the kind sleep until its time has come. Both are planned, approved,
// cancelled and shown as all calls are, and no effect is opened for them.

// TypeReplyGiven is the event that answers a call.
const TypeReplyGiven = "ReplyGiven"

// NoticeReplyRequested says that a call waits for a reply.
const NoticeReplyRequested = "ReplyRequested"

// ReplyGiven answers a call whose tool is of the kind `reply`.
//
//wire:example {"args_hash": "c16a792252ef51bb3fabc4bf5fd8f13090667313727e1918af4ed5cb101c2b7c", "call": "r1t1c0", "output": {"text": "paid"}}
type ReplyGiven struct {
	// Hash of the arguments that were answered, as in ReplyRequested and in the view. With
	// another one the reply is `stale`.
	ArgsHash string `msgpack:"args_hash" lim:"@hash"`
	// The call that waits.
	Call string `msgpack:"call" lim:"@call"`
	// In place of an output: nobody will answer, and why. The call fails, `declined`.
	Declined string `msgpack:"declined,omitempty" lim:"..DetailBytesMax"`
	// The answer. Where the tool or the call has a schema for it, it is one JSON text that
	// fits; any other is `invalid_data`, and the call continues to wait.
	Output *Content `msgpack:"output,omitempty" lim:"filled"`
}

// ReplyRequested says that a call waits for a reply: the session goes on when it is
// answered, by anybody who may.
type ReplyRequested struct {
	// The call's name.
	Call string `json:"call" lim:"@call"`
	// The tool.
	ToolID string `json:"tool_id" lim:"@tool_id"`
	// The tool's name as the model wrote it, cut at 128 bytes.
	ToolName string `json:"tool_name" lim:"..NameBytesMax"`
	// The arguments, as JSON text.
	Arguments string `json:"arguments,omitempty" lim:"any"`
	// In place of arguments that are too large for a notice: sequence of the event that
	// holds them.
	ArgumentsSeq uint64 `json:"arguments_seq,omitempty" lim:"1.."`
	// SHA-256 of the text of the arguments. The reply names it.
	ArgsHash string `json:"args_hash" lim:"@hash"`
	// Who may answer: `clients`, or `approvers` alone.
	By string `json:"by" lim:"enum=approvers|clients"`
	// Unix milliseconds. The call then fails, `deadline_exceeded`.
	Deadline int64 `json:"deadline"`
}

// Settled returns the result that a reply gives its call.
func (b *ReplyGiven) Settled() ToolCallSettled {
	if b.Output == nil {
		return ToolCallSettled{Effect: b.Call, Status: string(CallFailed), Error: &Fault{Code: CodeDeclined, Detail: b.Declined}}
	}
	return ToolCallSettled{Effect: b.Call, Status: string(CallSucceeded), Output: b.Output}
}

// kindOf returns the kind of executor of a call of the latest turn; "" for a call of a
// tool that the registry lacks.
func (s *State) kindOf(c *Call) string {
	if t, known := s.turnRegistry.Lookup(c.ToolID); known {
		return s.turnRegistry.Tool(t).Executor.Kind
	}
	return ""
}

// isUnbridged reports whether a call waits without a bridge: for a host loop, another
// session, a reply or the time.
func (s *State) isUnbridged(c *Call) bool { return s.isHostLoop(c) || s.isChild(c) || s.needsNobody(c) }

// needsNobody reports whether no program carries a call out: it waits for a reply or
// the time.
func (s *State) needsNobody(c *Call) bool {
	kind := s.kindOf(c)
	return kind == planner.ExecutorReply || kind == planner.ExecutorSleep
}

// waitArguments are the arguments that the session itself reads, of calls of the kinds
// reply and sleep.
type waitArguments struct {
	schema  codec.Raw // of the answer
	seconds int64     // 0: not given
	until   int64     // Unix ms; 0: not given
}

// readWait reads the arguments of a call, or says what is wrong with them.
func readWait(kind, arguments string) (w waitArguments, problem string) {
	raw, err := codec.FromJSON([]byte(arguments))
	if err != nil {
		return w, "are no JSON"
	}
	if field, given := fieldOf(raw, "until"); given {
		var text string
		ok := codec.Decode(field, &text) == nil
		if ok {
			w.until, ok = readMoment(text)
		}
		if !ok {
			return w, "until: is a time as in 2026-11-29T23:00:00Z"
		}
	}
	if kind == planner.ExecutorReply {
		w.schema, _ = fieldOf(raw, "answer_schema")
		return w, ""
	}
	field, given := fieldOf(raw, "seconds")
	switch most := int64(LongMaxMS / 1000); {
	case given == (w.until != 0):
		return w, "give either seconds or until"
	case given && (codec.Decode(field, &w.seconds) != nil || w.seconds < 1 || w.seconds > most):
		return w, "seconds: is a whole number from 1 to " + strconv.FormatInt(most, 10)
	}
	return w, ""
}

// waitFault returns why a call of the kinds reply and sleep can't wait as its arguments
// say.
func (s *State) waitFault(toolID, arguments string, checker *planner.Checker) planner.Rejection {
	c := Call{ToolID: toolID}
	if !s.needsNobody(&c) {
		return planner.Rejection{}
	}
	w, problem := readWait(s.kindOf(&c), cmp.Or(arguments, "{}"))
	if problem == "" && len(w.schema) > 0 {
		if problem = checker.AnswerProblem(w.schema); problem != "" {
			problem = "answer_schema: " + problem
		}
	}
	if problem == "" {
		return planner.Rejection{}
	}
	return planner.Rejection{Code: planner.InvalidArguments, Detail: sentence.Clip(problem, DetailBytesMax)}
}

// waitDeadline returns how long a call of the kinds reply and sleep is open, in
// milliseconds.
func (s *State) waitDeadline(c *Call) int64 {
	kind := s.kindOf(c)
	w, _ := readWait(kind, c.Arguments) // checked when it was planned
	most := int64(LongMaxMS)
	if kind == planner.ExecutorReply {
		most = ReplyDefaultMS
		if d := s.Run.Config.DeadlinesMS; d != nil && d.Reply > 0 {
			most = d.Reply
		}
	}
	switch {
	case w.seconds > 0:
		return w.seconds * 1000
	case w.until > 0:
		return min(most, max(w.until-s.Clock, 1000))
	}
	return most
}

// replyRequested asks for the answer to call i, which is open.
func (s *State) replyRequested(i int) {
	t := s.Turn
	c := &t.Batch.Calls[i]
	d := ReplyRequested{
		Call: callName(t.Run, t.Number, i), ToolID: c.ToolID, ToolName: c.ToolName, Arguments: c.Arguments,
		ArgsHash: c.argsHash(), By: s.tool(c.ToolID).Executor.By, Deadline: c.Deadline,
	}
	if jsonTextBytesMax(c.Arguments) > NoticeBytesMax-noticeFixedBytesMax {
		d.Arguments, d.ArgumentsSeq = "", cmp.Or(c.Edit, t.Batch.Seq)
	}
	notify(s, NoticeReplyRequested, d)
}

// argsHash returns the SHA-256 of a call's arguments, as text.
func (c *Call) argsHash() string { return codec.Sum([]byte(c.Arguments)).String() }

// replyGiven answers a call that waits for a reply.
func (s *State) replyGiven(door Door, data codec.Raw) *refusal {
	var b ReplyGiven
	if bad := decodeContent(data, "output", &b); bad != nil {
		return bad
	}
	if (b.Output == nil) == (b.Declined == "") {
		return refuse(RejectInvalidData, "output: give it, or declined in its place")
	}
	if bad := contentFault("output", b.Output, false); bad != nil {
		return bad
	}
	result := b.Settled()
	i, isRepeat, bad := s.replyTo(door, &b, &result)
	if bad != nil || isRepeat {
		return bad
	}
	if bad := s.answerFault(&s.Turn.Batch.Calls[i], b.Output); bad != nil {
		return bad
	}
	s.takeResult(i, &result)
	s.closeGroup()
	return nil
}

// replyTo returns the call that waits for a reply. isRepeat means that the call already
// has this very answer.
func (s *State) replyTo(door Door, b *ReplyGiven, result *ToolCallSettled) (i int, isRepeat bool, bad *refusal) {
	p, isOver, bad := s.callNamed(b.Call)
	switch {
	case bad != nil:
		return 0, false, bad
	case isOver:
		done := s.Done
		isRepeat = done != nil && done.Run == p.run && done.Turn == p.turn && int(p.n) < len(done.Results) && done.Results[p.n] == result.result()
		if !isRepeat {
			bad = refuse(RejectStale, b.Call+" ended long ago")
		}
		return 0, isRepeat, bad
	}
	switch c := &s.Turn.Batch.Calls[p.n]; {
	case s.kindOf(c) != planner.ExecutorReply:
		bad = refuse(RejectIllegalTransition, b.Call+" takes no reply: its tool is of another kind")
	case door == DoorIn && s.tool(c.ToolID).Executor.By != planner.ByClients:
		bad = refuse(RejectNotPermitted, "approvers alone may answer "+b.Call+", through the door "+string(DoorApprove))
	case c.done() && c.Result == result.result():
		isRepeat = true
	case c.done():
		bad = refuse(RejectStale, b.Call+" has a result: it is "+string(c.Status))
	case c.Status != CallOpen:
		bad = refuse(RejectIllegalTransition, b.Call+" has not begun: it waits for its group, or for a person")
	case b.ArgsHash != c.argsHash():
		bad = refuse(RejectStale, "args_hash: must be that of the waiting call, "+c.argsHash())
	}
	return int(p.n), isRepeat, bad
}

// answerFault refuses an answer that does not fit the schema of call c's tool, or the one
// in its arguments. Any answer may decline.
func (s *State) answerFault(c *Call, output *Content) *refusal {
	if output == nil {
		return nil
	}
	w, _ := readWait(planner.ExecutorReply, c.Arguments)
	for _, schema := range []codec.Raw{s.tool(c.ToolID).Executor.ResultSchema, w.schema} {
		if len(schema) == 0 {
			continue
		}
		if problem := schemaProblem(schema, output); problem != "" {
			return refuse(RejectInvalidData, "output: "+problem.String())
		}
	}
	return nil
}

// waitIsOver ends open call i of the kinds reply and sleep, whose time has come.
func (s *State) waitIsOver(i int) {
	c := &s.Turn.Batch.Calls[i]
	if s.kindOf(c) == planner.ExecutorReply {
		s.endCall(i, CallFailed, CodeDeadlineExceeded, sentence.Say(sentence.NotAnswered))
		return
	}
	s.endCall(i, CallSucceeded, CodeSlept, sentence.Say(sentence.Slept, strconv.FormatInt((s.Clock-c.At+500)/1000, 10)))
}

// readMoment reads a time as RFC 3339 writes it, in Unix milliseconds without fractions
// of a second. It takes the years 1970 to 9999.
func readMoment(text string) (ms int64, ok bool) {
	const form = "2006-01-02T15:04:05"
	if len(text) <= len(form) {
		return 0, false
	}
	var at [6]int64 // year, month, day, hour, minute, second
	for i, field := range [...]struct{ from, to int }{{0, 4}, {5, 7}, {8, 10}, {11, 13}, {14, 16}, {17, 19}} {
		if at[i], ok = digits(text[field.from:field.to]); !ok {
			return 0, false
		}
	}
	for i, c := range []byte(form) {
		if (c < '0' || c > '9') && text[i]|0x20 != c|0x20 {
			return 0, false
		}
	}
	zone := text[len(form):]
	if zone[0] == '.' {
		n := 1
		for n < len(zone) && zone[n] >= '0' && zone[n] <= '9' {
			n++
		}
		if n == 1 {
			return 0, false
		}
		zone = zone[n:]
	}
	offset, ok := readZone(zone)
	leap := at[0]%4 == 0 && at[0]%100 != 0 || at[0]%400 == 0
	days := [...]int64{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}
	if leap {
		days[1]++
	}
	if !ok || at[0] < 1970 || at[1] < 1 || at[1] > 12 || at[2] < 1 || at[2] > days[at[1]-1] || at[3] > 23 || at[4] > 59 || at[5] > 59 {
		return 0, false
	}
	y := at[0] - 1
	day := y*365 + y/4 - y/100 + y/400 - 719_162 // days from 1970-01-01 to the year's first
	for _, n := range days[:at[1]-1] {
		day += n
	}
	seconds := (day+at[2]-1)*86_400 + at[3]*3600 + at[4]*60 + at[5] - offset
	return seconds * 1000, seconds > 0
}

// readZone reads Z or an offset such as +01:00, in seconds.
func readZone(zone string) (seconds int64, ok bool) {
	if zone == "Z" || zone == "z" {
		return 0, true
	}
	if len(zone) != len("+01:00") || zone[3] != ':' || zone[0] != '+' && zone[0] != '-' {
		return 0, false
	}
	hours, isHours := digits(zone[1:3])
	minutes, isMinutes := digits(zone[4:])
	if !isHours || !isMinutes || hours > 23 || minutes > 59 {
		return 0, false
	}
	seconds = hours*3600 + minutes*60
	if zone[0] == '-' {
		seconds = -seconds
	}
	return seconds, true
}

func digits(text string) (n int64, ok bool) {
	for _, c := range []byte(text) {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}
