package sim

// A run, from its first draw to its end.

import (
	"strings"
	"time"

	"github.com/refold/refold/actors/session"
)

const (
	hostCount    = 2
	bridgeCount  = 2
	laneCount    = 2
	sessionCount = 5
	stepsMax     = 350
	runsMax      = 12 // requested runs
)

// sim is one run.
type sim struct {
	*stage
	*jetServer
	install  session.Event
	hosts    []*host
	bridges  []*bridge
	mail     []*posted
	lives    int
	deadly   map[string]bool // started calls: whether they end their process
	mood     mood
	clockSet bool // somebody set the server's clock
	runs     int
}

// mood is how likely each disaster is in a run.
type mood struct {
	kills, cuts, restarts, waits, stops, jumps int

	logLosses, effectLosses, pastLosses bool // at most one of them
	hours, killers, derivedLosses       bool
	failures                            int  // of sessions and of streams
	grouped                             bool // outputs are stored in atomic batches
}

// option is something that may happen next.
type option struct {
	weight int
	happen func()
}

func newSim(d *draws) *sim {
	st := &stage{draws: d, started: time.Now(), happened: map[string]int{}}
	s := &sim{stage: st, jetServer: newServer(st), hosts: make([]*host, hostCount), bridges: make([]*bridge, bridgeCount)}
	s.play = s
	s.faults = []int{0, 4, 12, 25}[s.draw(4)]
	s.mood = mood{kills: s.draw(3), cuts: s.draw(3), restarts: s.draw(2), waits: s.draw(3), stops: s.draw(3), jumps: max(0, s.draw(6)-3)}
	s.mood.grouped, s.mood.hours = s.draw(2) == 1, s.draw(12) == 11
	switch s.draw(12) {
	case 8, 9:
		s.mood.pastLosses = true
		s.mood.hours = false
	case 10:
		s.mood.effectLosses = true
	case 11:
		s.mood.logLosses = true
		s.mood.hours = false // names of a lost past would expire unnoticed
	}
	s.mood.failures = max(0, s.draw(6)-4)
	s.mood.killers, s.deadly = s.draw(4) == 3, map[string]bool{}
	if s.mood.killers && s.draw(4) > 0 {
		s.forgetNothing()
	}
	s.mood.derivedLosses = s.draw(4) == 3
	s.behind = uint64(s.draw(2) * 3)
	payload := []byte(installRecord)
	install, err := session.ParseInstall(payload)
	if err != nil {
		panic(err)
	}
	s.judge.install = install
	if _, err := s.append(session.DoorInstall, "", "", payload); err != nil {
		panic(err)
	}
	m, err := s.log.At(1, 0)
	if err != nil {
		panic(err)
	}
	s.install = s.event(m)
	for _, b := range install.Registry.Blobs() {
		s.blobs[b.Ref] = b.Content
	}
	return s
}

// skewed draws the error of the clock of a process's machine at its start.
func (s *sim) skewed() time.Duration {
	differs := []time.Duration{0, 600 * time.Millisecond, -600 * time.Millisecond, 11 * time.Minute, -11 * time.Minute}[s.draw(5)]
	if s.faults == 0 {
		return 0
	}
	return differs
}

// fault reports whether something goes wrong, once in n.
func (s *sim) fault(n int) bool { return !s.calm && s.faults > 0 && s.draw(n) == n-1 }

// play plays a run to its end, and returns it.
func play(d *draws) *sim {
	s := newSim(d)
	for i := range s.hosts {
		s.startHost(i)
	}
	for i := range s.bridges {
		s.startBridge(i)
	}
	s.passes(200 * time.Millisecond)
	for step := 0; step < stepsMax && len(s.broken) == 0 && !d.spent(); step++ {
		s.next()
		s.judge.bounds()
	}
	if len(s.broken) == 0 {
		s.calmDown()
	}
	if len(s.broken) == 0 {
		s.judge.end()
	}
	for _, h := range s.hosts {
		s.kill(h.proc)
	}
	for _, b := range s.bridges {
		s.kill(b.proc)
	}
	return s
}

// next makes one thing happen.
func (s *sim) next() {
	s.endDoomed()
	s.happens(append(s.usual(), s.disasters()...))
}

// usual returns what may happen next without a disaster.
func (s *sim) usual() (all []option) {
	for _, w := range s.rest() {
		all = append(all, option{8, func() { s.let(w) }})
	}
	all = append(all, s.deliveries()...)
	all = append(all,
		option{4, s.people},
		option{2, func() { s.passes(time.Duration(1+s.draw(400)) * time.Millisecond) }},
		option{1, func() { s.passes(time.Duration(1+s.draw(6)) * time.Second) }},
	)
	if s.mood.waits > 0 {
		all = append(all, option{s.mood.waits, func() {
			if s.draw(4) == 3 {
				s.passes(time.Duration(10+s.draw(100)) * time.Second)
			}
		}})
	}
	return all
}

// happens draws one of all, by weight.
func (s *sim) happens(all []option) {
	sum := 0
	for _, o := range all {
		sum += o.weight
	}
	at := s.draw(sum)
	for _, o := range all {
		if at -= o.weight; at < 0 {
			o.happen()
			return
		}
	}
}

// deliveries returns what the server may do for the processes that pull.
func (s *sim) deliveries() (all []option) {
	if ready := s.inFlight(); len(ready) > 0 {
		all = append(all, option{8, func() { s.post(ready[0]) }})
		if s.faults > 0 {
			all = append(all, option{1, func() { s.post(ready[s.draw(len(ready))]) }})
		}
	}
	for _, l := range s.lanes {
		if l.isAsked() {
			all = append(all, option{5, func() {
				for range 1 + s.draw(4) {
					l.serve(s)
				}
			}})
		}
	}
	for _, h := range s.hosts {
		for _, r := range h.steps() {
			all = append(all, option{8, func() { r.step(); s.rest() }})
		}
	}
	for _, b := range s.bridges {
		if b.dead || !b.draining.IsZero() || b.cut() {
			continue
		}
		for _, of := range s.targets {
			if info := of.consumer.Info(); info.Pending > 0 || info.AckPending > 0 {
				if len(b.held[of.consumer]) < slotsMax {
					all = append(all, option{3, func() { b.pull(of); s.rest() }})
				}
			}
		}
	}
	if info := s.dues.Info(); info.Pending > 0 || info.AckPending > 0 {
		for _, h := range s.hosts {
			all = append(all, option{3, func() { h.pullDue(); s.rest() }})
		}
	}
	return all
}

// passes lets time pass, with leases and pins kept, heartbeats, and ticks.
func (s *sim) passes(d time.Duration) {
	s.say("%v pass", d)
	for d > 0 {
		some := min(d, 700*time.Millisecond)
		if d > 10*time.Minute {
			some = 10 * time.Second // all processes are suspended
		}
		d -= some
		s.pass(some)
		s.endDoomed()
		s.hearLanes()
		s.beat()
		for _, h := range s.hosts {
			h.keep()
		}
		for i, b := range s.bridges {
			for c, held := range b.held {
				for _, d := range held {
					if !b.dead && !b.cut() && d.epoch == b.joins {
						c.Progress(d.d.Seq)
					}
				}
			}
			b.looksGone(i)
		}
		s.fire()
	}
}

// hearLanes exchanges the messages of lanes and server while time passes.
func (s *sim) hearLanes() {
	for _, w := range s.rest() {
		if strings.HasPrefix(w.key, "lane ") {
			s.let(w)
		}
	}
	for again := true; again; {
		again = false
		for _, i := range s.inFlight() {
			if s.mail[i].keeps {
				s.post(i)
				again = true
				break
			}
		}
	}
	for _, l := range s.lanes {
		l.pass(time.Now())
		if l.isAsked() && s.draw(8) < 7 {
			for range 4 {
				l.serve(s)
			}
		}
	}
}

// isDone reports whether nothing is left to do except to wait for wakes.
func (s *sim) isDone() bool {
	for _, l := range s.lanes {
		if info := l.consumer.Info(); info.Pending > 0 || info.AckPending > 0 {
			return false
		}
	}
	for _, b := range s.bridges {
		for _, held := range b.held {
			if len(held) > 0 {
				return false // it is still running, without a cancel
			}
		}
	}
	for sid, one := range s.judge.sessions {
		if one.state.Run != nil || s.stops[sid] != nil && !one.lost {
			return false
		}
		for _, e := range one.state.Open() {
			if e.Class != session.ClassWake || e.Deadline < s.newest().UnixMilli() {
				return false
			}
		}
	}
	return true
}
