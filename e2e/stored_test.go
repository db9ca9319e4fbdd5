package e2e_test

// The stored outputs of a session, and whether all that its events require are
// there.

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/actors/session"
)

// subjectsOf returns the subjects of a stream that match a filter, and how many
// messages each has.
func (s *system) subjectsOf(stream, filter string) map[string]uint64 {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	of, err := s.js.Stream(ctx, stream)
	if err != nil {
		s.t.Fatal(err)
	}
	info, err := of.Info(ctx, jetstream.WithSubjectFilter(filter))
	if err != nil {
		s.t.Fatal(err)
	}
	return info.State.Subjects
}

// idle waits until a consumer of a stream has nothing to deliver, and nothing
// unacked. An event is acked when all that it asks for is stored.
func (s *system) idle(stream string, consumers ...string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, name := range consumers {
		until(s.t, time.Minute, name+" of "+stream+" has nothing left", func() bool {
			consumer, err := s.js.Consumer(ctx, stream, name)
			if err != nil {
				return false
			}
			info, err := consumer.Info(ctx)
			return err == nil && info.NumPending == 0 && info.NumAckPending == 0
		})
	}
}

// folded waits until all events are acked, so that all that they ask for is
// stored.
func (s *system) folded() {
	s.t.Helper()
	until(s.t, time.Minute, "the first record is there", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		log, err := s.js.Stream(ctx, s.names.LogStream())
		return err == nil && log.CachedInfo().State.LastSeq > 0
	})
	s.idle(s.names.LogStream(), "l0", "l1", "l2", "l3", "l4", "l5", "l6", "l7")
}

// lastShown returns what a session's latest turn was shown: the roles and
// sequences of its last n items.
func (s *system) lastShown(sid string, n int) string {
	s.t.Helper()
	all := s.generations(sid)
	if len(all) == 0 {
		s.t.Fatalf("%s asked no turn", sid)
	}
	var shown []string
	items := shownItems(s.t, all[len(all)-1])
	for _, it := range items[max(0, len(items)-n):] {
		text := string(it.Role)
		switch {
		case it.Role == session.RoleUser:
			text += fmt.Sprintf("#%d", it.Seq)
		case it.Role == session.RoleTool && it.Code != "":
			text += fmt.Sprintf(" %d %s", it.Call, it.Code)
		case it.Role == session.RoleTool:
			text += fmt.Sprintf(" %d", it.Call)
		}
		shown = append(shown, text)
	}
	return strings.Join(shown, ", ")
}

// wantShown checks the last items that the latest turn of s1 was shown.
func (s *system) wantShown(want string) {
	s.t.Helper()
	if got := s.lastShown("s1", 1+strings.Count(want, ", ")); got != want {
		s.t.Errorf("the last turn was shown … %s, want %s", got, want)
	}
}

// attempts returns the names of the turns that were asked, in order.
func (s *system) attempts(sid string) string {
	s.t.Helper()
	var names []string
	for _, a := range s.asked(session.ClassLLM, sid) {
		names = append(names, a.name.Effect)
	}
	return strings.Join(names, " ")
}

// claimed is the body of a claim.
type claimed struct {
	By        string `json:"by"`
	Withdrawn bool   `json:"withdrawn"`
}

// claimOf reads the claim of an effect.
func (s *system) claimOf(sid, effect string) (c claimed) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	subject := "refold.fx.claim.*.*." + sid + "." + effect
	stream, err := s.js.Stream(ctx, s.names.EffectsStream())
	if err != nil {
		s.t.Fatal(err)
	}
	msg, err := stream.GetLastMsgForSubject(ctx, subject)
	if err != nil {
		s.t.Fatalf("%s: %v", subject, err)
	}
	if err := json.Unmarshal(msg.Data, &c); err != nil {
		s.t.Fatalf("%s: %v", subject, err)
	}
	return c
}

// shownItems returns the items that a turn is shown.
func shownItems(t *testing.T, g session.Generation) []session.Item {
	t.Helper()
	items, err := g.Items.Items()
	if err != nil {
		t.Fatal(err)
	}
	return items
}
