package session_test

// A session remembers its newest 10,000 submissions at least, and refuses none for their
// number.

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/refold/refold/actors/session"
)

// submits folds requests with submissions, without checking the state after each event.
type submits struct {
	t     *testing.T
	state *session.State
	seq   uint64
}

func newSubmits(t *testing.T) *submits {
	t.Helper()
	return &submits{t: t, state: session.New(builtin(t), "s1"), seq: 1}
}

func (w *submits) fold(door session.Door, format string, args ...any) error {
	w.seq++
	_, err := w.state.Evolve(session.Event{Session: "s1", Door: door, Seq: w.seq, Time: int64(w.seq), Payload: fmt.Appendf(nil, format, args...)})
	return err
}

// request requests a run, and returns whether it is a new one.
func (w *submits) request(submission, text, whenBusy string) (bool, error) {
	runs := w.state.Runs
	err := w.fold(session.DoorCtl, `{"type":"RunRequested","data":{"input":{"text":%q},"submission":%q,"when_busy":%q,"config":{"provider":"p","model":"m","active_tools":[],"turns_max":10000,"context":{"summary":{"off":true}}}}}`,
		text, submission, whenBusy)
	return w.state.Runs > runs, err
}

// once requests a run, which must be a new one, and ends it.
func (w *submits) once(submission, text string) {
	w.t.Helper()
	if isNew, err := w.request(submission, text, session.BusyQueue); err != nil || !isNew {
		w.t.Fatalf("submission %s: got %v, a new run %v, want a new run", submission, err, isNew)
	}
	w.settle(1, `"status":"failed","error":{"code":"no"}`)
}

// is checks that a submission is remembered, or forgotten.
func (w *submits) is(remembered bool, submission, text string) {
	w.t.Helper()
	if _, got := w.state.Submission(submission); got != remembered {
		w.t.Fatalf("after %d runs: submission %s is remembered: got %v, want %v", w.state.Runs, submission, got, remembered)
	}
	if !remembered {
		return
	}
	if isNew, err := w.request(submission, text, session.BusyQueue); err != nil || isNew {
		w.t.Fatalf("after %d runs: submission %s again: got %v, a new run %v, want no effect", w.state.Runs, submission, err, isNew)
	}
	if _, err := w.request(submission, "something else", session.BusyQueue); !errors.Is(err, session.RejectDuplicateSubmission) {
		w.t.Fatalf("after %d runs: submission %s with other content: got %v, want %s", w.state.Runs, submission, err, session.RejectDuplicateSubmission)
	}
}

func (w *submits) check() {
	w.t.Helper()
	if err := w.state.Check(); err != nil {
		w.t.Fatal(err)
	}
}

func TestNewestSubmissionsAreRemembered(t *testing.T) {
	t.Parallel()
	w, random := newSubmits(t), rand.New(rand.NewPCG(1, 2))
	const all = 4*session.SubmissionsMax + 7
	name := func(n int) string { return fmt.Sprintf("order-%x-%d", uint32(n*2654435761), n) } // in no order
	for n := 1; n <= all; n++ {
		w.once(name(n), "go")
		if n%1000 > 2 {
			continue
		}
		w.check()
		oldest := max(1, n-session.SubmissionsMax+1)
		for _, again := range []int{n, oldest, oldest + random.IntN(n-oldest+1)} {
			w.is(true, name(again), "go")
		}
		w.is(true, name(oldest), "go")
		if n > 2*session.SubmissionsMax {
			w.is(false, name(n-2*session.SubmissionsMax), "go")
		}
	}
	if size := len(w.state.Bytes()); size > session.StateBytesMax/4 {
		t.Errorf("the state has %d bytes", size)
	}

	// A forgotten submission starts a new run, with any content, and is remembered again.
	w.once(name(1), "something new")
	w.is(true, name(1), "something new")
	snap, err := session.ParseSnapshot(w.state.Snapshot().Bytes())
	if err != nil {
		t.Fatal(err)
	}
	restored, err := session.Restore(snap, given(w.state.InstallRecord()))
	if err != nil {
		t.Fatal(err)
	}
	if _, taken := restored.Submission(name(all)); !taken || restored.Hash() != w.state.Hash() {
		t.Errorf("restored: the newest is remembered %v, the bytes are equal %v", taken, restored.Hash() == w.state.Hash())
	}
}

// Steers have their run's number, so only their place in the lists tells old ones from
// new ones.
func TestNewestSteersAreRemembered(t *testing.T) {
	t.Parallel()
	const runs, steers = 10, 3000
	w := newSubmits(t)
	for run := 1; run <= runs; run++ {
		if isNew, err := w.request(fmt.Sprintf("run-%d", run), "go", session.BusyQueue); err != nil || !isNew {
			t.Fatalf("run %d: got %v, a new run %v", run, err, isNew)
		}
		turn := 1
		for n := 1; n <= steers; n++ {
			isNew, err := w.request(fmt.Sprintf("steer-%d-%d", run, n), "more", session.BusySteer)
			if err != nil || isNew {
				t.Fatalf("steer %d of run %d: got %v, a new run %v", n, run, err, isNew)
			}
			if n%session.SteersMax == 0 { // an answer: the steers are taken, and the next turn begins
				w.settle(turn, `"status":"ok","text":{"text":"a"}`)
				turn++
			}
		}
		w.settle(turn, `"status":"failed","error":{"code":"no"}`)
		for w.state.Run != nil { // the steers that the run left are one
			w.settle(1, `"status":"failed","error":{"code":"no"}`)
		}
		w.check()
	}
	newest := session.SubmissionsMax
	for run := runs; run >= 1; run-- {
		for n := steers; n >= 1 && newest > 0; n-- {
			if _, taken := w.state.Submission(fmt.Sprintf("steer-%d-%d", run, n)); !taken {
				t.Fatalf("steer %d of run %d is forgotten, of the newest it is number %d", n, run, session.SubmissionsMax-newest+1)
			}
			newest--
		}
	}
	w.is(false, "run-1", "")
	w.is(false, "steer-1-3000", "")
}

// settle settles the generation of a turn of the active run.
func (w *submits) settle(turn int, how string) {
	w.t.Helper()
	if err := w.fold(session.DoorLLM, `{"type":"GenerationSettled","data":{"effect":"r%dt%d",%s}}`, w.state.Run.Number, turn, how); err != nil {
		w.t.Fatal(err)
	}
}
