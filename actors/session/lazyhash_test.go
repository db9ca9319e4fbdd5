package session_test

// Hashes of settlements are made when they are asked for: whoever asks, and
// whenever, gets what he would if they were made at once.

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
)

// outputsHistory is a run of two batches whose outputs have so many bytes.
func outputsHistory(size int) *story {
	s := &story{}
	s.add(session.DoorCtl, session.TypeHostSessionUpdated, map[string]any{"status": "ready"})
	s.add(session.DoorIn, session.TypeRunRequested, map[string]any{
		"input": map[string]any{"text": "go"}, "config": map[string]any{"provider": "p", "model": "m"},
	})
	for turn := 1; turn <= 2; turn++ {
		name := fmt.Sprintf("r1t%d", turn)
		call := map[string]any{"tool_name": "stat", "arguments": `{"path":"a"}`}
		s.add(session.DoorLLM, session.TypeToolCallsObserved, map[string]any{"effect": name, "calls": []any{call, call, call}})
		for i := range 3 {
			output := map[string]any{"text": strings.Repeat(string(rune('a'+i)), size)}
			s.add(session.DoorTool, session.TypeToolCallSettled, map[string]any{
				"effect": fmt.Sprintf("%sc%d", name, i), "status": "succeeded", "output": output,
			})
		}
	}
	s.add(session.DoorLLM, session.TypeGenerationSettled, map[string]any{"effect": "r1t3", "status": "ok", "text": map[string]any{"text": "done"}})
	return s
}

// story is a history being told.
type story struct{ events []session.Event }

func (s *story) add(door session.Door, typ string, data any) {
	d, payload := say(door, typ, data)
	seq := uint64(len(s.events) + 2)
	s.events = append(s.events, session.Event{Session: "s1", Door: d, Seq: seq, Time: int64(seq), Payload: payload})
}

func TestLazyHashesDoNotDependOnTiming(t *testing.T) {
	t.Parallel()
	install := builtin(t)
	for _, size := range []int{10, 700, 7 << 10, 40 << 10} {
		events := outputsHistory(size).events
		asked := session.New(install, "s1") // after each event
		for n, e := range events {
			if _, err := asked.Evolve(e); err != nil {
				t.Fatalf("%d bytes, event %d: %v", size, e.Seq, err)
			}
			once := session.New(install, "s1")
			for _, e := range events[:n+1] {
				_, _ = once.Evolve(e)
			}
			if got, want := once.Bytes(), asked.Bytes(); !bytes.Equal(got, want) {
				t.Fatalf("%d bytes, event %d: a state that is asked for its bytes once has others\ngot  %x\nwant %x", size, e.Seq, got, want)
			}
		}
	}
}

// TestRepeatsAreRecognisedByLazyHashes repeats each settlement at once, before the
// state's bytes are computed.
func TestRepeatsAreRecognisedByLazyHashes(t *testing.T) {
	t.Parallel()
	events := outputsHistory(700).events
	s := session.New(builtin(t), "s1")
	seq := uint64(1)
	fold := func(e session.Event) error {
		seq++
		e.Seq = seq
		_, err := s.Evolve(e)
		return err
	}
	for i, e := range events {
		if err := fold(e); err != nil {
			t.Fatalf("event %d: %v", i, err)
		}
		if e.Door != session.DoorLLM && e.Door != session.DoorTool || i == 5 || i == 9 { // the last call of a batch begins another turn
			continue
		}
		if err := fold(e); err != nil && !errors.Is(err, session.RejectStale) {
			t.Errorf("event %d once more: %v", i, err)
		}
		other := e
		other.Payload = bytes.Replace(e.Payload, []byte("stat"), []byte("stop"), 1)
		other.Payload = bytes.Replace(other.Payload, []byte("aaaa"), []byte("aaab"), 1)
		other.Payload = bytes.Replace(other.Payload, []byte("bbbb"), []byte("bbba"), 1)
		if bytes.Equal(other.Payload, e.Payload) {
			continue
		}
		if err := fold(other); !errors.Is(err, session.RejectEffectSettled) {
			t.Errorf("event %d once more, otherwise: got %v, want %v", i, err, session.RejectEffectSettled)
		}
	}
}
