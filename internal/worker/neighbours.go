package worker

import (
	"slices"
	"sync"
	"time"
)

// neighbour is what an effect means for the effects beside it in its process.
type neighbour uint8

const (
	harmless neighbour = iota
	fragile            // a call that is not retry-safe: its outcome is unknown if the process dies
	suspect            // one process died that ran it: it runs beside nothing fragile
	killer             // it may be the next death that ends it: it runs alone
)

// neighbours decides which effects of a process run at the same time. An effect
// that a process died of is kept away from others, so that it harms no call that
// is not retry-safe, and so that its last death is certainly its own.
//
// Effects that have to wait form one queue: one of them waits for those that run
// and for those before it, if it can't run beside them. So neither kind keeps the
// other out for good.
type neighbours struct {
	mu      sync.Mutex
	active  [killer + 1]int
	waiting []*place
}

// place is the place of an execution among its neighbours.
type place struct {
	kind   neighbour
	runs   bool
	passes *time.Timer   // makes a suspect harmless
	given  chan struct{} // closed when it may run
}

// fits reports whether an effect of kind k may run beside others.
func (k neighbour) fits(others *[killer + 1]int) bool {
	switch k {
	case killer:
		return *others == [killer + 1]int{}
	case suspect:
		return others[fragile]+others[killer] == 0
	case fragile:
		return others[suspect]+others[killer] == 0
	}
	return others[killer] == 0
}

// enter gives up the place that p has, and enters it as kind. It returns nil if p
// may run at once. Otherwise p may run when given is closed; a caller that does not
// wait so long calls leave.
func (n *neighbours) enter(p *place, kind neighbour) (given <-chan struct{}) {
	n.leave(p)
	n.mu.Lock()
	defer n.mu.Unlock()
	p.kind = kind
	if len(n.waiting) == 0 && kind.fits(&n.active) {
		n.admit(p)
		return nil
	}
	p.given = make(chan struct{})
	n.waiting = append(n.waiting, p)
	n.grant() // it may fit, although others wait
	return p.given
}

// leave gives up the place of p, if it has one.
func (n *neighbours) leave(p *place) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if p.passes != nil {
		p.passes.Stop()
	}
	switch {
	case p.runs:
		n.active[p.kind]--
		p.runs = false
	case len(n.waiting) > 0:
		n.waiting = slices.DeleteFunc(n.waiting, func(w *place) bool { return w == p })
	}
	n.grant()
}

// grant lets those run that can run beside the others. The caller holds the lock.
func (n *neighbours) grant() {
	before := n.active
	n.waiting = slices.DeleteFunc(n.waiting, func(p *place) bool {
		fits := p.kind.fits(&before)
		before[p.kind]++
		if fits {
			n.admit(p)
			close(p.given)
		}
		return fits
	})
}

// admit records that p runs. The caller holds the lock.
func (n *neighbours) admit(p *place) {
	n.active[p.kind]++
	p.runs = true
	if p.kind == suspect {
		p.passes = time.AfterFunc(suspectFor, func() { n.pass(p) })
	}
}

// pass makes a suspect that still runs harmless.
func (n *neighbours) pass(p *place) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if p.runs && p.kind == suspect {
		n.active[suspect]--
		p.kind = harmless
		n.active[harmless]++
		n.grant()
	}
}
