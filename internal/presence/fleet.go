package presence

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/subjects"
)

const (
	discoverEach = 100 * time.Millisecond // between two requests to the bridges
	heardWithin  = HeartbeatEvery * 6 / 5 // every running bridge sends a heartbeat meanwhile, unless it is very busy

	// LacksPrefix begins the names of metadata about what a bridge's target lacks.
	LacksPrefix = "lacks "
)

// Fleet has the running bridges, in any language: those that answer as NATS
// services, and those that send heartbeats.
type Fleet struct {
	Answered []Running
	Heard    []BridgeHeard
}

// Fleet finds the running bridges. It listens for one interval of heartbeats, and
// then until enough returns true, for within at most. told is called before each
// look, with how long it has taken so far.
func (p *Presence) Fleet(ctx context.Context, within time.Duration, enough func(*Fleet) bool, told func(took time.Duration)) (*Fleet, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	members, err := p.TrackMembers(ctx, subjects.KindBridge)
	if err != nil {
		return nil, err
	}
	for began := time.Now(); ; {
		told(time.Since(began))
		f := new(Fleet)
		last := time.Since(began) >= within // bridges that started meanwhile still count
		if f.Answered, err = p.Discover(ctx, subjects.KindBridge); err != nil {
			return nil, err
		}
		heard, _ := members.Bridges()
		for _, bridge := range heard {
			if time.Since(bridge.At) <= GoneAfter {
				f.Heard = append(f.Heard, bridge)
			}
		}
		took := time.Since(began)
		if last || took >= within || took >= heardWithin && enough(f) {
			return f, nil
		}
		again := time.NewTimer(min(discoverEach, within-took))
		select {
		case <-again.C:
		case <-ctx.Done():
			again.Stop()
			return nil, ctx.Err()
		}
	}
}

// Served returns how many bridges serve each target. A bridge that answers and
// sends heartbeats counts once. A service without instance metadata may be any of
// the bridges that only send heartbeats.
func (f *Fleet) Served() map[string]int {
	answered, unnamed, only := map[string]int{}, map[string]int{}, map[string]int{}
	named := map[string]bool{}
	for _, bridge := range f.Answered {
		count := answered
		if instance := bridge.Metadata["instance"]; instance == "" {
			count = unnamed
		} else {
			named[instance] = true
		}
		for _, target := range strings.Fields(bridge.Metadata["targets"]) {
			count[target]++
		}
	}
	for _, bridge := range f.Heard {
		if named[bridge.Instance] {
			continue
		}
		for _, target := range bridge.Targets {
			only[target]++
		}
	}
	served := map[string]int{}
	for _, counts := range []map[string]int{answered, unnamed, only} {
		for target := range counts {
			served[target] = answered[target] + max(unnamed[target], only[target])
		}
	}
	return served
}

// Name returns a bridge's name for people: its own, else its instance.
func (f *Fleet) Name(instance string) string {
	for _, bridge := range f.Answered {
		if bridge.Metadata["instance"] == instance {
			return cmp.Or(bridge.Metadata["name"], instance)
		}
	}
	return instance
}

// Lacks returns what bridges report that they lack for a target.
func (f *Fleet) Lacks(target string) (all []string) {
	for _, bridge := range f.Answered {
		if lack := bridge.Metadata[LacksPrefix+target]; lack != "" {
			all = append(all, bridge.Metadata["name"]+": "+lack)
		}
	}
	for _, bridge := range f.Heard {
		for _, t := range bridge.Troubles {
			if t.Target == target && t.Code == session.TroubleLacks {
				all = append(all, f.Name(bridge.Instance)+": "+t.Detail)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
