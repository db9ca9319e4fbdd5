package chaos

// Processes that end by themselves: one that could not start is started again,
// and one that had begun to work must not end.

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/subjects"
)

// ending is a process that ends with a status when its standard input ends.
func ending(t *testing.T, status string) (p *process, failed chan error) {
	t.Helper()
	failed = make(chan error, 8)
	p = &process{part: Bridge, argv: []string{"sh", "-c", "read x; exit " + status}, failed: func(err error) { failed <- err }}
	t.Cleanup(p.stop)
	must(t, p.start())
	return p, failed
}

// life returns the life that was started last.
func (p *process) life() *life {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now
}

// ends ends a life, and returns when another has begun, or with what is wrong.
func ends(t *testing.T, p *process, failed chan error) error {
	t.Helper()
	old := p.life()
	must(t, old.stdin.Close())
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	late := time.NewTimer(patience)
	defer late.Stop()
	for p.life() == old {
		select {
		case err := <-failed:
			return err
		case <-tick.C:
		case <-late.C:
			t.Fatal("nobody says that it has ended")
		}
	}
	return nil
}

func says(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q in it", err, want)
	}
}

func TestReviveStopsAfterFiveStarts(t *testing.T) {
	t.Parallel()
	p, failed := ending(t, "1")
	for n := range revivalsMax {
		if err := ends(t, p, failed); err != nil {
			t.Fatalf("end %d: %v", n+1, err)
		}
	}
	says(t, ends(t, p, failed), "could not start, and was started again 5 times")
	if got := p.revivals(); got != revivalsMax {
		t.Errorf("%d revivals, want %d", got, revivalsMax)
	}
}

// TestReviveNoneThatWorked: heartbeats of an earlier start don't count for this
// one.
func TestReviveNoneThatWorked(t *testing.T) {
	t.Parallel()
	p, failed := ending(t, "1")
	p.alive("first")
	p.kill()
	must(t, p.start())
	p.alive("first") // late, from a connection that was not read to its end
	if err := ends(t, p, failed); err != nil {
		t.Fatalf("one that has said nothing: %v", err)
	}
	p.alive("second")
	says(t, ends(t, p, failed), "with status 1, after it had begun to work")
	if got := p.revivals(); got != 1 {
		t.Errorf("%d revivals, want 1", got)
	}
}

func TestReviveNoOtherStatus(t *testing.T) {
	t.Parallel()
	p, failed := ending(t, "3")
	says(t, ends(t, p, failed), "ended by itself, with status 3")
}

// TestAimReportsHeartbeats: only heartbeats show that a daemon works, and they
// are not points.
func TestAimReportsHeartbeats(t *testing.T) {
	t.Parallel()
	names, err := subjects.New("")
	must(t, err)
	a := newAim(namer{names}, nil)
	var heard []string
	a.alive = func(part Part, instance string) { heard = append(heard, string(part)+" "+instance) }
	for _, subject := range []string{"$JS.API.STREAM.CREATE.REFOLD_LOG", names.Install(), "refold.alive.bridge.i", "refold.live.s1"} {
		a.pass(Bridge, &frame{op: "PUB", subject: subject})
	}
	if want := []string{"bridge i"}; !slices.Equal(heard, want) {
		t.Errorf("alive: got %v, want %v", heard, want)
	}
	if got := len(bothSides(a.passed)); got != 4 {
		t.Errorf("%d points, want both sides of two", got)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
