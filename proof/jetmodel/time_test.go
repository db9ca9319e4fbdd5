package jetmodel_test

// Effects of time, crashes and losses, on the model alone.

import (
	"errors"
	"testing"
	"time"

	"github.com/refold/refold/proof/jetmodel"
)

// clock is a clock that a test sets.
type clock struct{ at time.Time }

func (c *clock) now() time.Time       { return c.at }
func (c *clock) pass(d time.Duration) { c.at = c.at.Add(d) }

func newClock() *clock { return &clock{time.Unix(1_000_000, 0)} }

func publish(t *testing.T, s *jetmodel.Stream, subject, id string) jetmodel.Ack {
	t.Helper()
	ack, err := s.Publish(jetmodel.Put{Subject: subject, ID: id})
	if err != nil {
		t.Fatal(err)
	}
	return ack
}

// wantPull checks what comes next; 0: nothing.
func wantPull(t *testing.T, c *jetmodel.Consumer, pin string, seq uint64) jetmodel.Delivery {
	t.Helper()
	d, _, err := c.Pull(pin)
	if err != nil || d.Seq != seq {
		t.Fatalf("pulled %d (%v), want %d", d.Seq, err, seq)
	}
	return d
}

func TestAckWaitRedelivers(t *testing.T) {
	t.Parallel()
	at := newClock()
	s := jetmodel.NewStream(jetmodel.Config{}, at.now)
	c := s.Consumer(jetmodel.ConsumerConfig{AckWait: 10 * time.Second})
	publish(t, s, "a", "")
	publish(t, s, "b", "")
	wantPull(t, c, "", 1)
	at.pass(6 * time.Second)
	wantPull(t, c, "", 2)
	c.Progress(1)
	at.pass(6 * time.Second)
	wantPull(t, c, "", 0)
	at.pass(4 * time.Second)
	if d := wantPull(t, c, "", 1); d.Count != 2 {
		t.Errorf("delivered %d times, want 2", d.Count)
	}
	wantPull(t, c, "", 2)
	c.Nak(2, 3*time.Second)
	at.pass(2 * time.Second)
	wantPull(t, c, "", 0)
	at.pass(time.Second)
	wantPull(t, c, "", 2)
}

func TestPinMovesAfterItsTimeout(t *testing.T) {
	t.Parallel()
	at := newClock()
	s := jetmodel.NewStream(jetmodel.Config{}, at.now)
	c := s.Consumer(jetmodel.ConsumerConfig{Pinned: 2 * time.Second})
	for range 3 {
		publish(t, s, "a", "")
	}
	first := wantPull(t, c, "", 1).Pin
	at.pass(time.Second)
	wantPull(t, c, "", 0)
	wantPull(t, c, first, 2)
	at.pass(2 * time.Second)
	second := wantPull(t, c, "", 3).Pin
	if _, _, err := c.Pull(first); !errors.Is(err, jetmodel.ErrPin) || first == second {
		t.Errorf("the former pin %s is answered %v, the new one is %s", first, err, second)
	}
	c.Reset()
	wantPull(t, c, second, 1)
}

func TestAgesEndDuplicatesAndMessages(t *testing.T) {
	t.Parallel()
	at := newClock()
	s := jetmodel.NewStream(jetmodel.Config{OnePerSubject: true, Age: time.Hour, Window: time.Minute}, at.now)
	publish(t, s, "a", "")
	publish(t, s, "b", "id")
	if ack := publish(t, s, "c", "id"); !ack.Duplicate || ack.Seq != 2 {
		t.Errorf("the same id again: %+v", ack)
	}
	at.pass(time.Minute)
	if ack := publish(t, s, "c", "id"); ack.Duplicate {
		t.Errorf("the same id after the window: %+v", ack)
	}
	if _, err := s.Publish(jetmodel.Put{Subject: "a"}); err == nil {
		t.Error("a second message of a subject was stored")
	}
	at.pass(time.Hour)
	publish(t, s, "a", "")
	if all := s.All(">", 1, 0); len(all) != 1 {
		t.Errorf("%d messages are kept, want 1", len(all))
	}
}

func TestLostAcksAndMessages(t *testing.T) {
	t.Parallel()
	at := newClock()
	s := jetmodel.NewStream(jetmodel.Config{Window: time.Minute}, at.now)
	c := s.Consumer(jetmodel.ConsumerConfig{AckWait: time.Minute})
	for range 4 {
		publish(t, s, "a", "")
	}
	wantPull(t, c, "", 1)
	c.Ack(1)
	saved := c.Saved()
	wantPull(t, c, "", 2)
	c.Ack(2)
	c.Restore(saved)
	if d := wantPull(t, c, "", 2); d.Count != 1 || d.ConsumerSeq != 1 {
		t.Errorf("delivered as %d, time %d: want 1 and 1", d.ConsumerSeq, d.Count)
	}
	if _, err := s.At(4, 3); err == nil {
		t.Error("a replica that is at 3 has 4")
	}
	s.Lose(2)
	if ack := publish(t, s, "b", ""); ack.Seq != 2 {
		t.Errorf("stored at %d after the loss, want 2", ack.Seq)
	}
	if d := wantPull(t, c, "", 2); d.Subject != "b" {
		t.Errorf("delivered %s, want b", d.Subject)
	}
}
