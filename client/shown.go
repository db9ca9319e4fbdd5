package client

import (
	"cmp"
	"strconv"
	"strings"
)

// ShownKind is the kind of a Shown.
type ShownKind string

// What a viewer shows. Of each turn: any number of ShownText and ShownAgain,
// then ShownDone or ShownFailed, which a further attempt may follow.
const (
	ShownText   ShownKind = "text"   // Text goes on where the turn's text ended
	ShownAgain  ShownKind = "again"  // the turn began again: what was shown of it is void, and its text begins clean
	ShownDone   ShownKind = "done"   // the turn's text is whole: it is what the event at Seq has
	ShownFailed ShownKind = "failed" // the turn failed with Code, at Seq: what was shown of it is in no transcript
	ShownEnd    ShownKind = "end"    // the run ended, at Seq: Code is its lifecycle
)

// Shown is one step of what a Viewer shows.
type Shown struct {
	Kind ShownKind
	Run  uint32
	Turn uint32 // of the run; 0 in ShownEnd
	Text string // in ShownText, and never empty there
	Code string // in ShownFailed and ShownEnd
	Seq  uint64 // in the log; 0 in ShownText and ShownAgain
}

// asking is one attempt at a turn: the effect r1t2a3 is the third one at turn 2
// of run 1.
type asking struct{ run, turn, attempt uint32 }

func (a asking) compare(b asking) int {
	return cmp.Or(cmp.Compare(a.run, b.run), cmp.Compare(a.turn, b.turn), cmp.Compare(a.attempt, b.attempt))
}

// parseAsking reads the name of a generation.
func parseAsking(effect string) (a asking, ok bool) {
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

// What a viewer holds of deltas that it can't show yet.
const (
	earlyMax      = 1024
	earlyBytesMax = 1 << 20
)

// showing decides what is shown. The log leads: it says which turn is open, and
// what its text was in the end. Deltas only show some of that earlier: the next
// one of the start that speaks, and no other. So what is shown of a turn is at
// all times the beginning of what one start of it says, and in the end it is
// what the log has; where that is something else, it begins again.
type showing struct {
	at    asking // the one that is open, or was open last
	open  bool
	start string // that speaks; empty: none yet
	next  uint64 // number of the delta that is due
	shown strings.Builder

	early      []Delta // of attempts that the log has not opened yet
	earlyBytes int

	out []Shown // not taken yet
}

// asked says that the log opens an attempt.
func (s *showing) asked(a asking) {
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

// delta takes a delta, in whatever order and however often they come.
func (s *showing) delta(d Delta) {
	a, ok := parseAsking(d.Effect)
	if !ok {
		return
	}
	switch order := a.compare(s.at); {
	case order > 0 && len(s.early) < earlyMax && s.earlyBytes+len(d.Text) <= earlyBytesMax:
		s.early = append(s.early, d)
		s.earlyBytes += len(d.Text)
	case order != 0 || !s.open || d.Start < s.start: // starts are ULIDs: this one was taken over
	case d.Start > s.start:
		s.again()
		s.start, s.next = d.Start, 0
		s.take(d)
	default:
		s.take(d)
	}
}

// take shows a delta of the start that speaks if it is due. After one that was
// missed none is, until the log has the rest.
func (s *showing) take(d Delta) {
	if d.N != s.next {
		return
	}
	s.next++
	s.text(d.Text)
}

// done says that the log has the text of the open attempt.
func (s *showing) done(text string, seq uint64) {
	if !strings.HasPrefix(text, s.shown.String()) {
		s.again() // another start was settled than the one that was heard
	}
	s.text(text[s.shown.Len():])
	s.close(Shown{Kind: ShownDone, Seq: seq})
	s.shown.Reset()
}

// failed says that the open attempt ended without an answer. What was shown of
// it stays, until there is another attempt.
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

// again makes what was shown of the turn void, if there is any.
func (s *showing) again() {
	if s.shown.Len() == 0 {
		return
	}
	s.shown.Reset()
	s.out = append(s.out, Shown{Kind: ShownAgain, Run: s.at.run, Turn: s.at.turn})
}
