package bridge

// Hosts, bridges, timers and people on a model of JetStream, in one goroutine at
// a time, by seed: docs/simulator.md. sim_stage_test.go has the stage,
// sim_server_test.go the server, sim_wire_test.go what processes see of it,
// sim_procs_test.go the processes, sim_laws_test.go what must hold, and
// sim_shrink_test.go makes a failing run smaller.

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/refold/refold/actors/session"
)

const (
	simHosts    = 2
	simBridges  = 2
	simSessions = 3
	simSteps    = 400
)

// sim is one run.
type sim struct {
	*stage
	*jetServer
	install session.Event
	hosts   []*simHost
	bridges []*simBridge
	mail    []letter
	lives   int
	mood    mood
	runs    int
}

// mood is what a run is given to.
type mood struct{ kills, cuts, restarts, losses, waits int }

// option is something that may happen next.
type option struct {
	weight int
	happen func()
}

func newSim(d *draws) *sim {
	st := &stage{draws: d, started: time.Now(), happened: map[string]int{}}
	s := &sim{stage: st, jetServer: newServer(st), hosts: make([]*simHost, simHosts), bridges: make([]*simBridge, simBridges)}
	s.faults = []int{0, 4, 12, 25}[s.draw(4)]
	s.mood = mood{kills: s.draw(3), cuts: s.draw(3), restarts: s.draw(2), waits: s.draw(3)}
	if s.draw(10) == 9 {
		s.mood.losses = 1
	}
	s.behind = uint64(s.draw(2) * 3)
	payload := []byte(simInstall)
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

// simInstall has a tool that may run twice and one that may not.
const simInstall = `{"v":1,"rules":1,"config":{"provider":"p","model":"m","deadlines_ms":{"turn":90000,"call":60000}},"tools":[` +
	`{"tool_id":"x.read","tool_name":"read","args_schema":{"type":"object"},"executor":{"kind":"effect","target":"x"},"parallel_safe":true,"retry_safe":true,"access":"read"},` +
	`{"tool_id":"x.write","tool_name":"write","args_schema":{"type":"object"},"executor":{"kind":"effect","target":"x"},"parallel_safe":true}]}`

// fault reports that something goes wrong, once in n.
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
	for step := 0; step < simSteps && len(s.broken) == 0 && !d.spent(); step++ {
		s.next()
	}
	if len(s.broken) == 0 {
		s.calmDown()
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

// next lets one thing happen.
func (s *sim) next() {
	var all []option
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
	all = append(all, s.disasters()...)
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

// deliveries are what the server may do for who pulls.
func (s *sim) deliveries() (all []option) {
	if len(s.mail) > 0 {
		all = append(all, option{6, func() { s.post(0) }})
		if s.faults > 0 {
			all = append(all, option{1, func() { s.post(s.draw(len(s.mail))) }})
		}
	}
	for _, h := range s.hosts {
		if h.dead || h.cut() {
			continue
		}
		if h.stepper.Idle() && (h.stepper.HasStored() || len(h.queue) > 0) {
			all = append(all, option{8, func() { h.step(); s.rest() }})
		}
		if info := s.lane.Info(); len(h.queue) < 20 && (info.Pending > 0 || info.AckPending > 0) {
			all = append(all, option{4, h.pull})
		}
	}
	for _, b := range s.bridges {
		if b.dead || b.draining || b.cut() {
			continue
		}
		for _, of := range s.targets {
			if info := of.consumer.Info(); info.Pending > 0 || info.AckPending > 0 {
				if len(b.held[of.consumer]) < simSlots {
					all = append(all, option{3, func() { b.pull(of.consumer, of); s.rest() }})
				}
			}
		}
		if info := s.dues.Info(); info.Pending > 0 || info.AckPending > 0 {
			all = append(all, option{3, func() { b.pull(s.dues, nil); s.rest() }})
		}
	}
	return all
}

// post delivers a letter, or loses it.
func (s *sim) post(i int) {
	l := s.mail[i]
	s.mail = slices.Delete(s.mail, i, i+1)
	switch {
	case s.fault(30):
		s.did("ack lost")
		s.say("%s: lost", l.text)
	case l.nak:
		s.say("%s", l.text)
		l.consumer.Nak(l.seq, l.delay)
	default:
		s.say("%s", l.text)
		l.consumer.Ack(l.seq)
	}
}

// disasters are what goes wrong with whole processes and servers.
func (s *sim) disasters() (all []option) {
	if s.faults == 0 {
		return nil
	}
	if s.mood.kills > 0 && s.draw(40) == 39 {
		all = append(all, option{40 * s.mood.kills, func() {
			if i := s.draw(simHosts + simBridges); i < simHosts {
				s.killHost(i)
			} else {
				s.killBridge(i - simHosts)
			}
		}})
	}
	if s.mood.cuts > 0 && s.draw(40) == 39 {
		all = append(all, option{40 * s.mood.cuts, func() {
			if i := s.draw(simHosts + simBridges); i < simHosts {
				s.cutOrJoin(s.hosts[i].proc, s.hosts[i])
			} else {
				s.cutOrJoin(s.bridges[i-simHosts].proc, nil)
			}
		}})
	}
	if s.draw(20) == 19 {
		all = append(all, option{20, s.flush})
		if s.mood.restarts > 0 {
			all = append(all, option{20, func() {
				s.did("consumers forget")
				s.say("the consumers have another leader")
				s.restart()
			}})
		}
	}
	if s.mood.losses > 0 && s.draw(60) == 59 {
		all = append(all, option{60, s.powerLoss})
	}
	return all
}

func (s *sim) killHost(i int) {
	h := s.hosts[i]
	s.did("host killed")
	s.say("%s is killed", h.name)
	s.kill(h.proc)
	s.startHost(i)
}

func (s *sim) killBridge(i int) {
	b := s.bridges[i]
	if !b.draining && s.draw(3) == 2 {
		s.did("bridge stops")
		s.say("%s is told to stop", b.name)
		b.draining = true
		b.drain()
		return
	}
	s.did("bridge killed")
	s.say("%s is killed", b.name)
	s.kill(b.proc)
	s.startBridge(i)
}

// cutOrJoin cuts a process off from the server, or ends that.
func (s *sim) cutOrJoin(p *proc, h *simHost) {
	s.mu.Lock()
	joins := p.cut()
	p.cutAt = time.Now()
	if joins {
		p.cutAt, p.joinedAt = time.Time{}, time.Now()
	}
	s.mu.Unlock()
	s.did("cut off")
	s.say("%s is cut off: %v", p.name, !joins)
	if joins && h != nil && h.pin != "" {
		h.begin("the connection was made anew")
	}
}

// powerLoss takes the latest events out of the log.
func (s *sim) powerLoss() {
	last := s.log.LastSeq()
	from := last + 1 - min(last-1, uint64(1+s.draw(8)))
	s.did("log loses")
	s.say("the log loses %d to %d", from, last)
	s.log.Lose(from)
	s.judge.lose(from)
	s.flush() // a server that starts again writes what it found
	for _, h := range s.hosts {
		if h.pin != "" && !h.cut() {
			h.lose()
		}
	}
}

// passes lets time pass, in which pins and leases are kept, and lanes tick.
func (s *sim) passes(d time.Duration) {
	s.say("%v pass", d)
	for d > 0 {
		some := min(d, 700*time.Millisecond)
		d -= some
		s.pass(some)
		for _, h := range s.hosts {
			h.keep()
		}
		for _, b := range s.bridges {
			for c, held := range b.held {
				for seq := range held {
					if !b.dead && !b.cut() {
						c.Progress(seq)
					}
				}
			}
		}
		s.fire()
	}
}

// keep keeps the pin and has the lane look around.
func (h *simHost) keep() {
	if !h.cut() && h.pin != "" && h.sim.lane.Keep(h.pin) != nil {
		h.lose()
	}
	switch now := time.Now(); {
	case !h.stepper.Idle():
	case now.Sub(h.looked) >= 15*time.Second:
		h.looked = now
		h.stepper.Recheck()
	case now.Sub(h.ticked) >= time.Second:
		h.ticked = now
		h.stepper.Tick(now)
	}
	h.sim.rest()
}

// people publish what clients do.
func (s *sim) people() {
	sid := "s" + strconv.Itoa(s.draw(simSessions))
	state := s.judge.of(sid).state
	door, typ, data := session.DoorIn, session.TypeRunRequested, `{"input":{"text":"hi"}}`
	switch state.Run {
	case nil:
		if s.runs++; s.runs > 12 {
			return
		}
	default:
		switch s.draw(30) {
		case 1:
			typ, data = session.TypeRunCancelRequested, `{}`
		case 2:
			typ, data = session.TypeRunInterrupt, `{}`
		case 3:
			typ, data = session.TypeSteerRequested, `{"input":{"text":"rather this"}}`
		case 4:
			typ, data = session.TypeRunPauseRequested, `{}`
		case 5, 6:
			typ, data = session.TypeRunResumeRequested, `{}`
		default:
			return
		}
	}
	if _, err := s.append(door, sid, "", fmt.Appendf(nil, `{"type":%q,"data":%s}`, typ, data)); err != nil {
		panic(err)
	}
}

// calmDown lets all that is left come to its end.
func (s *sim) calmDown() {
	s.say("all is calm from here on")
	s.calm = true
	for i, h := range s.hosts {
		if h.cut() {
			s.cutOrJoin(h.proc, h)
		}
		if h.dead {
			s.startHost(i)
		}
	}
	for i, b := range s.bridges {
		if b.cut() {
			s.cutOrJoin(b.proc, nil)
		}
		if b.dead || b.draining {
			s.kill(b.proc)
			s.startBridge(i)
		}
	}
	for _, sid := range sortedKeys(s.judge.sessions) {
		if run := s.judge.sessions[sid].state.Run; run != nil && run.Lifecycle == session.Paused {
			if _, err := s.append(session.DoorIn, sid, "", []byte(`{"type":"RunResumeRequested","data":{}}`)); err != nil {
				panic(err)
			}
		}
	}
	quiet := 0
	for round := 0; round < 1200 && quiet < 3; round++ {
		s.work()
		if quiet++; !s.isDone() {
			quiet = 0
		}
		s.passes(time.Duration(min(5, 1+round/100)) * time.Second)
	}
	s.work()
}

// work does all that can be done without time.
func (s *sim) work() {
	for range 10000 {
		waits := s.rest()
		for _, w := range waits {
			s.let(w)
		}
		moved := len(waits) > 0
		for len(s.mail) > 0 {
			s.post(0)
			moved = true
		}
		for _, h := range s.hosts {
			h.pull()
			moved = h.step() || moved
			s.rest()
		}
		for _, b := range s.bridges {
			for _, of := range s.targets {
				moved = b.pull(of.consumer, of) || moved
			}
			moved = b.pull(s.dues, nil) || moved
		}
		if !moved {
			return
		}
	}
	s.breaks("it goes on and on")
}

// isDone reports that nothing is left to do but to wait for wakes.
func (s *sim) isDone() bool {
	info := s.lane.Info()
	if info.Pending > 0 || info.AckPending > 0 {
		return false
	}
	for _, one := range s.judge.sessions {
		if one.state.Run != nil {
			return false
		}
		for _, e := range one.state.Open() {
			if e.Class != session.ClassWake || e.Deadline < time.Now().UnixMilli() {
				return false
			}
		}
	}
	return true
}
