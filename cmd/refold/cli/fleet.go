package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/presence"
	"github.com/refold/refold/subjects"
)

const (
	discoverEach = 100 * time.Millisecond          // between two requests to the bridges
	heardWithin  = presence.HeartbeatEvery * 6 / 5 // every running bridge sends a heartbeat meanwhile, unless it is very busy
)

// fleet has the running bridges, in any language: those that answer as NATS
// services, and those that send heartbeats.
type fleet struct {
	answered []presence.Running
	heard    []presence.BridgeHeard
}

// listen finds the running bridges. It listens for one interval of heartbeats,
// and then until enough returns true, for within at most.
func listen(ctx context.Context, s streams, b *bus.Bus, within time.Duration, enough func(*fleet) bool) (*fleet, error) {
	shown := newDisplay(s)
	defer shown.show("")
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	members, err := b.TrackMembers(ctx, subjects.KindBridge)
	if err != nil {
		return nil, err
	}
	for began := time.Now(); ; {
		shown.show(fmt.Sprintf("listening to bridges: %s of %s at most", seconds(time.Since(began)), within))
		f := new(fleet)
		last := time.Since(began) >= within // bridges that started meanwhile still count
		if f.answered, err = b.Discover(ctx, subjects.KindBridge); err != nil {
			return nil, err
		}
		heard, _ := members.Bridges()
		for _, bridge := range heard {
			if time.Since(bridge.At) <= presence.GoneAfter {
				f.heard = append(f.heard, bridge)
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

// served returns how many bridges serve each target. A bridge that answers and
// sends heartbeats counts once. A service without instance metadata may be any of
// the bridges that only send heartbeats.
func (f *fleet) served() map[string]int {
	answered, unnamed, only := map[string]int{}, map[string]int{}, map[string]int{}
	named := map[string]bool{}
	for _, bridge := range f.answered {
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
	for _, bridge := range f.heard {
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

// name returns a bridge's name for people: its own, else its instance.
func (f *fleet) name(instance string) string {
	for _, bridge := range f.answered {
		if bridge.Metadata["instance"] == instance {
			return cmp.Or(bridge.Metadata["name"], instance)
		}
	}
	return instance
}

// lacks returns what bridges report that they lack for a target.
func (f *fleet) lacks(target string) (all []string) {
	for _, bridge := range f.answered {
		if lack := bridge.Metadata[lacksPrefix+target]; lack != "" {
			all = append(all, bridge.Metadata["name"]+": "+lack)
		}
	}
	for _, bridge := range f.heard {
		for _, t := range bridge.Troubles {
			if t.Target == target && t.Code == session.TroubleLacks {
				all = append(all, f.name(bridge.Instance)+": "+t.Detail)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// hears reports whether a session-actor runs. One that is frozen still has its
// subscriptions, so only its heartbeats count.
func hears(ctx context.Context, actors *presence.Members) bool {
	ctx, cancel := context.WithTimeout(ctx, presence.GoneAfter)
	defer cancel()
	for len(actors.Known()) == 0 {
		select {
		case <-actors.Heartbeats():
		case <-ctx.Done():
			return false
		}
	}
	return true
}
