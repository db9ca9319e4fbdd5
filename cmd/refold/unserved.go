package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/bus"
)

const (
	unservedEach = 2 * time.Second // between two looks at the sessions that are followed
	unservedMax  = 16              // sessions that are looked at; refold bridge doctor tells of all
)

// unserved tells when sessions that are followed wait for what nobody serves:
// such a run says nothing by itself.
type unserved struct {
	out  io.Writer
	view func(ctx context.Context, sid string) (session.View, error)

	mu       sync.Mutex
	sessions map[string][]string // and what was told of each
	silent   bool                // it was told that no session-actor answers
}

func newUnserved(out io.Writer, view func(context.Context, string) (session.View, error)) *unserved {
	return &unserved{out: out, view: view, sessions: make(map[string][]string)}
}

// add follows a session too, unless there are enough.
func (u *unserved) add(sid string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, known := u.sessions[sid]; !known && len(u.sessions) < unservedMax {
		u.sessions[sid] = nil
	}
}

// note follows those sessions of which notices tell that they have a run.
func (u *unserved) note(n client.Notice) {
	if n.Type == session.NoticeRunFinished {
		u.mu.Lock()
		delete(u.sessions, n.Session)
		u.mu.Unlock()
		return
	}
	u.add(n.Session)
}

// begin looks until the context ends or stop is called, which waits for it.
func (u *unserved) begin(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var looking sync.WaitGroup
	looking.Go(func() {
		tick := time.NewTicker(unservedEach)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				u.look(ctx)
			}
		}
	})
	return func() {
		cancel()
		looking.Wait()
	}
}

// look asks for the views and tells what is new.
func (u *unserved) look(ctx context.Context) {
	u.mu.Lock()
	all := slices.Sorted(maps.Keys(u.sessions))
	u.mu.Unlock()
	for _, sid := range all {
		asked, cancel := context.WithTimeout(ctx, unservedEach)
		view, err := u.view(asked, sid)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, bus.ErrNoView):
			if !u.silent {
				u.silent = true
				fmt.Fprintln(u.out, "no session-actor answers: nothing goes on until one runs; start session-actor")
			}
			return
		case err == nil:
			u.silent = false
			u.tell(sid, &view)
		}
	}
}

// tell tells what nobody serves and was not told, and what is served again.
func (u *unserved) tell(sid string, v *session.View) {
	u.mu.Lock()
	before, followed := u.sessions[sid]
	if followed {
		u.sessions[sid] = v.Unserved
	}
	u.mu.Unlock()
	if !followed {
		return
	}
	for _, target := range v.Unserved {
		if !slices.Contains(before, target) {
			fmt.Fprintf(u.out, "unserved: %s waits for %s (%s): %s\n", sid, target, strings.Join(waitingFor(v, target), " "), howToServeTarget(target))
		}
	}
	for _, target := range before {
		if !slices.Contains(v.Unserved, target) {
			fmt.Fprintf(u.out, "unserved no more: %s of %s\n", target, sid)
		}
	}
}

// waitingFor returns the open effects of a target.
func waitingFor(v *session.View, of string) (effects []string) {
	for _, e := range v.Open {
		if target(e.Class, e.Target) == of {
			effects = append(effects, e.Effect)
		}
	}
	return effects
}

// howToServeTarget is howToServe for a target as bridges name it.
func howToServeTarget(target string) string {
	class, name, _ := strings.Cut(target, "/")
	return howToServe(session.Class(class), name)
}
