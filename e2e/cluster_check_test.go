package e2e_test

import (
	"cmp"
	"encoding/json"
	"fmt"
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

// settled is what the log says of an effect.
type settled struct {
	first  string   // what counts
	others []string // what came later and says something else
	times  int
}

// loadFacts is all that the streams and the ledger hold of the load.
type loadFacts struct {
	asked   map[string]bool              // effects by key: session, ".", name
	settled map[string]*settled          // by key
	claimed map[string][]string          // by key: who claimed it, in order, and so may have begun it
	ran     map[string]int               // by key
	notices map[string][]notice          // by session
	texts   map[string]map[uint64]string // notices by session and number
}

// check waits until the servers agree, and compares what they hold with what was
// asked: nothing is lost, and nothing is there twice. Since the last check no
// more than most has been lost with bridges.
func (l *load) check(most lost) {
	l.t.Helper()
	began := time.Now()
	l.agreed()
	f := l.facts()
	unknown, again := 0, 0
	var now lost
	l.mu.Lock()
	defer l.mu.Unlock()
	effects := 0
	for sid, runs := range l.asked {
		for key := range expected(sid, runs) {
			effects++
			l.effect(f, key, &unknown, &again)
			now.begun += l.begunAgain(f, key)
			delete(f.asked, key)
			delete(f.settled, key)
			delete(f.ran, key)
		}
		l.said(sid, runs, f.notices[sid], f.texts[sid])
	}
	for key := range f.asked {
		l.t.Errorf("%s was asked, and nobody asked for that", key)
	}
	for key := range f.settled {
		l.t.Errorf("%s was settled, and nobody asked for that", key)
	}
	for key, times := range f.ran {
		l.t.Errorf("%s ran %d times, and nobody asked for that", key, times)
	}
	now.unknown = unknown
	if n := now.unknown - l.lost.unknown; n > most.unknown {
		l.t.Errorf("%d calls more are outcome_unknown, want at most %d: so many were in progress when bridges may have been lost", n, most.unknown)
	}
	if n := now.begun - l.lost.begun; n > most.begun {
		l.t.Errorf("turns of the model were taken over by another bridge %d times more, want at most %d: so many were under way when bridges may have been lost", n, most.begun)
	}
	l.lost = now
	l.replayed()
	l.t.Logf("%d sessions, %d effects, %d of them outcome_unknown, %d retry-safe ones that ran again, %d turns taken over; checked in %v",
		len(l.asked), effects, unknown, again, now.begun, time.Since(began).Round(time.Millisecond))
}

// begunAgain returns how often a turn of the model was begun by a bridge after
// another had claimed it. No ledger has turns, but a bridge claims each before it
// begins it, and one that takes it over stores the next claim. Several claims in
// a row of one bridge are one beginning: it was not sure that its own stood.
func (l *load) begunAgain(f *loadFacts, key string) int {
	sid, _, _ := strings.Cut(key, ".")
	if expected(sid, loadRuns)[key] != "" {
		return 0
	}
	by := slices.Compact(slices.Clone(f.claimed[key]))
	if len(by) == 0 {
		l.t.Errorf("%s was begun, and nobody has claimed it", key)
		return 0
	}
	return len(by) - 1
}

// expected returns the effects that a session asks for in its runs, and the
// tools of those that are calls.
func expected(sid string, runs int) map[string]string {
	all := map[string]string{}
	for run, turns := range loadTurns[:runs] {
		for turn := range len(turns) + 1 {
			name := fmt.Sprintf("%s.r%dt%d", sid, run+1, turn+1)
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

// effect checks one effect.
func (l *load) effect(f *loadFacts, key string, unknown, again *int) {
	sid, _, _ := strings.Cut(key, ".")
	tool := expected(sid, loadRuns)[key]
	if !f.asked[key] {
		l.t.Errorf("%s was not asked", key)
	}
	s, ran := f.settled[key], f.ran[key]
	if s == nil {
		l.t.Errorf("%s was not settled, and ran %d times", key, ran)
		return
	}
	// A bridge that was cut off says what a call came to after another has said
	// that nobody knows. Only what was said first counts.
	for _, other := range s.others {
		if tool == "" || loadSafe[tool] || s.first != loadUnknown && other != loadUnknown {
			l.t.Errorf("%s was settled as %s and as %s", key, s.first, other)
		}
	}
	switch {
	case tool == "" && s.first != loadSaid || tool != "" && s.first != loadSucceeded && (s.first != loadUnknown || loadSafe[tool]):
		l.t.Errorf("%s (%s) was settled as %s", key, tool, s.first)
	case tool == "" && ran == 0: // a model's turn is in no ledger
	case s.first == loadUnknown && ran <= 1:
		*unknown++
	case loadSafe[tool] && ran >= 1:
		*again += ran - 1
	case !loadSafe[tool] && ran == 1:
	default:
		l.t.Errorf("%s (%s) was settled as %s, and ran %d times", key, tool, s.first, ran)
	}
}

// said checks the notices of a session: numbered without a gap, none with two
// contents, and one end for each run.
func (l *load) said(sid string, runs int, notices []notice, texts map[uint64]string) {
	ends := map[int]string{}
	for i, n := range notices {
		if n.N != uint64(i+1) {
			l.t.Errorf("the notices of %s: number %d is %d, %s", sid, i+1, n.N, texts[n.N])
			return
		}
		if n.Type == session.NoticeEventRejected {
			l.t.Logf("%s: %s", sid, texts[n.N])
		}
		var end finished
		if n.Type != session.NoticeRunFinished || json.Unmarshal(n.Data, &end) != nil {
			continue
		}
		if ends[end.Run] != "" {
			l.t.Errorf("run %d of %s ended twice", end.Run, sid)
		}
		if ends[end.Run] = end.Lifecycle; end.Lifecycle != string(session.Completed) {
			l.t.Errorf("run %d of %s ended %s", end.Run, sid, texts[n.N])
		}
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
	f := &loadFacts{
		asked: map[string]bool{}, settled: map[string]*settled{}, claimed: map[string][]string{}, ran: map[string]int{},
		notices: map[string][]notice{}, texts: map[string]map[uint64]string{},
	}
	l.each(names.EffectsStream(), func(m jetstream.Msg) {
		if claim, err := names.ParseClaim(m.Subject()); err == nil {
			var body struct {
				By string `json:"by"`
			}
			if err := json.Unmarshal(m.Data(), &body); err != nil {
				l.t.Fatalf("%s: %v", m.Subject(), err)
			}
			key := claim.Session + "." + claim.Effect
			f.claimed[key] = append(f.claimed[key], body.By)
		}
		if name, err := names.ParseEffect(m.Subject()); err == nil {
			key := name.Session + "." + name.Effect
			if f.asked[key] {
				l.t.Errorf("%s stands twice in %s", key, names.EffectsStream())
			}
			f.asked[key] = true
		}
	})
	l.each(names.LogStream(), func(m jetstream.Msg) {
		if door, sid, err := names.ParseStored(m.Subject()); err == nil && (door == session.DoorTool || door == session.DoorLLM) {
			l.settlement(f, sid, m.Data())
		}
	})
	l.each(names.NoticesStream(), func(m jetstream.Msg) { l.notices(f, strings.TrimPrefix(m.Subject(), "refold.out."), m.Data()) })
	for _, line := range lines(l.t, l.ledger) {
		var entry struct {
			Key string `json:"idempotency_key"`
		}
		if err := json.Unmarshal(line, &entry); err != nil {
			l.t.Fatalf("ledger: %s: %v", line, err)
		}
		f.ran[entry.Key]++
	}
	return f
}

// settlement notes a settlement of the log.
func (l *load) settlement(f *loadFacts, sid string, data []byte) {
	l.t.Helper()
	effect, status, err := settlementOf(data)
	if err != nil {
		l.t.Fatalf("%s: %v", sid, err)
	}
	key := sid + "." + effect
	s := f.settled[key]
	if s == nil {
		s = &settled{first: status}
		f.settled[key] = s
	}
	if s.times++; status != s.first && !slices.Contains(s.others, status) {
		s.others = append(s.others, status)
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

// notices notes the notices of a message. A repeat has the same number and says the
// same.
func (l *load) notices(f *loadFacts, sid string, data []byte) {
	l.t.Helper()
	if f.texts[sid] == nil {
		f.texts[sid] = map[uint64]string{}
	}
	for line := range strings.SplitSeq(string(data), "\n") {
		var n notice
		if err := json.Unmarshal([]byte(line), &n); err != nil {
			l.t.Fatalf("%s: %v", sid, err)
		}
		switch text, again := f.texts[sid][n.N]; {
		case again && text != line:
			l.t.Errorf("notice %d of %s: %s, and %s", n.N, sid, text, line)
		case !again:
			f.texts[sid][n.N] = line
			f.notices[sid] = append(f.notices[sid], n)
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
