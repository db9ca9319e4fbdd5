package journal

import (
	"errors"
	"slices"
)

// needed are writes to another stream that must be stored before some writes of this one.
type needed struct {
	of     *waiter
	stored func(order string) bool // reports whether those of the order are; called when of is done
}

// errHeld means that a write was not sent, since one that it was held back for is not
// stored as it was sent.
var errHeld = errors.New("not sent: it is held back")

// releaseHeld makes the writes ready that are held back no more.
func (s *committerLoop) releaseHeld() {
	var refused []*write
	s.taken = slices.DeleteFunc(s.taken, func(w *write) bool {
		if w.needs != nil {
			if !w.needs.of.hasEnded() {
				return false
			}
			if !w.needs.stored(w.order) {
				refused = append(refused, w)
				return true
			}
		}
		s.ready = append(s.ready, w)
		return true
	})
	for _, w := range refused {
		w.err = errHeld
		s.settle(w)
	}
}
