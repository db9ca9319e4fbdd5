package engine_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/engine"
	"github.com/refold/refold/internal/natsio"
)

// The server denies one session's effects to the user of the session-actor. The lane
// goes on without that session. Another session-actor, with other rights, finds it
// quarantined, tries again, and resumes it. If there is no other session, the evidence
// are messages of no session in all streams.
func TestDeniedSessionStopsNoLane(t *testing.T) {
	t.Parallel()
	for _, others := range []int{30, 0} {
		t.Run(fmt.Sprint(others, " others"), func(t *testing.T) {
			t.Parallel()
			deniedSessionStopsNoLane(t, others)
		})
	}
}

func deniedSessionStopsNoLane(t *testing.T, others int) {
	w := newWorld(t, func(o *server.Options) {
		o.Users = []*server.User{
			{Username: "admin", Password: "p"},
			{Username: "actor", Password: "p", Permissions: &server.Permissions{
				Publish: &server.SubjectPermission{Deny: []string{"refold.fx.llm.openai.bad.>"}},
			}},
		}
		o.NoAuthUser = "admin"
	})
	_, js := testbus.JS(t, w.node)
	denied := w.isolating(strings.Replace(w.node.URL(), "//", "//actor:p@", 1))
	w.run("bad", "hi")
	var sids []string
	for i := range others {
		sids = append(sids, fmt.Sprintf("s%d", i))
		w.run(sids[i], "hi")
	}
	for _, sid := range sids {
		w.asked(session.ClassLLM, "openai", sid, "r1t1")
	}
	w.done(w.lanes(js, append(sids, "bad")...))
	v := w.view("bad")
	if q := v.Quarantined; q == nil || !strings.Contains(q.Reason, "does not allow this user") {
		t.Errorf("the view of the denied session says %+v, want a quarantine with the cause", q)
	}
	if others == 0 {
		if errs := w.bus.Probe(w.ctx); errs != [4]error{} {
			t.Errorf("probe: got %v, want that all streams take it", errs)
		}
		for n, err := range w.bus.LastNotices(w.ctx, []string{"bad"}, 0) {
			if err != nil || n.Session != "bad" {
				t.Errorf("a notice of %q: %v", n.Session, err)
			}
		}
	} else if v := w.view("s1"); v.Quarantined != nil {
		t.Errorf("the view of another session says %+v", v.Quarantined)
	}
	denied.stop(w)

	again := w.isolating(w.node.URL())
	defer again.stop(w)
	w.asked(session.ClassLLM, "openai", "bad", "r1t1")
	bustest.Until(t, "the session is released", func() bool { return w.view("bad").Quarantined == nil })
}

// isolating starts a host, as the user of a URL, that judges sessions soon.
func (w *world) isolating(url string) *running {
	w.t.Helper()
	b, err := bus.Connect(w.ctx, natsio.Options{URL: url, Logger: slog.New(slog.DiscardHandler)})
	bustest.OK(w.t, err)
	w.t.Cleanup(b.Close)
	ctx, cancel := context.WithCancel(w.ctx)
	r := &running{bus: b, cancel: cancel, done: make(chan error, 1)}
	h := engine.New(b, slog.New(slog.DiscardHandler), engine.Options{})
	h.RecheckEvery(100 * time.Millisecond)
	h.IsolateWithin(200*time.Millisecond, 300*time.Millisecond)
	go func() { r.done <- h.Run(ctx) }()
	return r
}
