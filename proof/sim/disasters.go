package sim

// What goes wrong with whole processes, servers and clocks.

import "time"

// disasters returns the disasters that may happen next.
func (s *sim) disasters() (all []option) {
	if s.faults == 0 {
		return nil
	}
	rarely := func(weight, n int, happen func()) {
		if weight > 0 && s.draw(n) == n-1 {
			all = append(all, option{n * weight, happen})
		}
	}
	rarely(s.mood.kills, 40, func() { s.toOne(s.killHost, s.killBridge) })
	rarely(s.mood.stops, 40, func() { s.toOne(s.stopHost, s.stopBridge) })
	rarely(s.mood.cuts, 40, func() {
		s.toOne(func(i int) { s.cutOrJoin(s.hosts[i].proc) }, func(i int) { s.cutOrJoin(s.bridges[i].proc) })
	})
	rarely(s.mood.cuts, 80, func() {
		s.toOne(func(i int) { s.freeze(s.hosts[i].proc) }, func(i int) { s.freeze(s.bridges[i].proc) })
	})
	rarely(s.mood.jumps, 40, s.jump)
	rarely(1, 20, s.flush)
	rarely(s.mood.restarts, 20, func() {
		s.did("consumers forget")
		s.say("the consumers have another leader")
		s.restart()
	})
	rarely(weightOf(s.mood.logLosses), 60, s.powerLoss)
	rarely(weightOf(s.mood.effectLosses), 40, s.effectsLost)
	rarely(s.mood.failures, 60, s.sessionFails)
	rarely(s.mood.failures, 120, s.streamFails)
	rarely(weightOf(s.mood.pastLosses), 20, s.pastLost)
	rarely(weightOf(s.mood.derivedLosses), 40, s.derivedLost)
	rarely(weightOf(s.mood.hours), 150, s.hour)
	return all
}

func weightOf(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// toOne calls one of host and bridge, with one of the processes.
func (s *sim) toOne(host, bridge func(i int)) {
	if i := s.draw(hostCount + bridgeCount); i < hostCount {
		host(i)
	} else {
		bridge(i - hostCount)
	}
}

func (s *sim) killHost(i int) {
	h := s.hosts[i]
	s.did("host killed")
	s.say("%s is killed", h.name)
	s.latest = s.newest()
	s.kill(h.proc)
	s.startHost(i)
}

// hour lets an hour pass, in which all stand still. Or there is more before and
// after: the bridges are cut off from the effects that sessions publish, and all
// hosts die; their successors then acknowledge late events, and die too.
func (s *sim) hour() {
	outlives := s.draw(2) == 1
	if outlives {
		s.cutBridges(true)
		s.asks()
		s.killHosts()
	}
	s.did("an hour passes")
	s.passes(61 * time.Minute)
	if outlives {
		s.did("owners outlived")
		s.asks()
		s.killHosts()
		s.cutBridges(false)
	}
}

// asks has people publish events, and hosts work on them.
func (s *sim) asks() {
	for range 3 {
		s.people()
	}
	for range 20 {
		s.work()
		s.passes(500 * time.Millisecond)
	}
}

// cutBridges cuts off all bridges, or connects them again.
func (s *sim) cutBridges(off bool) {
	for _, b := range s.bridges {
		if !b.dead && b.cut() != off {
			s.cutOrJoin(b.proc)
		}
	}
}

// killHosts kills all hosts, so that nothing of their memory is left.
func (s *sim) killHosts() {
	for i := range s.hosts {
		s.killHost(i)
	}
}

func (s *sim) stopBridge(i int) {
	b := s.bridges[i]
	if !b.draining.IsZero() {
		return
	}
	s.did("bridge stops")
	s.say("%s is told to stop", b.name)
	b.draining = time.Now()
	b.drain()
	s.rest()
}

func (s *sim) killBridge(i int) {
	b := s.bridges[i]
	s.did("bridge killed")
	s.say("%s is killed", b.name)
	s.latest = s.newest()
	b.killed = b.draining.IsZero()
	s.kill(b.proc)
	s.startBridge(i)
}

// kills reports whether an effect that a bridge starts ends each process that
// starts it. Only calls of the tool that may run twice do.
func (s *sim) kills(name string) bool {
	deadly, known := s.deadly[name]
	if !known {
		deadly = s.mood.killers && s.judge.isSafe(callOf(name)) && s.draw(3) > 0
		s.deadly[name] = deadly
	}
	return deadly
}

// remembers reports whether the server keeps all claims, and how often it has
// delivered each effect.
func (s *sim) remembers() bool {
	return s.mood.restarts == 0 && !s.mood.logLosses && !s.mood.effectLosses && !s.mood.pastLosses && !s.mood.hours && s.mood.failures == 0
}

// forgetNothing has the server remember all claims and deliveries, so that deaths count.
func (s *sim) forgetNothing() {
	m := &s.mood
	m.restarts, m.failures = 0, 0
	m.logLosses, m.effectLosses, m.pastLosses, m.hours = false, false, false, false
}

// endDoomed kills the bridges that an effect ends.
func (s *sim) endDoomed() {
	for i, b := range s.bridges {
		if b.doomed && !b.dead {
			s.did("bridge killed by an effect")
			s.killBridge(i)
		}
	}
}

// jump sets a clock: of a host, of a bridge or of the server. A jump is shorter
// than names of effects stay reserved, and than a bridge's memory.
func (s *sim) jump() {
	to := []time.Duration{0, 3 * time.Second, -3 * time.Second, 40 * time.Second, -40 * time.Second, 4 * time.Minute, -4 * time.Minute}[s.draw(7)]
	s.did("clock jumps")
	s.setClock(s.draw(hostCount+bridgeCount+1), to)
}

// setClock sets a clock ahead by to.
func (s *sim) setClock(i int, to time.Duration) {
	s.latest = s.newest()
	switch {
	case i < hostCount:
		s.hosts[i].setClock(to)
	case i < hostCount+bridgeCount:
		s.bridges[i-hostCount].setClock(to)
	default:
		s.say("the clock of the server is %v ahead", to)
		s.skew, s.clockSet = to, true
	}
}

// setClock sets the clock of a process.
func (p *proc) setClock(to time.Duration) {
	p.stage.say("the clock of %s is %v ahead", p.name, to)
	p.stage.mu.Lock()
	defer p.stage.mu.Unlock()
	p.skew = to
}

// newest returns the latest time that any process, or the server, took for the server's.
func (s *sim) newest() time.Time {
	latest := s.latest
	known := []time.Time{s.now()}
	for _, h := range s.hosts {
		if h != nil {
			known = append(known, h.now())
		}
	}
	for _, b := range s.bridges {
		if b != nil {
			known = append(known, b.now())
		}
	}
	for _, at := range known {
		if at.After(latest) {
			latest = at
		}
	}
	return latest
}

// cutOrJoin cuts a process off from the server, or connects it again.
func (s *sim) cutOrJoin(p *proc) {
	s.mu.Lock()
	joins := p.cut()
	if joins {
		s.remembersFailures(p.cutAt)
	}
	p.cutAt = time.Now()
	p.cutOff.Store(true)
	if joins {
		p.cutAt, p.joinedAt = time.Time{}, time.Now()
		p.cutOff.Store(false)
		p.joins++
	}
	s.mu.Unlock()
	s.did("cut off")
	s.say("%s is cut off: %v", p.name, !joins)
}

// freeze suspends a process while the others go on. What it was about to do happens
// right after that. Its timers run on, as they would in a process that is cut off.
func (s *sim) freeze(p *proc) {
	if p.dead || p.cut() {
		return
	}
	s.did("frozen")
	s.cutOrJoin(p)
	s.goesOn(1 + s.draw(8))
	if !p.dead && p.cut() {
		s.cutOrJoin(p)
	}
}

// powerLoss removes the latest events from the log.
func (s *sim) powerLoss() {
	last := s.log.LastSeq()
	from := last + 1 - min(last-1, uint64(1+s.draw(8)))
	s.did("log loses")
	s.say("the log loses %d to %d", from, last)
	s.log.Lose(from)
	s.judge.lose(from)
	s.flush() // a restarting server writes what it found
	s.reconnect()
}

// reconnect connects all processes to a server that was started again.
func (s *sim) reconnect() {
	s.mu.Lock()
	s.mail = nil // messages in flight to the old server are lost
	for _, h := range s.hosts {
		h.joins++
	}
	for _, b := range s.bridges {
		b.joins++
	}
	s.mu.Unlock()
	for _, l := range s.lanes {
		l.restart(s)
	}
}

// effectsLost removes the latest effects and claims, as without a sync.
func (s *sim) effectsLost() {
	last := s.fx.LastSeq()
	if last == 0 {
		return
	}
	from := last + 1 - min(last, uint64(1+s.draw(6)))
	s.did("effects lost")
	s.say("the effects lose %d to %d", from, last)
	for _, m := range s.fx.All(">", from, 0) {
		s.judge.gone[m.Subject] = true
	}
	s.fx.Lose(from)
	s.flush()
	s.reconnect()
}
