package prompt

import (
	"context"
	"fmt"
	"iter"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
)

// Codes of results that can't be read again.
const (
	// CodeInvalidArguments is for what is no name of a call.
	CodeInvalidArguments = "invalid_arguments"
	// CodeOtherSession is for a call of another session.
	CodeOtherSession = "other_session"
	// CodeResultUnknown is for a call that the session never made.
	CodeResultUnknown = "result_unknown"
	// CodeResultPending is for a call that has no result yet.
	CodeResultPending = "result_pending"
	// CodeResultNotStored is for a call that the session itself ended, with a short text.
	CodeResultNotStored = "result_not_stored"
)

// Log is a Store in which events can be looked for.
type Log interface {
	Store
	// NextOf yields at most n events of sid through a door with sequences of at least
	// from, in order. It may end early if a replica lags.
	NextOf(ctx context.Context, door session.Door, sid string, from, n uint64) iter.Seq2[session.Event, error]
	// ReadSession yields the events of sid with sequences from from to to (0: no end), in
	// order, with leader all that were acknowledged.
	ReadSession(ctx context.Context, sid string, from, to uint64, leader bool) iter.Seq2[session.Event, error]
	// LastSeq returns the sequence of the log's last event.
	LastSeq(ctx context.Context) (uint64, error)
}

// Results finds results of calls in the log. It is safe for concurrent use.
type Results struct {
	log    Log
	reader *Reader
}

// NewResults returns the results in a log.
func NewResults(log Log) *Results { return &Results{log, New(log)} }

// Of returns the text of the result of a call of sid, as a model is shown it, but
// uncut: up to BlobBytesMax. Images and documents are the lines that name them. Of
// several settlements of the call it is the first. An *executor.Error says why there is
// none, and what to do; other errors are temporary.
//
// It costs some hundred reads at most, however long the session is.
func (r *Results) Of(ctx context.Context, sid, call string) (string, error) {
	call, target, index, err := parseCall(sid, call)
	if err != nil {
		return "", err
	}
	from, err := r.seek(ctx, sid, target)
	if err != nil {
		return "", fmt.Errorf("look for %s: %w", call, err)
	}
	calls := 0 // of the turn
	for e, err := range r.log.ReadSession(ctx, sid, from, 0, true) {
		if err != nil {
			return "", fmt.Errorf("look for %s: %w", call, err)
		}
		switch e.Door {
		case session.DoorLLM:
			key, made := settledTurn(e)
			if key > target && index < calls {
				return "", refusal(CodeResultNotStored, "the session itself ended %s, with a short text: there is nothing more to read", call)
			}
			if key > target {
				return "", unknownCall(call)
			}
			if key == target {
				calls = max(calls, made)
			}
		case session.DoorTool:
			if settled := settledIn(e, call); settled != nil {
				return r.text(ctx, e.Seq, settled)
			}
		}
	}
	if index < calls {
		return "", refusal(CodeResultPending, "%s has no result yet: read it in a later turn", call)
	}
	return "", unknownCall(call)
}

func refusal(code, format string, args ...any) error {
	return &executor.Error{Code: code, Detail: fmt.Sprintf(format, args...)}
}

func unknownCall(call string) error {
	return refusal(CodeResultUnknown, "this session has no call %s: its turns and calls have names such as r1t2c0, for run 1, turn 2, first call", call)
}

var callNames = regexp.MustCompile("^r([1-9][0-9]{0,9})t([1-9][0-9]{0,9})c([0-9]{1,4})$")

// parseCall parses the name of a call: r1t2c0, also after its session's name and a dot or
// a slash. key is that of its turn.
func parseCall(sid, call string) (name string, key uint64, index int, err error) {
	name = call
	if at := strings.LastIndexAny(call, "./"); at >= 0 {
		if name = call[at+1:]; call[:at] != sid && callNames.MatchString(name) {
			return "", 0, 0, refusal(CodeOtherSession, "only results of this session can be read: name a call without a session, such as %s", name)
		}
	}
	parts := callNames.FindStringSubmatch(name)
	if parts == nil {
		return "", 0, 0, refusal(CodeInvalidArguments, "call: must be a name such as r1t2c0, for run 1, turn 2, first call")
	}
	index, _ = strconv.Atoi(parts[3])
	return name, turnKey(parts), index, nil
}

// turnKey orders turns as the log has them. parts are those of callNames.
func turnKey(parts []string) uint64 {
	run, _ := strconv.ParseUint(parts[1], 10, 32) // a number that is too large is that of no turn
	turn, _ := strconv.ParseUint(parts[2], 10, 32)
	return run<<32 | turn
}

// settledTurn returns the turn of an event of a model, 0 if it is of none, and the number of
// calls that it made.
func settledTurn(e session.Event) (key uint64, calls int) {
	body, err := Body(e)
	if err != nil {
		return 0, 0
	}
	effect := ""
	switch b := body.(type) {
	case *session.ToolCallsObserved:
		effect, calls = b.Effect, len(b.Calls)
	case *session.GenerationSettled:
		effect = b.Effect
	}
	parts := callNames.FindStringSubmatch(batchOf(effect) + "c0")
	if parts == nil {
		return 0, 0
	}
	return turnKey(parts), calls
}

// settledIn returns the result of a call in an event, nil if it has none.
func settledIn(e session.Event, call string) *session.ToolCallSettled {
	body, err := Body(e)
	if err != nil {
		return nil
	}
	var all []session.ToolCallSettled
	switch b := body.(type) {
	case *session.ToolCallSettled:
		all = []session.ToolCallSettled{*b}
	case *session.ReplyGiven:
		all = []session.ToolCallSettled{b.Settled()}
	case *session.ChildSettled:
		all = []session.ToolCallSettled{b.Settled()}
	case *session.ToolBatchSettled:
		all = b.Results
	}
	for i := range all {
		if batchOf(all[i].Effect) == call {
			return &all[i]
		}
	}
	return nil
}

// lookedAt is how many settlements of turns are read at each step of a search. A late
// settlement, of a turn that is over, stands among those of later turns.
const lookedAt = 3

// seek returns a sequence from which on the settlements of a turn are, and before which
// there are none of later turns. It searches by bisection: turns settle in order, except
// for late settlements, which the session has rejected.
func (r *Results) seek(ctx context.Context, sid string, target uint64) (uint64, error) {
	last, err := r.log.LastSeq(ctx)
	if err != nil {
		return 0, err
	}
	low, high := uint64(1), last+1
	for low < high {
		middle := low + (high-low)/2
		latest, seq, err := r.turnFrom(ctx, sid, middle)
		switch {
		case err != nil:
			return 0, err
		case latest == 0, latest >= target: // the log may have none from there on
			high = middle
		default:
			low = max(middle, seq) + 1
		}
	}
	return low, nil
}

// turnFrom returns the latest of the first turns that settle from a sequence on, 0 if
// none does, and the sequence of the last event that it read.
func (r *Results) turnFrom(ctx context.Context, sid string, from uint64) (latest, seq uint64, err error) {
	turns, more := 0, true
	for more && turns < lookedAt {
		more = false
		for e, err := range r.log.NextOf(ctx, session.DoorLLM, sid, from, lookedAt) {
			if err != nil {
				return 0, 0, err
			}
			key, _ := settledTurn(e)
			if latest, seq, from, more = max(latest, key), e.Seq, e.Seq+1, true; key > 0 {
				turns++
			}
		}
	}
	return latest, seq, nil
}

// text returns the text of a result.
func (r *Results) text(ctx context.Context, seq uint64, settled *session.ToolCallSettled) (string, error) {
	var leaves []*session.Content
	if settled.Output != nil {
		leaves = leavesOf(settled.Output, nil)
	}
	var texts []string
	total := 0
	for _, leaf := range leaves {
		text, _, _, err := r.reader.upTo(ctx, seq, leaf, false, math.MaxInt)
		if err != nil {
			return "", err
		}
		if total += len(text); total > BlobBytesMax {
			texts = append(texts, fmt.Sprintf("[The rest is left out: the result has more than %d MiB.]", BlobBytesMax>>20))
			break
		}
		texts = append(texts, text)
	}
	text, _ := shownResult(&result{text: strings.Join(texts, "\n"), status: session.CallStatus(settled.Status), fault: settled.Error})
	return text, nil
}
