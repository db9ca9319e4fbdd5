package bridge

// Keeping time: the rules in virtual time, against a clockwork that notes what
// it is told; then whole bridges against a server, one of which dies between
// what it stored and its ack. The session that they serve is folded from the
// log at the end: a wake that is settled twice counts once.

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/subjects"
)

// told is a clockwork that notes what it is told.
type told struct {
	trouble error
	said    []string
	start   time.Time
}

func (c *told) Schedule(_ context.Context, sid, wake string, at time.Time, _ []byte) error {
	c.said = append(c.said, fmt.Sprintf("schedule %s of %s for +%v", wake, sid, at.Sub(c.start)))
	return c.trouble
}

func (c *told) Publish(_ context.Context, door session.Door, sid string, payload []byte, id string) (uint64, error) {
	var env session.Envelope
	var w session.WakeSettled
	if err := errors.Join(codec.Unmarshal(payload, &env), codec.Unmarshal(env.Data, &w)); err != nil {
		return 0, err
	}
	c.said = append(c.said, fmt.Sprintf("%s %s of %s through %s at +%v by %s%s", env.Type, w.Effect, sid, door, time.Since(c.start), env.By, id))
	return 1, c.trouble
}

func wakeEffect(t *testing.T, name string, due time.Time) []byte {
	t.Helper()
	data, err := codec.Marshal(session.Wake{
		At: due.UnixMilli() - 1000, Class: session.ClassWake, Due: due.UnixMilli(), Effect: name, Session: "s1", StartBy: due.UnixMilli(), V: session.Version,
	})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestTimekeeper(t *testing.T) {
	t.Parallel()
	const settled = "WakeSettled w1 of s1 through wake at +%s by me"
	for _, c := range []struct {
		name    string
		due     time.Duration // from now
		fired   time.Duration // 1: not fired
		trouble error
		payload func([]byte) []byte
		said    string
		next    next
	}{
		{name: "long past", due: -time.Hour, fired: 1, said: "0s", next: nextAck},
		{name: "now", fired: 1, said: "0s", next: nextAck},
		{name: "too near for a schedule", due: 250 * time.Millisecond, fired: 1, said: "250ms", next: nextAck},
		{name: "far enough", due: 251 * time.Millisecond, fired: 1, said: "schedule w1 of s1 for +251ms", next: nextAck},
		{name: "400 days", due: 9600 * time.Hour, fired: 1, said: "schedule w1 of s1 for +9600h0m0s", next: nextAck},
		{name: "a century", due: 876_000 * time.Hour, fired: 1, said: "schedule w1 of s1 for +87600h0m0s", next: nextAck},
		{name: "fired in time", said: "0s", next: nextAck},
		{name: "fired, and our clock is behind", due: time.Hour, fired: time.Hour, said: "0s", next: nextAck},
		{name: "fired, and the server's clock is behind", due: 0, fired: -time.Hour, said: "0s", next: nextAck},
		{name: "fired early", due: time.Hour, fired: 59 * time.Minute, said: "schedule w1 of s1 for +1h0m0s", next: nextAck},
		{name: "fired a little early", due: 20 * time.Millisecond, fired: 0, said: "20ms", next: nextAck},
		{name: "schedule not stored", due: time.Hour, fired: 1, trouble: bus.ErrStreamFull, said: "schedule w1 of s1 for +1h0m0s", next: nextGiveBack},
		{name: "settlement not stored", fired: 1, trouble: bus.ErrStreamFull, said: "0s", next: nextGiveBack},
		{name: "no wake", fired: 1, payload: func([]byte) []byte { return []byte("x") }, next: nextAck},
		{name: "of another session", fired: 1, payload: func(p []byte) []byte { return []byte(strings.Replace(string(p), "s1", "s2", 1)) }, next: nextAck},
		{name: "of a newer release", fired: 1, payload: func(p []byte) []byte {
			return []byte(strings.Replace(string(p), "\xa1v\x01", "\xa1v\x02", 1))
		}, next: nextGiveBack},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				clockwork := &told{trouble: c.trouble, start: start}
				k := &timekeeper{clockwork: clockwork, by: "me", log: slog.New(slog.DiscardHandler), now: time.Now, stats: new(counters)}
				var fired time.Time
				if c.fired != 1 {
					fired = start.Add(c.fired)
				}
				payload := wakeEffect(t, "w1", start.Add(c.due))
				if c.payload != nil {
					payload = c.payload(payload)
				}
				r := k.carry(t.Context(), "s1", "w1", payload, fired)
				want := c.said
				if want != "" && !strings.HasPrefix(want, "schedule") {
					want = fmt.Sprintf(settled, want)
				}
				if got := strings.Join(clockwork.said, ", "); got != want || r.next != c.next {
					t.Errorf("got %q, next %d (%s), want %q, next %d", got, r.next, r.why, want, c.next)
				}
			})
		})
	}
}

// A bridge that is told to stop does not wait for what is almost due.
func TestTimekeeperStops(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	clockwork := &told{start: time.Now()}
	k := &timekeeper{clockwork: clockwork, log: slog.New(slog.DiscardHandler), now: func() time.Time { return clockwork.start }, stats: new(counters)}
	r := k.carry(ctx, "s1", "w1", wakeEffect(t, "w1", clockwork.start.Add(scheduleLeast)), time.Time{})
	if r.next != nextGiveBack || len(clockwork.said) > 0 {
		t.Errorf("got %q, next %d, want it given back", clockwork.said, r.next)
	}
}

// timer starts a bridge that keeps time and does nothing else.
func (a *actor) timer(t *testing.T, name string) (b *Bridge, stop func()) {
	t.Helper()
	b = a.bridge(t, name)
	if err := b.Timers(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := b.Timers(t.Context()); err == nil {
		t.Error("timers twice: got no error")
	}
	if got, want := b.Targets(), []string{"wake/-"}; !slices.Equal(got, want) {
		t.Errorf("targets: got %q, want %q", got, want)
	}
	return b, run(t, b)
}

func (a *actor) askWake(t *testing.T, name string, due time.Time) {
	t.Helper()
	err := a.Ask(t.Context(), "s1", session.Effect{Name: name, Class: session.ClassWake, Target: subjects.NoTarget, Payload: wakeEffect(t, name, due)})
	if err != nil {
		t.Fatal(err)
	}
}

// woken returns how often each wake was settled, and when first, by the log.
func (a *actor) woken(t *testing.T) (times map[string]int, first map[string]time.Time) {
	t.Helper()
	times, first = make(map[string]int), make(map[string]time.Time)
	for e, err := range a.ReadSession(t.Context(), "s1", 1, 0, true) {
		var env session.Envelope
		var w session.WakeSettled
		if err = errors.Join(err, codec.Unmarshal(e.Payload, &env), codec.Unmarshal(env.Data, &w)); err != nil {
			t.Fatal(err)
		}
		if times[w.Effect]++; times[w.Effect] == 1 {
			first[w.Effect] = time.UnixMilli(e.Time)
		}
	}
	return times, first
}

// Several bridges share the work; each wake is settled once, none early; a
// wake that is asked again once it is settled is settled again, which the
// session takes for nothing.
func TestTimersTogether(t *testing.T) {
	t.Parallel()
	a := newActor(t)
	a.timer(t, "one")
	_, stop := a.timer(t, "two")
	start := time.Now()
	due := map[string]time.Time{}
	for n := range 40 {
		name := fmt.Sprintf("w%d", n+1)
		due[name] = time.UnixMilli(start.Add(time.Duration(37*n-200) * time.Millisecond).UnixMilli())
		a.askWake(t, name, due[name])
	}
	bustest.Until(t, "all are settled", func() bool { times, _ := a.woken(t); return len(times) == len(due) })
	stop()
	times, first := a.woken(t)
	var latest time.Duration
	for name, at := range due {
		if times[name] != 1 || first[name].Before(at) {
			t.Errorf("%s was settled %d times, %v after its due", name, times[name], first[name].Sub(at))
		}
		latest = max(latest, first[name].Sub(at))
	}
	t.Logf("the latest of %d was %v late", len(due), latest)
	a.allAcked(t, "wake")
}

// mortal is a clockwork that dies as soon as it has stored something: its
// bridge says nothing more.
type mortal struct {
	*bus.Bus
	schedules, settles bool // what it dies of
	died               chan struct{}
	once               sync.Once
}

func (m *mortal) die() {
	m.once.Do(func() {
		m.Close()
		close(m.died)
	})
}

func (m *mortal) Schedule(ctx context.Context, sid, wake string, at time.Time, payload []byte) error {
	err := m.Bus.Schedule(ctx, sid, wake, at, payload)
	if m.schedules {
		m.die()
	}
	return err
}

func (m *mortal) Publish(ctx context.Context, door session.Door, sid string, payload []byte, id string) (uint64, error) {
	seq, err := m.Bus.Publish(ctx, door, sid, payload, id)
	if m.settles {
		m.die()
	}
	return seq, err
}

// A bridge dies after what it stored and before its ack; the next one loses
// nothing.
func TestTimerDies(t *testing.T) {
	t.Parallel()
	for name, m := range map[string]*mortal{
		"after the schedule":                  {schedules: true},
		"after the settlement":                {settles: true},
		"after the settlement of a past wake": {settles: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newActor(t)
			b := a.bridge(t, "mortal")
			m.Bus, m.died = b.bus, make(chan struct{})
			ctx, cancel := context.WithCancel(t.Context())
			life, stop := newLifetimes(ctx, time.Second)
			ended := make(chan error, 1)
			go func() { ended <- b.keepTime(m, life, 4) }()
			due := time.UnixMilli(time.Now().Add(800 * time.Millisecond).UnixMilli())
			if strings.Contains(name, "past") {
				due = due.Add(-time.Hour)
			}
			a.askWake(t, "w1", due)
			select {
			case <-m.died:
			case <-time.After(testPatience):
				t.Fatal("it does not die")
			}
			a.timer(t, "heir")
			least := 1 // once more if the lost ack brings the wake again when it is due
			if m.settles {
				least = 2
			}
			bustest.Until(t, "the wake is settled by its heir", func() bool { times, _ := a.woken(t); return times["w1"] >= least })
			a.allAcked(t, "wake")
			if times, first := a.woken(t); times["w1"] > 2 || first["w1"].Before(due) {
				t.Errorf("settled %d times, first %v after its due; want %d or 2 times, not before", times["w1"], first["w1"].Sub(due), least)
			}
			cancel()
			stop()
			if err := <-ended; err != nil {
				t.Logf("the dead bridge ends: %v", err)
			}
		})
	}
}
