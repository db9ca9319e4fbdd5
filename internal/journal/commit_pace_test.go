package journal

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/natsio"
)

// TestOneFastSampleEndsGroups: waiting messages are sent in groups until a sample of
// single messages is fast. A sample is never faster than the server, so slow ones prove
// nothing.
func TestOneFastSampleEndsGroups(t *testing.T) {
	t.Parallel()
	var p pace
	now := time.Unix(1, 0)
	for _, c := range []struct {
		n    int
		each time.Duration
		fast bool
	}{{1, slowFrom, false}, {sampleMost, slowFrom, false}, {3, time.Second, false}, {2, slowFrom - 1, true}} {
		p.begin(c.n, now)
		now = now.Add(time.Duration(c.n) * c.each)
		if p.end(now, slowFrom); p.fast != c.fast || p.sample != 0 {
			t.Errorf("%d messages, each in %v: got fast %v and a sample of %d, want %v and none", c.n, c.each, p.fast, p.sample, c.fast)
		}
	}
}

// TestSamplesAreRare: of a thousand groups, eleven are samples.
func TestSamplesAreRare(t *testing.T) {
	t.Parallel()
	var p pace
	var got []int
	for n := range 1000 {
		if p.takesSample() {
			got = append(got, n+1)
		}
	}
	if want := []int{1, 2, 3, 4, 8, 16, 32, 64, 128, 256, 512}; !slices.Equal(got, want) {
		t.Errorf("got samples of the groups %v, want %v", got, want)
	}
}

// TestSlowMessagesEndSingles: single messages that took long on average, for a second,
// end it. So does a disk that was fast in the sample alone. Pauses between messages count
// for nothing, and one message that took long for little.
func TestSlowMessagesEndSingles(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		n      int           // messages
		burst  int           // that are pending together
		each   time.Duration // that one takes
		one    time.Duration // that the first one takes longer
		pauses time.Duration // between bursts
		want   bool
	}{
		{"fast ones", 20_000, 1, 100 * time.Microsecond, 0, 0, true},
		{"slow ones", 20_000, 1, slowFrom, 0, 0, false},
		{"slow ones in bursts", 20_000, 10, slowFrom, 0, 0, false},
		{"fast ones with pauses", 1000, 4, 100 * time.Microsecond, 0, time.Second, true},
		{"slow ones with pauses", 1000, 4, slowFrom, 0, time.Second, false},
		{"one is slow", 20_000, 1, 100 * time.Microsecond, 100 * time.Millisecond, 0, true},
		{"slow ones for less than a second", int(slowFor/slowFrom) - 1, 1, slowFrom, 0, 0, true},
		{"few slow ones", slowAnswers - 1, 1, time.Second, 0, 0, true},
	} {
		now := time.Unix(1, 0)
		p := pace{fast: true, since: now}
		for i := 0; i < c.n && p.fast; {
			p.from = now
			for pending := c.burst - 1; pending >= 0 && p.fast; pending-- {
				if now = now.Add(c.each); i == 0 {
					now = now.Add(c.one)
				}
				p.answered(pending, now, slowFrom)
				i++
			}
			now = now.Add(c.pauses)
		}
		if p.fast != c.want {
			t.Errorf("%s: got fast %v, want %v", c.name, p.fast, c.want)
		}
	}
}

// TestWakesWaitForTheGap: the committer of wakes waits between two groups, unless a wake
// is awaited, or the server is fast with single messages.
func TestWakesWaitForTheGap(t *testing.T) {
	t.Parallel()
	s := &committerLoop{committer: &committer{gap: time.Hour}}
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
	s.pace.fast = true
	wants("single messages are fast", false)
}

// TestSampleEndsWithItsLastAnswer: the last answer ends a sample. It proves nothing if
// an answer is ignored, a refusal or a denial, which needs no sync. Nothing is sent
// during a sample, so one that did not end would stop the committer.
func TestSampleEndsWithItsLastAnswer(t *testing.T) {
	t.Parallel()
	s := testLoop()
	s.slowFrom = time.Hour
	all := s.testWrites(9)
	next := all
	send := func(n int) (numbers []uint64) {
		for _, w := range next[:n] {
			w.order = ""
			numbers = append(numbers, s.sent(w))
		}
		next = next[n:]
		s.pace.begin(n, time.Now())
		return numbers
	}
	answer := func(number uint64, text string) {
		s.receive(&nats.Msg{Subject: natsio.ReplySubject("inbox", number), Data: []byte(text)})
	}
	ended := func(what string, fast bool) {
		t.Helper()
		if s.pace.sample != 0 || s.pace.fast != fast {
			t.Errorf("%s: got a sample of %d and fast %v, want none and %v", what, s.pace.sample, s.pace.fast, fast)
		}
	}
	const stored = `{"stream":"S","seq":1}`
	first := send(1)[0]
	answer(first, stored)
	ended("stored", true)
	s.pace = pace{}
	answer(send(1)[0], stored)
	ended("an answer that is ignored", false)
	numbers := send(2)
	answer(numbers[0], refusal(codeTooLarge))
	answer(numbers[1], `{"stream":"S","seq":2}`)
	ended("a refusal", false)
	answer(send(1)[0], `{"stream":"S","seq":2,"duplicate":true}`)
	ended("a duplicate", false)
	send(1)
	s.deny(&natsio.PermissionError{Op: "publish", Subject: all[5].subject})
	ended("a denial", false)
	send(1)
	s.retryUnanswered(0)
	ended("no answer", false)
}

// TestRestartIsJudgedAnew: a server is started again with `sync_interval: always`. What
// waits is then stored in groups, though single messages were fast before.
func TestRestartIsJudgedAnew(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t, bustest.Interval)
	j, ctx := testJournal(t, node, natsio.DurabilityUnknown)
	provisionTest(t, ctx, j)
	grouped := func(sid string) bool {
		t.Helper()
		last, n := uint64(0), 0
		for round := range samplesFirst + 2 { // the first ones are samples, until one was fast
			var all []*write
			for i := range 2 * sampleMost {
				w, err := j.writeOf(&Output{Session: fmt.Sprint(sid, round, "of", i), Notice: []byte("x"), N: 1})
				bustest.OK(t, err)
				all = append(all, w)
			}
			bustest.OK(t, j.notices.commit(ctx, all))
			for _, w := range all {
				bustest.OK(t, w.err)
				last = max(last, w.seq)
			}
		}
		for seq := last; seq > last-2*sampleMost; seq-- {
			m, err := j.leaderGet(ctx, j.names.NoticesStream(), getRequest{Seq: seq})
			bustest.OK(t, err)
			if m.header.Get("Nats-Batch-Id") != "" {
				n++
			}
		}
		return n > 0
	}
	// What a sample takes depends on the machine, so the limit says what is fast.
	j.notices.slowFrom, j.notices.pace = time.Hour, pace{}
	if grouped("before") {
		t.Error("before the restart, messages are stored in groups; want single ones")
	}
	node.Stop()
	j.notices.slowFrom = 0
	node.Start(func(o *server.Options) { o.SyncAlways = true })
	if !grouped("after") {
		t.Error("after the restart, single messages are stored; want groups")
	}
}
