package journal

import (
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold/internal/natsio"
)

// TestPace: the burst with the shortest time for a message decides whether waiting
// messages are sent in groups, and nothing is decided earlier.
func TestPace(t *testing.T) {
	t.Parallel()
	const fast, slow = slowFrom - 1, slowFrom
	for _, c := range []struct {
		name           string
		each           []time.Duration
		judged, groups bool
	}{
		{"too few", slices.Repeat([]time.Duration{slow}, paceBursts-1), false, false},
		{"all were slow", slices.Repeat([]time.Duration{slow}, paceBursts), true, true},
		{"one was fast", append(slices.Repeat([]time.Duration{slow}, paceBursts-1), fast), true, false},
	} {
		var p pace
		now := time.Unix(1, 0)
		for _, each := range c.each {
			p.begin(paceLeast, now)
			now = now.Add(paceLeast * each)
			p.end(now)
		}
		if p.judged != c.judged || p.groups != c.groups {
			t.Errorf("%s: judged %v, in groups %v, want %v and %v", c.name, p.judged, p.groups, c.judged, c.groups)
		}
	}
}

// TestPaceIsMeasuredAgain: after a reconnect a committer measures again, since the server
// may have been started again with another sync_interval. The committer of wakes follows.
func TestPaceIsMeasuredAgain(t *testing.T) {
	t.Parallel()
	effects, wakes := testLoop(), testLoop()
	wakes.gap, wakes.like, wakes.pace = time.Nanosecond, effects.committer, pace{groups: true, judged: true}
	for _, each := range []time.Duration{slowFrom - 1, slowFrom, slowFrom - 1} {
		effects.measureAgain()
		wakes.measureAgain()
		if effects.pace.judged || effects.fast.Load() || !wakes.pace.judged {
			t.Fatalf("after a reconnect: effects judged %v, fast %v, wakes judged %v", effects.pace.judged, effects.fast.Load(), wakes.pace.judged)
		}
		now := time.Unix(1, 0)
		for range paceBursts {
			effects.pace.begin(paceLeast, now)
			now = now.Add(paceLeast * each)
			effects.pace.end(now)
		}
		effects.fast.Store(effects.pace.judged && !effects.pace.groups)
		wakes.waitsForGap()
		if want := each >= slowFrom; !effects.pace.judged || effects.pace.groups != want || wakes.pace.groups != want {
			t.Errorf("%v a message: judged %v, effects in groups %v, wakes %v, want %v", each, effects.pace.judged, effects.pace.groups, wakes.pace.groups, want)
		}
	}
}

// TestWakesWaitForTheGap: the committer of wakes waits between two groups, unless a wake
// is awaited, or the server stores single messages as fast.
func TestWakesWaitForTheGap(t *testing.T) {
	t.Parallel()
	s := &committerLoop{committer: &committer{gap: time.Hour, like: &committer{}, pace: pace{groups: true, judged: true}}}
	wants := func(what string, want bool) {
		t.Helper()
		if got := s.waitsForGap(); got != want {
			t.Errorf("%s: waits is %v, want %v", what, got, want)
		}
	}
	s.ready = []*write{{}}
	wants("the first group", false)
	wants("the next one", true)
	s.ready = append(s.ready, &write{awaited: true})
	wants("somebody waits", false)
	s.ready = s.ready[:1]
	wants("the one after it", true)
	s.like.fast.Store(true)
	wants("the server takes single messages as fast", false)
	if s.pace.groups {
		t.Error("wakes go out in groups, though the server takes single messages as fast")
	}
}

// TestBurstEndsWithItsLastAnswer: the last answer ends a burst even if it is ignored or
// a denial. Nothing is sent during a burst, so one that did not end would stop the
// committer.
func TestBurstEndsWithItsLastAnswer(t *testing.T) {
	t.Parallel()
	s := testLoop()
	all := s.testWrites(5)
	number := s.sent(all[0])
	stored := &nats.Msg{Subject: natsio.ReplySubject("inbox", number), Data: []byte(`{"stream":"S","seq":1}`)}
	s.receive(stored)
	if again := s.sent(all[2]); again != number {
		t.Fatalf("the next number is %d, want %d again", again, number)
	}
	s.pace.begin(1, time.Now())
	s.receive(stored)
	if s.pace.sent != 0 || len(s.ready) != 1 {
		t.Errorf("an answer that is not believed: a burst of %d is under way and %d go out again, want 0 and 1", s.pace.sent, len(s.ready))
	}
	s.sent(all[4])
	s.pace.begin(1, time.Now())
	s.deny(&natsio.PermissionError{Op: "publish", Subject: all[4].subject})
	if s.pace.sent != 0 {
		t.Errorf("a denial: a burst of %d is under way", s.pace.sent)
	}
}
