package bench

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/subjects"
)

// load plays the clients of both sides: it keeps a number of runs in flight, each
// of its own session, and reads their ends from the notices.
type load struct {
	nc      *nats.Conn
	names   subjects.Names
	log     *committer
	reading jetstream.ConsumeContext
	fail    func(error)

	mu       sync.Mutex
	next     int // number of the next session
	limit    int // sessions to start; 0: until drain
	stopped  bool
	begun    map[string]time.Time
	ended    int
	awaited  int           // value of ended that more waits for
	enough   chan struct{} // closed when ended reaches it
	measured bool
	took     []time.Duration // of runs that ended while measured was set
	drained  chan struct{}   // closed when no run is in flight any more
}

// startLoad connects. grouped is how requests are stored: clients of one process
// store simultaneous requests together.
func startLoad(ctx context.Context, s *servers, grouped bool, fail func(error)) (l *load, err error) {
	l = &load{fail: fail, begun: make(map[string]time.Time), drained: make(chan struct{})}
	if l.names, err = subjects.New(""); err != nil {
		return nil, err
	}
	if l.nc, err = s.connect(2, "refold-bench-clients"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			l.stop()
		}
	}()
	if l.log, err = newCommitter(l.nc, grouped, fail); err != nil {
		return nil, err
	}
	js, err := jetstream.New(l.nc)
	if err != nil {
		return nil, err
	}
	stream, err := js.Stream(ctx, l.names.NoticesStream())
	if err != nil {
		return nil, fmt.Errorf("read notices: %w", err)
	}
	// Notices of older sessions would keep the clients busy for long.
	notices, err := js.OrderedConsumer(ctx, l.names.NoticesStream(), jetstream.OrderedConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: stream.CachedInfo().State.LastSeq + 1,
	})
	if err != nil {
		return nil, fmt.Errorf("read notices: %w", err)
	}
	l.reading, err = notices.Consume(l.handleNotice)
	return l, err
}

func (l *load) stop() {
	if l.reading != nil {
		l.reading.Stop()
		<-l.reading.Closed()
	}
	if l.log != nil {
		l.log.close()
	}
	l.nc.Close()
}

// carryOut carries out runs, at most inFlight at a time, and waits for their ends.
func (l *load) carryOut(ctx context.Context, inFlight, runs int) error {
	l.startRuns(min(inFlight, runs), runs)
	return l.wait(ctx)
}

// startRuns keeps n runs in flight until finish, or until the session before
// limit (0: no limit) has been started.
func (l *load) startRuns(n, limit int) {
	l.mu.Lock()
	l.limit = limit
	l.mu.Unlock()
	for range n {
		l.startNext()
	}
}

// startNext starts the next run, unless the limit is reached.
func (l *load) startNext() {
	l.mu.Lock()
	if l.stopped || l.limit > 0 && l.next >= l.limit {
		l.stopped = true
		if len(l.begun) == 0 {
			l.finish()
		}
		l.mu.Unlock()
		return
	}
	sid := sessionID(l.next)
	l.next++
	l.begun[sid] = time.Now()
	l.mu.Unlock()
	subject, err := l.names.Log(session.DoorIn, sid)
	if err != nil {
		l.fail(err)
		return
	}
	payload, id, err := request(sid)
	if err != nil {
		l.fail(err)
		return
	}
	l.log.put(message{subject: subject, id: id, data: payload, stored: func() {}})
}

// finish reports that no run is in flight. The caller holds the lock.
func (l *load) finish() {
	select {
	case <-l.drained:
	default:
		close(l.drained)
	}
}

var (
	finished = []byte(`"` + session.NoticeRunFinished + `"`)
	failed   = []byte(`"` + string(session.Failed) + `"`)
)

// handleNotice reads a notice. A run's end starts the next run.
func (l *load) handleNotice(m jetstream.Msg) {
	if !bytes.Contains(m.Data(), finished) {
		return
	}
	now := time.Now()
	sid, err := l.names.ParseOut(m.Subject())
	if err == nil && bytes.Contains(m.Data(), failed) {
		err = fmt.Errorf("a run failed: %s", m.Data())
	}
	if err != nil {
		l.fail(err)
		return
	}
	l.mu.Lock()
	begun, open := l.begun[sid]
	if open {
		delete(l.begun, sid)
		if l.ended++; l.ended == l.awaited {
			close(l.enough)
		}
		if l.measured {
			l.took = append(l.took, now.Sub(begun))
		}
	}
	l.mu.Unlock()
	if open {
		l.startNext()
	}
}

// measure starts or stops the counting of runs.
func (l *load) measure(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.measured = on
}

// more waits until n more runs have ended. It must not be called concurrently.
func (l *load) more(ctx context.Context, n int) error {
	l.mu.Lock()
	enough := make(chan struct{})
	l.awaited, l.enough = l.ended+n, enough
	l.mu.Unlock()
	return l.await(ctx, enough)
}

// drain starts no more runs and waits for those in flight.
func (l *load) drain(ctx context.Context) error {
	l.mu.Lock()
	l.stopped = true
	if len(l.begun) == 0 {
		l.finish()
	}
	l.mu.Unlock()
	return l.wait(ctx)
}

// wait waits until all runs have ended.
func (l *load) wait(ctx context.Context) error { return l.await(ctx, l.drained) }

// await waits until done is closed, however long that takes, while runs keep
// ending. It fails if none has ended for drainWithin.
func (l *load) await(ctx context.Context, done <-chan struct{}) error {
	late := time.NewTicker(drainWithin)
	defer late.Stop()
	for before := -1; ; {
		select {
		case <-done:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-late.C:
		}
		l.mu.Lock()
		ended, open, begun := l.ended, len(l.begun), l.next
		l.mu.Unlock()
		if ended == before {
			return fmt.Errorf("%d of %d runs did not end, and none of them within the last %v", open, begun, drainWithin)
		}
		before = ended
	}
}

// runs returns the number of started runs.
func (l *load) runs() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next
}

// latencies returns the durations of the measured runs, the shortest first.
func (l *load) latencies() []time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	slices.Sort(l.took)
	return l.took
}

// part returns the latency that the fraction p of the runs did not exceed.
func part(sorted []time.Duration, p float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(p*float64(len(sorted))), len(sorted)-1)]
}
