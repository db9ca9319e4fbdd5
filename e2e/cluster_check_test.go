package e2e_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/subjects"
)

// Statuses of calls, as bridges write them.
const (
	loadSucceeded = string(session.CallSucceeded)
	loadUnknown   = string(session.CallUnknown)
	loadSaid      = "said" // of a model's turn
)

// loadEffect is all that the streams and the ledger hold of an effect.
type loadEffect struct {
	asked   bool
	settled []string // different statuses, in order: the first one counts
	claimed []string // who claimed it, in order, and so may have begun it
	ran     int
}

// loadFacts is what they hold of all effects, by session, ".", name; and the notices
// by session, each once.
type loadFacts struct {
	effects map[string]*loadEffect
	notices map[string][]notice
}

func (f *loadFacts) of(sid, effect string) *loadEffect {
	key := sid + "." + effect
	if f.effects[key] == nil {
		f.effects[key] = &loadEffect{}
	}
	return f.effects[key]
}

// check waits until the servers agree, and compares what they hold with what was
// asked: nothing is lost, and nothing is there twice. Since the last check no
// more than most has been lost with bridges.
func (l *load) check(most lost) {
	l.t.Helper()
	began := time.Now()
	l.agreed()
	f := l.facts()
	var now lost
	l.mu.Lock()
	defer l.mu.Unlock()
	effects, again := 0, 0
	for sid, runs := range l.asked {
		for name, tool := range expected(runs) {
			effects++
			again += l.effect(sid+"."+name, tool, f.of(sid, name), &now)
			delete(f.effects, sid+"."+name)
		}
		l.ends(sid, runs, f.notices[sid])
	}
	for key, e := range f.effects {
		l.t.Errorf("%s is there, and nobody asked for that: %+v", key, *e)
	}
	if n := now.unknown - l.lost.unknown; n > most.unknown {
		l.t.Errorf("%d calls more are outcome_unknown, want at most %d: so many were in progress when bridges may have been lost", n, most.unknown)
	}
	if n := now.begun - l.lost.begun; n > most.begun {
		l.t.Errorf("turns of the model were taken over by another bridge %d times more, want at most %d: so many were under way when bridges may have been lost", n, most.begun)
	}
	l.lost = now
	l.replayed()
	l.t.Logf("%d sessions, %d effects, %d of them outcome_unknown, %d retry-safe ones that ran again, %d turns taken over; checked in %v",
		len(l.asked), effects, now.unknown, again, now.begun, time.Since(began).Round(time.Millisecond))
}

// expected returns the effects that a session asks for in its runs, and the
// tools of those that are calls.
func expected(runs int) map[string]string {
	all := map[string]string{}
	for run, turns := range loadTurns[:runs] {
		for turn := range len(turns) + 1 {
			name := fmt.Sprintf("r%dt%d", run+1, turn+1)
			all[name] = ""
			if turn == len(turns) {
				continue // the turn in which the model answers
			}
			for call, tool := range turns[turn] {
				all[fmt.Sprint(name, "c", call)] = tool
			}
		}
	}
	return all
}

// effect checks one effect; tool is "" for a model's turn. It counts what was lost
// with bridges, and returns how often a retry-safe call ran again.
func (l *load) effect(key, tool string, e *loadEffect, now *lost) (again int) {
	if !e.asked || len(e.settled) == 0 {
		l.t.Errorf("%s was not asked, or not settled: %+v", key, *e)
		return 0
	}
	// A bridge that was cut off says what a call came to after another has said
	// that nobody knows. Only what was said first counts.
	first, safe := e.settled[0], tool == "" || loadSafe[tool]
	for _, other := range e.settled[1:] {
		if safe || first != loadUnknown && other != loadUnknown {
			l.t.Errorf("%s was settled as %q", key, e.settled)
		}
	}
	switch {
	case tool == "" && first == loadSaid && e.ran == 0 && len(e.claimed) > 0:
		// No ledger has turns, but a bridge claims each before it begins it, and one
		// that takes it over stores the next claim. Several claims in a row of one
		// bridge are one beginning: it was not sure that its own stood.
		now.begun += len(slices.Compact(e.claimed)) - 1
	case tool != "" && safe && first == loadSucceeded && e.ran >= 1:
		return e.ran - 1
	case tool != "" && !safe && first == loadSucceeded && e.ran == 1:
	case tool != "" && !safe && first == loadUnknown && e.ran <= 1:
		now.unknown++
	default:
		l.t.Errorf("%s (%s) is %+v", key, tool, *e)
	}
	return 0
}

// ends checks that each run of a session has ended once.
func (l *load) ends(sid string, runs int, notices []notice) {
	ends := map[int]bool{}
	for _, n := range notices {
		var end finished
		if n.Type != session.NoticeRunFinished || json.Unmarshal(n.Data, &end) != nil {
			continue
		}
		if ends[end.Run] || end.Lifecycle != string(session.Completed) {
			l.t.Errorf("run %d of %s ended again, or %s", end.Run, sid, n.Data)
		}
		ends[end.Run] = true
	}
	if len(ends) != runs {
		l.t.Errorf("%d runs were asked of %s, and %d have ended", runs, sid, len(ends))
	}
}

// facts reads what was asked, settled, run and said.
func (l *load) facts() *loadFacts {
	l.t.Helper()
	names, err := subjects.New("")
	if err != nil {
		l.t.Fatal(err)
	}
	f := &loadFacts{effects: map[string]*loadEffect{}, notices: map[string][]notice{}}
	l.each(names.EffectsStream(), func(m jetstream.Msg) {
		if claim, err := names.ParseClaim(m.Subject()); err == nil {
			var body struct {
				By string `json:"by"`
			}
			l.read(m.Data(), &body)
			e := f.of(claim.Session, claim.Effect)
			e.claimed = append(e.claimed, body.By)
		}
		if name, err := names.ParseEffect(m.Subject()); err == nil {
			e := f.of(name.Session, name.Effect)
			if e.asked {
				l.t.Errorf("%s stands twice in %s", m.Subject(), names.EffectsStream())
			}
			e.asked = true
		}
	})
	l.each(names.LogStream(), func(m jetstream.Msg) {
		door, sid, err := names.ParseStored(m.Subject())
		if err != nil || door != session.DoorTool && door != session.DoorLLM {
			return
		}
		effect, status, err := settlementOf(m.Data())
		if err != nil {
			l.t.Fatalf("%s: %v", m.Subject(), err)
		}
		if e := f.of(sid, effect); !slices.Contains(e.settled, status) {
			e.settled = append(e.settled, status)
		}
	})
	l.each(names.NoticesStream(), func(m jetstream.Msg) {
		if sid, err := names.ParseOut(m.Subject()); err == nil { // else a session-actor tried whether the stream takes messages
			l.notices(f, sid, m.Data())
		}
	})
	for _, line := range lines(l.t, l.ledger) {
		var entry struct{ Session, Effect string }
		l.read(line, &entry)
		f.of(entry.Session, entry.Effect).ran++
	}
	return f
}

// read decodes JSON.
func (l *load) read(data []byte, into any) {
	l.t.Helper()
	if err := json.Unmarshal(data, into); err != nil {
		l.t.Fatalf("%s: %v", data, err)
	}
}

// settlementOf returns the effect that an event of a bridge settles, and how.
func settlementOf(payload []byte) (effect, status string, err error) {
	canonical, err := codec.Canonicalize(payload)
	if err != nil {
		return "", "", err
	}
	var env session.Envelope
	if err := codec.Decode(canonical, &env); err != nil {
		return "", "", err
	}
	switch env.Type {
	case session.TypeToolCallSettled:
		var body session.ToolCallSettled
		err = codec.Decode(env.Data, &body)
		return body.Effect, body.Status, err
	case session.TypeToolCallsObserved:
		var body session.ToolCallsObserved
		err = codec.Decode(env.Data, &body)
		return body.Effect, loadSaid, err
	default:
		var body session.GenerationSettled
		err = codec.Decode(env.Data, &body)
		return body.Effect, cmp.Or(map[string]string{"ok": loadSaid}[body.Status], body.Status), err
	}
}

// notices notes the notices of a message: numbered without a gap. A repeat has the same
// number and says the same.
func (l *load) notices(f *loadFacts, sid string, data []byte) {
	l.t.Helper()
	for line := range strings.SplitSeq(string(data), "\n") {
		var n notice
		l.read([]byte(line), &n)
		switch all := f.notices[sid]; {
		case n.N == uint64(len(all)+1):
			f.notices[sid] = append(all, n)
		case n.N == 0 && n.Type == session.NoticeSessionChanged:
		case n.N == 0 || n.N > uint64(len(all)) || !reflect.DeepEqual(n, all[n.N-1]):
			l.t.Errorf("after notice %d of %s comes %s", len(all), sid, line)
		}
	}
}

// replayed folds all again, by the CLI, and has it look for damage.
func (l *load) replayed() {
	l.t.Helper()
	for _, args := range [][]string{{"replay", "--all", "--verify"}, {"verify", "--all"}} {
		out, errOut, status := run(l.t, time.Minute, nil, "refold", append([]string{"--nats", l.direct()}, args...)...)
		if status != 0 {
			l.t.Errorf("%v: status %d\n%s%s", args, status, tail(out, 2000), tail(errOut, 2000))
		}
	}
}
