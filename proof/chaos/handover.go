package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/llm/scripted"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/presence"
	"github.com/refold/refold/subjects"
)

// echoModel is a model that answers at once, without tools: the load of
// handovers.
const echoModel = "echo"

func echoCast() (*Cast, error) {
	record, err := codec.Marshal(session.InstallRecord{
		Config: &session.RunConfig{Provider: scriptedModel, Model: echoModel}, Rules: session.RulesVersion, V: session.Version,
	})
	return &Cast{echo: scripted.Echo(), Install: record}, err
}

// HandoverOptions say how handovers are measured.
type HandoverOptions struct {
	Program  []string // as in Options
	Dir      string   // as in Options
	Rounds   int      // of each signal
	InFlight int      // runs of each lane
}

// Handover is a measured handover: of two session-actors that share the lanes,
// one was killed while runs went on.
type Handover struct {
	Term    bool          // SIGTERM, not SIGKILL
	Lanes   int           // that it owned
	First   time.Duration // the shortest silence of one of its lanes
	Silence time.Duration // the longest time without a notice of one of its lanes
	Others  time.Duration // the longest silence of the lanes that the other owned anyway
	Calm    time.Duration // the longest silence of any lane just before, without a kill
	Ended   time.Duration // from SIGTERM to the end of the process; 0 for SIGKILL
}

const (
	lanes         = subjects.LanesDefault
	handoverAfter = 5 // ends of runs of each lane after which a silence counts as over
	handoverWaits = time.Minute
)

// handover is two session-actors, a bridge, and the load on them.
type handover struct {
	options HandoverOptions
	dir     string
	server  *natsProcess
	actors  []*process
	bridge  *process
	bus     *bus.Bus
	members *presence.Members
	client  *client.Client
	failed  chan error

	requests sync.WaitGroup
	mu       sync.Mutex
	next     int // number in the next session's name
	heard,
	silence [lanes]time.Duration // latest notice, since begun; longest silence since the kill
	ends  [lanes]int // since the kill
	begun time.Time
}

// Handovers measures handovers, first by SIGTERM, then by SIGKILL, and calls tell
// with each. It fails if a process ends, or a lane is silent for a minute.
func Handovers(ctx context.Context, o HandoverOptions, tell func(Handover) error) (err error) {
	ctx, give := context.WithCancelCause(ctx)
	defer give(nil)
	h := &handover{options: o, failed: make(chan error, 8), begun: time.Now()}
	if h.dir, err = os.MkdirTemp(o.Dir, "handover-"); err != nil {
		return err
	}
	defer func() {
		give(nil)
		h.stop()
		err = errors.Join(err, os.RemoveAll(h.dir))
	}()
	go watch(ctx, h.failed, give)
	if err := h.start(ctx); err != nil {
		return because(ctx, err)
	}
	for _, term := range []bool{true, false} {
		for round := range o.Rounds {
			measured, err := h.measure(ctx, h.actors[round%len(h.actors)], term)
			if err != nil {
				return because(ctx, err)
			}
			if err := tell(measured); err != nil {
				return err
			}
		}
	}
	return nil
}

// start starts everything, and the load.
func (h *handover) start(ctx context.Context) (err error) {
	failed := func(err error) { h.failed <- err }
	x := &Explorer{options: Options{Source: Source{Model: echoModel}, Program: h.options.Program}}
	h.server = newNATSProcess(x.argv(Server, "", h.dir), failed)
	if err := h.server.run(ctx); err != nil {
		return err
	}
	url := "nats://" + h.server.address()
	h.bridge = &process{part: Bridge, argv: x.argv(Bridge, url, h.dir), failed: failed}
	for range 2 {
		h.actors = append(h.actors, &process{part: SessionActor, argv: x.argv(SessionActor, url, h.dir), failed: failed})
	}
	if h.bus, err = bus.Connect(ctx, natsio.Options{URL: url, Name: "refold-handover"}); err != nil {
		return err
	}
	if h.members, err = h.bus.TrackMembers(ctx, subjects.KindSessionActor); err != nil {
		return err
	}
	if h.client, err = client.Connect(ctx, client.Options{URL: url, Name: "refold-handover"}); err != nil {
		return err
	}
	for _, p := range h.daemons() {
		if err := p.start(); err != nil {
			return err
		}
	}
	if err := h.until(ctx, "the two session-actors share no lanes", func() bool { return halved(h.shares()) }); err != nil {
		return err
	}
	h.requests.Go(func() { h.follow(ctx) })
	for lane := range lanes {
		for range h.options.InFlight {
			h.startRun(ctx, lane)
		}
	}
	return nil
}

// shares returns the lanes of each live session-actor, if together they own all.
func (h *handover) shares() map[string][]int {
	shares := map[string][]int{}
	var all []int
	for _, m := range h.members.Live(2 * presence.HeartbeatEvery) {
		var body struct {
			Lanes []int `json:"lanes"`
		}
		if json.Unmarshal(m.Body, &body) == nil {
			shares[m.Instance] = body.Lanes
			all = append(all, body.Lanes...)
		}
	}
	slices.Sort(all)
	for lane := range lanes {
		if lane >= len(all) || all[lane] != lane || len(all) != lanes {
			return nil
		}
	}
	return shares
}

// halved reports whether two session-actors own half of the lanes each.
func halved(shares map[string][]int) bool {
	for _, had := range shares {
		if len(had) != lanes/2 {
			return false
		}
	}
	return len(shares) == 2
}

// startRun starts a run in a new session of a lane.
func (h *handover) startRun(ctx context.Context, lane int) {
	h.mu.Lock()
	var sid string
	for sid == "" || subjects.Lane(subjects.Partition(sid)) != lane {
		sid = fmt.Sprintf("handover-%d", h.next)
		h.next++
	}
	h.mu.Unlock()
	h.requests.Go(func() {
		if _, err := h.client.Run(ctx, sid, "hello", client.RunOptions{ID: sid}); err != nil && ctx.Err() == nil {
			h.failed <- fmt.Errorf("request a run: %w", err)
		}
	})
}

// follow receives notices, and requests the next run when one ends.
func (h *handover) follow(ctx context.Context) {
	for n, err := range h.client.Notices(ctx, "", 1) {
		if err != nil {
			if ctx.Err() == nil {
				h.failed <- err
			}
			return
		}
		lane := subjects.Lane(subjects.Partition(n.Session))
		h.mu.Lock()
		now := time.Since(h.begun)
		if last := h.heard[lane]; last != 0 {
			h.silence[lane] = max(h.silence[lane], now-last)
		}
		h.heard[lane] = now
		ended := n.Type == session.NoticeRunFinished
		if ended {
			h.ends[lane]++
		}
		h.mu.Unlock()
		if ended {
			h.startRun(ctx, lane)
		}
	}
}

// reset starts the measurement again.
func (h *handover) reset() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.silence, h.ends = [lanes]time.Duration{}, [lanes]int{}
}

// allLanesActive reports whether runs of every lane have ended since reset.
func (h *handover) allLanesActive() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Min(h.ends[:]) >= handoverAfter
}

// longest returns the longest silence of any lane since reset.
func (h *handover) longest() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Max(h.silence[:])
}

// measure kills a session-actor, and starts it again once its lanes are served.
func (h *handover) measure(ctx context.Context, p *process, term bool) (m Handover, err error) {
	m.Term = term
	var before map[string][]int
	h.reset()
	err = h.until(ctx, "no load on two session-actors", func() bool { before = h.shares(); return halved(before) && h.allLanesActive() })
	if err != nil {
		return m, err
	}
	for _, p := range h.daemons() {
		p.begun()
	}
	h.reset()
	if err := h.until(ctx, "no load before the kill", h.allLanesActive); err != nil {
		return m, err
	}
	m.Calm = h.longest()
	h.reset()
	if term {
		_, ended := p.drain()
		began := time.Now()
		<-ended
		m.Ended = time.Since(began)
	} else {
		p.kill()
	}
	var after map[string][]int
	err = h.until(ctx, "no session-actor takes the lanes over", func() bool { after = h.shares(); return len(after) == 1 && h.allLanesActive() })
	if err != nil {
		return m, err
	}
	h.mu.Lock()
	silence := h.silence
	h.mu.Unlock()
	for instance, had := range before {
		_, lives := after[instance]
		for _, lane := range had {
			switch s := silence[lane]; {
			case lives:
				m.Others = max(m.Others, s)
			default:
				m.Lanes++
				m.Silence = max(m.Silence, s)
				if m.Lanes == 1 || s < m.First {
					m.First = s
				}
			}
		}
	}
	return m, p.start()
}

// until polls holds.
func (h *handover) until(ctx context.Context, what string, holds func() bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, handoverWaits, fmt.Errorf("not within %v", handoverWaits))
	defer cancel()
	if err := until(ctx, what, holds); err != nil {
		return fmt.Errorf("%w: %w\n%s", err, context.Cause(ctx), latestLogs(append(h.daemons(), &h.server.process)...))
	}
	return nil
}

// daemons returns the session-actors and the bridge.
func (h *handover) daemons() []*process { return append(slices.Clone(h.actors), h.bridge) }

// stop ends everything.
func (h *handover) stop() {
	for _, p := range h.daemons() {
		if p != nil {
			p.stop()
		}
	}
	h.requests.Wait()
	if h.client != nil {
		h.client.Close()
	}
	if h.bus != nil {
		h.bus.Close()
	}
	if h.server != nil {
		h.server.stop()
	}
}
