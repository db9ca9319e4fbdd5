package session_test

// Random histories, and the laws of the fold checked after every event. A
// history is made while it is folded: what comes next is drawn from what the
// state has open, so that runs really go on, mixed with what nobody asked for.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

func builtin(t testing.TB) *session.Install {
	t.Helper()
	install, err := session.ParseInstall(session.BuiltinInstall())
	if err != nil {
		t.Fatal(err)
	}
	return install
}

func TestLawsOnRandomHistories(t *testing.T) {
	t.Parallel()
	install := builtin(t)
	rapid.Check(t, func(rt *rapid.T) {
		l := newLaws(rt, install)
		for range rapid.IntRange(1, 60).Draw(rt, "events") {
			l.fold(l.draw())
		}
		l.replay()
	})
}

// laws folds events and watches over what the fold promises.
type laws struct {
	t       *rapid.T
	install *session.Install
	state   *session.State
	history []session.Event
	time    int64
	open    map[string][]byte // bytes of each open effect, as first seen
	gone    map[string]bool   // effects that were open and are not any more
	calls   map[uint64]int    // calls that each ToolCallsObserved held, by sequence
	notices uint64
}

func newLaws(t *rapid.T, install *session.Install) *laws {
	return &laws{
		t: t, install: install, state: session.New(install, "s1"), time: 1_000_000,
		open: map[string][]byte{}, gone: map[string]bool{}, calls: map[uint64]int{},
	}
}

func (l *laws) fold(door session.Door, payload []byte) {
	l.time += int64(rapid.SampledFrom([]int{0, 1, 1000, 400_000}).Draw(l.t, "passed"))
	e := session.Event{Session: "s1", Door: door, Seq: uint64(2 + 3*len(l.history)), Time: l.time, Payload: payload}
	l.history = append(l.history, e)
	before := l.state.Record
	beforeBytes := l.state.Bytes()
	notices, rejected := l.state.Evolve(e)
	if rejected != nil {
		l.onlyHeadChanged(before, rejected)
	} else if bytes.Equal(beforeBytes, l.state.Bytes()) {
		l.t.Fatalf("an event left the head as it was")
	}
	for _, n := range notices {
		if l.notices++; n.N != l.notices {
			l.t.Fatalf("notice %s has number %d, want %d", n.Type, n.N, l.notices)
		}
		if !json.Valid(n.JSON()) {
			l.t.Fatalf("notice %s is no JSON", n.Type)
		}
	}
	l.count(e)
	l.accountable()
	if err := l.state.Check(); err != nil {
		l.t.Fatalf("invariant: %v", err)
	}
	if n := len(l.state.Bytes()); n > session.StateBytesMax {
		l.t.Fatalf("the state has %d bytes", n)
	}
}

// onlyHeadChanged: guards stand before the first write.
func (l *laws) onlyHeadChanged(before session.Record, rejected error) {
	after := l.state.Record
	after.Seq, after.Count, after.Chain, after.Leaf = before.Seq, before.Count, before.Chain, before.Leaf
	after.Clock, after.NoticeN = before.Clock, before.NoticeN
	want, err1 := codec.Marshal(&before)
	got, err2 := codec.Marshal(&after)
	if err1 != nil || err2 != nil || !bytes.Equal(got, want) {
		l.t.Fatalf("rejected %v, and more than the head changed (%v %v)", rejected, err1, err2)
	}
}

// count remembers how many calls e made, if the transcript took it in.
func (l *laws) count(e session.Event) {
	taken := slices.ContainsFunc(l.state.Items, func(it session.Item) bool {
		return it.Seq == e.Seq && it.Role == session.RoleAssistant
	})
	if !taken {
		return
	}
	canonical, err := codec.Canonicalize(e.Payload)
	if err != nil {
		l.t.Fatal(err)
	}
	var env session.Envelope
	if err := codec.Decode(canonical, &env); err != nil {
		l.t.Fatal(err)
	}
	if env.Type == session.TypeToolCallsObserved {
		l.calls[e.Seq] = l.countCalls(env.Data)
	}
}

func (l *laws) countCalls(data codec.Raw) int {
	var b session.ToolCallsObserved
	if err := codec.Decode(data, &b); err != nil {
		l.t.Fatalf("a folded ToolCallsObserved doesn't decode: %v", err)
	}
	return len(b.Calls)
}

// accountable: an effect's bytes never change while it is open, and a name
// that was settled is never asked again. A generation that is asked carries a
// conversation that can be sent.
func (l *laws) accountable() {
	now := map[string]bool{}
	for _, e := range l.state.Open() {
		now[e.Name] = true
		if l.gone[e.Name] {
			l.t.Fatalf("%s is asked again", e.Name)
		}
		if len(e.Payload) > session.EffectBytesMax {
			l.t.Fatalf("%s has %d bytes", e.Name, len(e.Payload))
		}
		have, seen := l.open[e.Name]
		if seen && !bytes.Equal(have, e.Payload) {
			l.t.Fatalf("%s changed while it was open", e.Name)
		}
		if !seen {
			l.open[e.Name] = e.Payload
			if e.Class == session.ClassLLM {
				l.sendable(e)
			}
		}
	}
	for name := range l.open {
		if !now[name] {
			delete(l.open, name)
			l.gone[name] = true
		}
	}
}

// sendable: every call has exactly one result, in the order of the calls, right
// after the item that made it; and there is something to answer.
func (l *laws) sendable(e session.Effect) {
	var g session.Generation
	if err := codec.Unmarshal(e.Payload, &g); err != nil {
		l.t.Fatalf("%s: %v", e.Name, err)
	}
	owed, next := 0, 0
	for i, it := range g.Items {
		if it.Role != session.RoleTool && owed > 0 {
			l.t.Fatalf("%s: item %d comes while %d calls have no result", e.Name, i, owed)
		}
		switch it.Role {
		case session.RoleAssistant:
			owed, next = l.calls[it.Seq], 0
		case session.RoleTool:
			if owed == 0 || it.Call != next {
				l.t.Fatalf("%s: item %d is the result of call %d, want %d of %d", e.Name, i, it.Call, next, owed)
			}
			owed, next = owed-1, next+1
		}
	}
	last := g.Items[len(g.Items)-1].Role
	if owed > 0 || last == session.RoleAssistant {
		l.t.Fatalf("%s: ends with %s and %d calls without result", e.Name, last, owed)
	}
}

// replay: the same events leave the same bytes, whole or from a snapshot.
func (l *laws) replay() {
	again := session.Fold(l.install, "s1", slices.Values(l.history))
	if again.Hash() != l.state.Hash() {
		l.t.Fatalf("folded again: another state")
	}
	half := len(l.history) / 2
	first := session.Fold(l.install, "s1", slices.Values(l.history[:half]))
	snap, err := session.ParseSnapshot(first.Snapshot().Bytes())
	if err != nil {
		l.t.Fatal(err)
	}
	restored, err := session.Restore(snap, func(codec.Hash) (*session.Install, error) { return l.install, nil })
	if err != nil {
		l.t.Fatal(err)
	}
	for _, e := range l.history[half:] {
		_, _ = restored.Evolve(e)
	}
	if restored.Hash() != l.state.Hash() {
		l.t.Fatalf("from a snapshot: another state")
	}
}

// draw makes the next event: mostly what the state waits for.
func (l *laws) draw() (session.Door, []byte) {
	open := l.state.Open()
	switch rapid.IntRange(0, 11).Draw(l.t, "kind") {
	case 0, 1:
		return drawRun(l.t)
	case 2:
		return drawControl(l.t)
	case 3:
		return rapid.SampledFrom(allDoors()).Draw(l.t, "door"), rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(l.t, "garbage")
	case 4:
		if len(l.history) > 0 { // the same again
			e := rapid.SampledFrom(l.history).Draw(l.t, "repeat")
			return e.Door, e.Payload
		}
	case 5:
		name := fmt.Sprintf("r%dt%dc%d", rapid.IntRange(0, 3).Draw(l.t, "r"), rapid.IntRange(0, 3).Draw(l.t, "t"), rapid.IntRange(0, 3).Draw(l.t, "c"))
		return drawCallSettlement(l.t, name)
	}
	if len(open) == 0 {
		return drawRun(l.t)
	}
	return l.settle(rapid.SampledFrom(open).Draw(l.t, "open"))
}

// settle draws a settlement of an open effect.
func (l *laws) settle(e session.Effect) (session.Door, []byte) {
	switch e.Class {
	case session.ClassLLM:
		return drawTurn(l.t, e.Name)
	case session.ClassTool:
		return drawCallSettlement(l.t, e.Name)
	}
	return say(session.DoorWake, session.TypeWakeSettled, map[string]any{"effect": e.Name})
}
