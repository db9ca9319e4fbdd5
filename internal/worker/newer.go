package worker

import (
	"sync"
	"time"

	"github.com/refold/refold/actors/session"
)

// newerKept is how long a target is in trouble after the latest effect that only a newer
// bridge can read: while nobody takes the effect, it is delivered again.
const newerKept = 3 * newerDelay

// newerEffects remembers the targets for which this bridge is too old.
type newerEffects struct {
	mu      sync.Mutex
	targets map[string]newerEffect
}

// newerEffect says when effects of a target were given back that this bridge can't read.
type newerEffect struct{ first, latest time.Time }

// note notes that one was given back.
func (n *newerEffects) note(target string, now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	at := n.targets[target]
	if now.Sub(at.latest) >= newerKept {
		at.first = now
	}
	at.latest = now
	if n.targets == nil {
		n.targets = make(map[string]newerEffect)
	}
	n.targets[target] = at
}

// trouble returns the trouble of a target, nil if this bridge can read its effects.
func (n *newerEffects) trouble(target string, now time.Time) *session.Trouble {
	n.mu.Lock()
	defer n.mu.Unlock()
	at, known := n.targets[target]
	if !known || now.Sub(at.latest) >= newerKept {
		return nil
	}
	return &session.Trouble{
		Target: target, Code: session.TroubleNewer, Detail: "the bridge gives back effects of a newer release: upgrade it",
		Since: at.first.UnixMilli(), Next: at.latest.Add(newerDelay).UnixMilli(),
	}
}
