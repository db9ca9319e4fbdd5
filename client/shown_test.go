package client

// Deltas are lost, doubled, late and early, of one start or several: the text
// shown is always a prefix of one start's text, and in the end the log's text.

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// spoken is an attempt in a history.
type spoken struct {
	turnAttempt
	starts []string // what each says; their names are in order
	final  string   // of the start that was settled
	fails  bool
	deltas []Delta
}

func (s spoken) effect() string {
	name := fmt.Sprintf("r%dt%d", s.run, s.turn)
	if s.attempt > 1 {
		name += fmt.Sprintf("a%d", s.attempt)
	}
	return name
}

// screen is the text that a user of a viewer sees.
type screen struct {
	t    rapid.TB
	text string // of the turn
	turn turnAttempt
	all  map[turnAttempt]string // whole texts
}

// show applies a step, and checks it against the attempt's text.
func (s *screen) show(of *spoken, out []Shown) {
	s.t.Helper()
	for _, o := range out {
		turn := turnAttempt{run: o.Run, turn: o.Turn}
		if turn != (turnAttempt{run: of.run, turn: of.turn}) {
			s.t.Fatalf("%+v is not of %s", o, of.effect())
		}
		if turn != s.turn {
			s.turn, s.text = turn, ""
		}
		switch o.Kind {
		case ShownText:
			if s.text += o.Text; o.Text == "" {
				s.t.Fatal("an empty text is shown")
			}
			if !slices.ContainsFunc(of.starts, func(text string) bool { return strings.HasPrefix(text, s.text) }) {
				s.t.Fatalf("%q is shown of %s, which says %q", s.text, of.effect(), of.starts)
			}
		case ShownAgain:
			if s.text == "" || len(of.starts) == 1 && of.attempt == 1 {
				s.t.Fatalf("%s begins again after %q, with %d starts", of.effect(), s.text, len(of.starts))
			}
			s.text = ""
		case ShownDone:
			if of.fails || s.text != of.final {
				s.t.Fatalf("%q is shown of %s in the end, want %q", s.text, of.effect(), of.final)
			}
			s.all[turn] = s.text
		case ShownFailed:
			if !of.fails {
				s.t.Fatalf("%s failed", of.effect())
			}
		}
	}
}

// conversationOf draws the attempts of a session, in the order of the log.
func conversationOf(t *rapid.T) []*spoken {
	text := rapid.StringMatching(`[ab é]{0,12}`)
	var all []*spoken
	at := turnAttempt{1, 1, 1}
	for range rapid.IntRange(1, 6).Draw(t, "attempts") {
		s := &spoken{turnAttempt: at, fails: rapid.IntRange(0, 3).Draw(t, "fails") == 0}
		s.starts = rapid.SliceOfN(text, 1, 3).Draw(t, "starts")
		s.final = rapid.SampledFrom(s.starts).Draw(t, "final")
		s.deltas = s.cut(t)
		all = append(all, s)
		switch {
		case s.fails:
			at.attempt++
		case rapid.Bool().Draw(t, "new run"):
			at = turnAttempt{at.run + 1, 1, 1}
		default:
			at = turnAttempt{at.run, at.turn + 1, 1}
		}
	}
	return all
}

// cut cuts the texts of an attempt's starts into deltas.
func (s *spoken) cut(t *rapid.T) (all []Delta) {
	for i, text := range s.starts {
		n := uint64(0)
		for rest := []rune(text); len(rest) > 0; n++ {
			size := rapid.IntRange(1, len(rest)).Draw(t, "size")
			all = append(all, Delta{Effect: s.effect(), Start: string(rune('A' + i)), N: n, Text: string(rest[:size])})
			rest = rest[size:]
		}
	}
	return all
}

func TestShownTextIsAlwaysAPrefix(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		all := conversationOf(t)
		var late []Delta // of any attempt, that come whenever they come
		for _, s := range all {
			late = append(late, s.deltas...)
		}
		joined := rapid.IntRange(0, len(all)-1).Draw(t, "joined")
		var s showing
		see := &screen{t: t, all: map[turnAttempt]string{}}
		for _, of := range all[joined:] {
			hear := func(deltas []Delta) {
				for _, d := range deltas {
					s.delta(d)
				}
				see.show(of, s.out)
				s.out = nil
			}
			s.opened(of.turnAttempt)
			hear(nil)
			own := of.deltas
			for i := range own {
				switch rapid.IntRange(0, 6).Draw(t, "fault") {
				case 0: // lost
				case 1:
					hear([]Delta{own[i], own[i]})
				case 2:
					hear([]Delta{rapid.SampledFrom(own).Draw(t, "other"), own[i]})
				case 3:
					hear([]Delta{rapid.SampledFrom(late).Draw(t, "late"), {Effect: "r0t1", Text: "x"}, {Effect: "w1", Text: "x"}})
				default:
					hear(own[i : i+1])
				}
			}
			if of.fails {
				s.failed("a_code", 1)
			} else {
				s.done(of.final, 1)
			}
			hear(own)
		}
		for _, of := range all[joined:] {
			if got := see.all[turnAttempt{run: of.run, turn: of.turn}]; !of.fails && got != of.final {
				t.Fatalf("%s: got %q in the end, want %q", of.effect(), got, of.final)
			}
		}
		if len(s.early) > earlyMax {
			t.Fatalf("%d deltas are held", len(s.early))
		}
	})
}

// Without losses no text is left for the log, also of deltas that arrive before
// the log opens their turn.
func TestDeltasAreShownAtOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		all := conversationOf(t)
		var s showing
		for _, of := range all {
			deltas := of.deltas
			before := rapid.IntRange(0, len(deltas)).Draw(t, "before")
			for _, d := range deltas[:before] {
				s.delta(d)
			}
			s.opened(of.turnAttempt)
			for _, d := range deltas[before:] {
				s.delta(d)
			}
			last := of.starts[len(of.starts)-1]
			if last == "" { // it has said nothing
				last = s.shown.String()
			}
			if got := s.shown.String(); got != last {
				t.Fatalf("%s: %q is shown before it is settled, want %q", of.effect(), got, last)
			}
			s.out = nil
			s.done(last, 1)
			if len(s.out) != 1 || s.out[0].Kind != ShownDone {
				t.Fatalf("%s: the log adds %+v", of.effect(), s.out)
			}
		}
	})
}

// Anyone may publish deltas.
func TestHeldDeltasAreBounded(t *testing.T) {
	t.Parallel()
	var s showing
	q := newInbox()
	for i := range uint64(4 * earlyMax) {
		d := Delta{Effect: "r9t1", Start: "A", N: i, Text: strings.Repeat("x", 4<<10)}
		s.delta(d)
		q.put(received{delta: &d})
	}
	if s.earlyBytes > earlyBytesMax || q.bytes > earlyBytesMax || len(s.early) == 0 || len(q.take()) != len(s.early) {
		t.Errorf("%d and %d bytes are held", s.earlyBytes, q.bytes)
	}
	s.opened(turnAttempt{10, 1, 1})
	if len(s.early) != 0 || s.earlyBytes != 0 || len(s.out) != 0 {
		t.Errorf("%d deltas of an earlier run are held, and %+v shown", len(s.early), s.out)
	}
}

func TestAttemptIsParsedFromTheEffectName(t *testing.T) {
	t.Parallel()
	for effect, want := range map[string]turnAttempt{
		"r1t2": {1, 2, 1}, "r10t20a3": {10, 20, 3}, "": {}, "r1": {}, "t1": {}, "r1t": {}, "r0t1": {}, "r1t1c0": {}, "r1t1s": {}, "w1": {}, "r1t1a": {},
		"r1t-1": {}, "r1t99999999999": {}, "x1t1": {},
	} {
		if got, ok := parseAttempt(effect); ok != (want != turnAttempt{}) || ok && got != want {
			t.Errorf("%q: got %v %v, want %v", effect, got, ok, want)
		}
	}
}
