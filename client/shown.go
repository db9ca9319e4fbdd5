package client

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/refold/refold/actors/session"
)

// ShownKind is the kind of a Shown.
type ShownKind string

// The steps of a viewer. Each turn has any number of ShownText and ShownAgain, then
// ShownDone or ShownFailed, which a further attempt may follow.
const (
	ShownText   ShownKind = "text"   // Text continues the turn's text
	ShownAgain  ShownKind = "again"  // the turn began again: the text shown of it is void
	ShownDone   ShownKind = "done"   // the turn's text is complete: it is that of the event at Seq
	ShownFailed ShownKind = "failed" // the turn failed with Code, at Seq: its text is in no transcript
	ShownEnd    ShownKind = "end"    // the run ended, at Seq: Code is its lifecycle
	ShownEvent  ShownKind = "event"  // an event of the session, at Seq; of an EventViewer, and of a Follower
	ShownMissed ShownKind = "missed" // steps before it may be missing; only of a Follower
)

// Shown is one step of a Viewer.
type Shown struct {
	Kind ShownKind
	Run  uint32
	Turn uint32 // of the run; 0 in ShownEnd
	Text string // in ShownText, and never empty there
	Code string // in ShownFailed and ShownEnd
	Seq  uint64 // in the log; 0 in ShownText and ShownAgain

	Event *Folded // in ShownEvent
}

// Folded is an event and what it did. Of a Follower it is a notice about an event, or a
// progress: the event has no more than its session and its sequence, and State is nil.
type Folded struct {
	session.Event
	Notices  []session.Notice // EventRejected alone if it had no effect
	Progress []session.Notice // TurnSettled and CallSettled
	State    *session.State   // after it: read-only, and valid until the next step
}

// turnAttempt is one attempt at a turn: the effect r1t2a3 is the third one at
// turn 2 of run 1.
type turnAttempt struct{ run, turn, attempt uint32 }

func (a turnAttempt) compare(b turnAttempt) int {
	return cmp.Or(cmp.Compare(a.run, b.run), cmp.Compare(a.turn, b.turn), cmp.Compare(a.attempt, b.attempt))
}

func parseAttempt(effect string) (a turnAttempt, ok bool) {
	rest, ok := strings.CutPrefix(effect, "r")
	run, rest, found := strings.Cut(rest, "t")
	if !ok || !found {
		return a, false
	}
	turn, attempt, again := strings.Cut(rest, "a")
	if !again {
		attempt = "1"
	}
	for _, n := range []struct {
		text string
		to   *uint32
	}{{run, &a.run}, {turn, &a.turn}, {attempt, &a.attempt}} {
		value, err := strconv.ParseUint(n.text, 10, 32)
		if err != nil || value == 0 {
			return a, false
		}
		*n.to = uint32(value)
	}
	return a, true
}

// Limits of the deltas that a viewer holds until it can show them.
const (
	earlyMax      = 1024
	earlyBytesMax = 1 << 20
)

// showing decides what is shown. The log leads: it states which turn is open, and
// its final text. Deltas only show some of the text earlier: the next delta of
// the current start, and no other. So the text shown of a turn is always a prefix
// of one start's text, and in the end it is the log's text; if that differs, the
// turn begins again.
type showing struct {
	at    turnAttempt // the open attempt, or the last one
	open  bool
	start string // the current start; empty: none yet
	next  uint64 // number of the next delta
	shown strings.Builder

	early      []Delta // of attempts that the log has not opened yet
	earlyBytes int

	out []Shown // steps that the caller has not taken yet
}

// opened records that the log opens an attempt.
func (s *showing) opened(a turnAttempt) {
	if s.at.run == a.run && s.at.turn == a.turn {
		s.again()
	}
	s.at, s.open, s.start, s.next = a, true, "", 0
	s.shown.Reset()
	early := s.early
	s.early, s.earlyBytes = nil, 0
	for _, d := range early {
		s.delta(d)
	}
}

// delta processes a delta. Deltas may arrive in any order, and more than once.
func (s *showing) delta(d Delta) {
	a, ok := parseAttempt(d.Effect)
	if !ok {
		return
	}
	switch order := a.compare(s.at); {
	case order > 0 && len(s.early) < earlyMax && s.earlyBytes+len(d.Text) <= earlyBytesMax:
		s.early = append(s.early, d)
		s.earlyBytes += len(d.Text)
	case order != 0 || !s.open || d.Start < s.start: // starts are ULIDs: this start was taken over
	case d.Start > s.start:
		s.again()
		s.start, s.next = d.Start, 0
		s.showDelta(d)
	default:
		s.showDelta(d)
	}
}

// showDelta shows a delta of the current start if it is the next one. After a
// missed delta it shows none: the rest comes from the log.
func (s *showing) showDelta(d Delta) {
	if d.N != s.next {
		return
	}
	s.next++
	s.text(d.Text)
}

// done records that the log has the text of the open attempt.
func (s *showing) done(text string, seq uint64) {
	if !strings.HasPrefix(text, s.shown.String()) {
		s.again() // another start was settled than the one shown
	}
	s.text(text[s.shown.Len():])
	s.close(Shown{Kind: ShownDone, Seq: seq})
	s.shown.Reset()
}

// failed records that the open attempt ended without an answer. Its text stays
// shown until there is another attempt.
func (s *showing) failed(code string, seq uint64) {
	s.close(Shown{Kind: ShownFailed, Code: code, Seq: seq})
}

func (s *showing) close(end Shown) {
	s.open = false
	end.Run, end.Turn = s.at.run, s.at.turn
	s.out = append(s.out, end)
}

func (s *showing) text(text string) {
	if text == "" {
		return
	}
	s.shown.WriteString(text)
	s.out = append(s.out, Shown{Kind: ShownText, Run: s.at.run, Turn: s.at.turn, Text: text})
}

// again makes the text shown of the turn void, if there is any.
func (s *showing) again() {
	if s.shown.Len() == 0 {
		return
	}
	s.shown.Reset()
	s.out = append(s.out, Shown{Kind: ShownAgain, Run: s.at.run, Turn: s.at.turn})
}
