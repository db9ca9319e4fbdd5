package e2e_test

// Names with another meaning in a subject: more tokens, wildcards, a server's
// own prefixes.

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/actors/session"
)

// badTokens are no tokens of a subject, or not one of Refold's.
var badTokens = []string{"*", ">", "a.b", "a.>", "a:b", "é", "$JS", strings.Repeat("a", 65)}

// TestAttackNamesInSubjects: sessions, providers and executors whose names
// would address others, or all, are refused, and no effect has such a name.
func TestAttackNamesInSubjects(t *testing.T) {
	t.Parallel()
	s := startSystem(t, nil)
	s.models("rules:\n  - say: hi\n", "openai")
	heard := listen(t, s.nc, "refold.out.s1")
	others := make(chan *nats.Msg, 1024)
	if _, err := s.nc.ChanSubscribe("refold.out.>", others); err != nil {
		t.Fatal(err)
	}
	s.at("s1", s.say(session.DoorCtl, "s1", session.TypeFactsSet, object{"facts": object{"a": "b"}})) // the log is there
	config := object{"provider": "openai", "model": "m"}
	hello := object{"input": object{"text": "hi"}, "config": config}
	for _, bad := range badTokens {
		for _, door := range []string{"in", "ctl", "tool"} {
			if err := s.nc.Publish("refold."+door+"."+bad, envelope(t, session.TypeRunRequested, hello)); err != nil {
				t.Fatal(err)
			}
		}
	}
	var want []string
	for _, bad := range append([]string{"a b", "a\r\nPUB x 1"}, badTokens...) {
		s.run(session.DoorIn, "s1", "hi", object{"provider": bad, "model": "m"})
		tool := evil()
		tool["executor"] = object{"kind": "effect", "target": bad}
		s.say(session.DoorCtl, "s1", session.TypeToolRegistrySet, object{"tools": list{tool}})
		want = append(want, "RunRequested invalid_data", "ToolRegistrySet invalid_registry")
	}
	s.run(session.DoorIn, "s1", "hi", config)
	s.wantEnd("s1", 1, session.Completed, "")
	s.wantRejections(heard, want...)
	for range len(others) {
		if m := <-others; m.Subject != "refold.out.s1" {
			t.Errorf("a notice on %s: %s", m.Subject, m.Data)
		}
	}
	fx, err := s.js.Stream(t.Context(), "REFOLD_FX")
	if err != nil {
		t.Fatal(err)
	}
	info, err := fx.Info(t.Context(), jetstream.WithSubjectFilter(">"))
	if err != nil {
		t.Fatal(err)
	}
	for subject := range info.State.Subjects {
		if !slices.Contains(strings.Split(subject, "."), "s1") || strings.Count(subject, ".") != 5 && !strings.HasPrefix(subject, "refold.fx.claim.llm.openai.s1.") {
			t.Errorf("REFOLD_FX has %s", subject)
		}
	}
	until(t, time.Minute, "lines about the names", func() bool { return strings.Contains(s.actor.out.String(), "event_skipped") })
	verifyAll(t, s.url)
}
