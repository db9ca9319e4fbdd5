package session_test

// What is refused by its shape alone, in every way that an event may be written:
// as JSON, as the canonical msgpack that is read in one pass, and as msgpack that
// is spelled otherwise. The root's tests hold all schemas against the fold.

import (
	"errors"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

// object is a body in a test.
type object = map[string]any

const someBlob = "sha256-0000000000000000000000000000000000000000000000000000000000000000"

// written returns an event as JSON, canonical, and with a header that is longer
// than it must be.
func written(t *testing.T, typ string, body object) map[string][]byte {
	t.Helper()
	packed, err := codec.Marshal(object{"type": typ, "data": body})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{"canonical": packed, "long": append([]byte{0xde, 0, packed[0] & 0x0f}, packed[1:]...)}
	if !codec.HasBinary(packed) {
		if all["json"], err = codec.ToJSON(packed); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// settledBadly folds a settlement of a generation or of its first call, in each
// way, and demands that it is a bad one.
func settledBadly(t *testing.T, typ string, body object) {
	t.Helper()
	for way, payload := range written(t, typ, body) {
		w := newTold(t)
		w.run(nil)
		door := session.DoorLLM
		if typ == session.TypeToolCallSettled {
			door = session.DoorTool
			w.must(w.tell(session.DoorLLM, session.TypeToolCallsObserved, object{"effect": "r1t1", "calls": []any{object{"tool_name": "open_session"}}}))
		}
		w.seq++
		if _, err := w.state.Evolve(session.Event{Session: "s1", Door: door, Seq: w.seq, Time: w.time, Payload: payload}); err != nil {
			t.Errorf("%s: got %v, want a bad settlement", way, err)
		}
		bad := w.state.Last != nil && w.state.Last.Code == session.CodeBadSettlement
		for _, item := range w.state.Items {
			bad = bad || item.Code == session.CodeBadSettlement
		}
		if !bad {
			t.Errorf("%s: %s %v was taken", way, typ, body)
		}
	}
}

// refusedBy folds an event of an operator in each way.
func refusedBy(t *testing.T, want session.Rejection, typ string, body object) {
	t.Helper()
	for way, payload := range written(t, typ, body) {
		w := newTold(t)
		w.seq++
		_, err := w.state.Evolve(session.Event{Session: "s1", Door: session.DoorCtl, Seq: w.seq, Time: w.time, Payload: payload})
		if !errors.Is(err, want) {
			t.Errorf("%s: %s %v: got %v, want %v", way, typ, body, err, want)
		}
	}
}

func TestDurationOutOfRangeIsBad(t *testing.T) {
	t.Parallel()
	for _, ms := range []int64{-1, session.NumberMax + 1} {
		settledBadly(t, session.TypeToolCallSettled, object{"effect": "r1t1c0", "status": "succeeded", "duration_ms": ms})
	}
}

func TestSizeOutOfRangeIsRefused(t *testing.T) {
	t.Parallel()
	for _, size := range []int64{-1, session.NumberMax + 1} {
		settledBadly(t, session.TypeToolCallsObserved, object{"effect": "r1t1", "calls": []any{
			object{"tool_name": "open_session", "arguments_blob": someBlob, "size": size},
		}})
		settledBadly(t, session.TypeToolCallSettled, object{"effect": "r1t1c0", "status": "succeeded", "output": object{"blob": someBlob, "size": size}})
		refusedBy(t, session.RejectInvalidData, session.TypeRunRequested, object{"input": object{"blob": someBlob, "size": size}})
	}
}

func TestSizeWithoutBlobIsRefused(t *testing.T) {
	t.Parallel()
	settledBadly(t, session.TypeToolCallsObserved, object{"effect": "r1t1", "calls": []any{object{"tool_name": "open_session", "size": 3}}})
	for _, field := range []object{{"text": "go", "size": 3}, {"text": "go", "media_type": "text/plain"}} {
		refusedBy(t, session.RejectInvalidData, session.TypeRunRequested, object{"input": field})
	}
}

func TestArgumentsWithTheirBlobAreBad(t *testing.T) {
	t.Parallel()
	settledBadly(t, session.TypeToolCallsObserved, object{"effect": "r1t1", "calls": []any{
		object{"tool_name": "open_session", "arguments": "{}", "arguments_blob": someBlob},
	}})
}

func TestTimeOutOfRangeIsRefused(t *testing.T) {
	t.Parallel()
	for _, at := range []int64{-1, session.NumberMax + 1} {
		for _, typ := range []string{session.TypeRunRequested, session.TypeSteerRequested} {
			payload, err := codec.Marshal(object{"type": typ, "at": at, "data": object{"input": object{"text": "go"}}})
			if err != nil {
				t.Fatal(err)
			}
			w := newTold(t)
			w.seq++
			_, err = w.state.Evolve(session.Event{Session: "s1", Door: session.DoorIn, Seq: w.seq, Time: w.time, Payload: payload})
			if !errors.Is(err, session.RejectInvalidData) {
				t.Errorf("%s at %d: got %v, want %v", typ, at, err, session.RejectInvalidData)
			}
		}
	}
}

// Printed as JSON, binary would change its meaning with its length.
func TestBinaryInFreeObjectIsRefused(t *testing.T) {
	t.Parallel()
	for _, size := range []int{3, 32} {
		free := object{"a": []any{object{"b": make([]byte, size)}}}
		for _, field := range []string{"params", "response_format"} {
			value := free
			if field == "response_format" {
				value = object{"type": session.FormatSchema, "schema": free}
			}
			refusedBy(t, session.RejectInvalidData, session.TypeSessionConfigured, object{field: value})
		}
		for _, field := range []string{"params", "context"} {
			refusedBy(t, session.RejectInvalidRule, session.TypeSessionConfigured, object{"steps": []any{object{field: free}}})
		}
		settledBadly(t, session.TypeGenerationSettled, object{"effect": "r1t1", "status": "ok", "text": object{"text": "done"}, "opaque": free})
		settledBadly(t, session.TypeToolCallsObserved, object{"effect": "r1t1", "calls": []any{object{"tool_name": "stat"}}, "opaque": free})
	}
}
