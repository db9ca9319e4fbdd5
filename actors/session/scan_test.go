package session

// Settlements that are read in one pass, envelope and body, against the same
// ones decoded step by step: for values that were drawn and for bytes that were
// malformed.

import (
	"bytes"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/refold/refold/codec"
)

func TestSettlementsAreScannedAsDecoded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := drawing{t}
		for _, body := range d.bodies() {
			typ := rapid.SampledFrom([]string{typeOf(body), typeOf(body), typeOf(body), TypeToolBatchSettled, "Other"}).Draw(t, "type")
			e := Envelope{At: d.number(), By: d.text(), ID: d.text(), Type: typ, V: rapid.IntRange(0, 2).Draw(t, "v")}
			payload, err := e.With(body)
			if err != nil {
				continue // it holds text that is none
			}
			for range rapid.IntRange(0, 2).Draw(t, "faults") {
				payload = spoil(t, payload)
			}
			for _, door := range []Door{DoorTool, DoorLLM, DoorWake, DoorStep, DoorIn} {
				scannedAsDecoded(t, Event{Session: "s1", Door: door, Seq: 2, Time: 3, Payload: payload})
			}
		}
	})
}

// typeOf returns the type that an event with this body has.
func typeOf(body any) string {
	switch body.(type) {
	case *ToolCallsObserved:
		return TypeToolCallsObserved
	case *GenerationSettled:
		return TypeGenerationSettled
	case *ToolCallSettled:
		return TypeToolCallSettled
	case *WakeSettled:
		return TypeWakeSettled
	}
	return TypeRunRequested
}

// scannedAsDecoded compares what is scanned, if anything is, with what is
// decoded.
func scannedAsDecoded(t rapid.TB, e Event) {
	var got, want settlement
	env, read := got.scan(&e)
	if !read {
		return
	}
	wantEnv, bad := open(e)
	if bad != nil {
		t.Fatalf("%s %x: scanned, want %v", e.Door, e.Payload, bad)
	}
	if bad := want.decode(eventTypeOf(wantEnv.Type), wantEnv); bad != nil || want.bad != nil {
		t.Fatalf("%s %x: scanned, want %v, %v", e.Door, e.Payload, bad, want.bad)
	}
	if env.ID != wantEnv.ID || env.Type != wantEnv.Type || !bytes.Equal(env.Data, wantEnv.Data) || !eventTypeOf(env.Type).settles {
		t.Fatalf("%s %x: got %+v, want %+v", e.Door, e.Payload, env, wantEnv)
	}
	if got.outputTo > 0 {
		got.call.Output = &Content{Text: string(got.data[got.outputFrom:got.outputTo])}
	}
	u := unhashed{data: got.data, status: got.call.Status, from: int32(got.outputFrom), to: int32(got.outputTo)}
	if hash := want.call.result(); env.Type == TypeToolCallSettled && u.hash() != hash {
		t.Fatalf("%s %x: another result than %s", e.Door, e.Payload, hash)
	}
	if o := want.call.Output; o != nil && o.isEmpty() {
		want.call.Output = nil // which says the same
	}
	if got.hasText {
		got.answer.Text = got.output()
		got.text, got.hasText = nil, false
	}
	if string(got.finishReason) != want.answer.FinishReason {
		t.Fatalf("%s %x: got finish_reason %q, want %q", e.Door, e.Payload, got.finishReason, want.answer.FinishReason)
	}
	got.finishReason = nil
	want.call.Effect, want.call.PlanHash = "", ""
	want.answer.Effect, want.answer.FinishReason, want.answer.Model = "", "", ""
	got.outputFrom, got.outputTo = 0, 0
	if len(want.planHash) == 0 {
		want.planHash = got.planHash[:0]
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%s %x: got %+v, want %+v", e.Door, e.Payload, got, want)
	}
}

// Usual settlements are read in one pass.
func TestUsualSettlementsAreScanned(t *testing.T) {
	t.Parallel()
	scanned := 0
	for _, body := range usual() {
		door, settles := map[string]Door{
			TypeToolCallsObserved: DoorLLM, TypeGenerationSettled: DoorLLM, TypeToolCallSettled: DoorTool, TypeWakeSettled: DoorWake,
		}[typeOf(body)]
		if !settles {
			continue
		}
		payload, err := Envelope{At: 1, By: "bridge b1", Type: typeOf(body), V: Version}.With(body)
		if err != nil {
			t.Fatal(err)
		}
		var b settlement
		e := Event{Session: "s1", Door: door, Seq: 2, Time: 3, Payload: payload}
		if _, read := b.scan(&e); !read {
			t.Errorf("%+v is not scanned", body)
		}
		scannedAsDecoded(t, e)
		scanned++
	}
	if scanned < 5 {
		t.Errorf("%d settlements were looked at", scanned)
	}
	deep := append(bytes.Repeat([]byte{0x91}, codec.DepthMax-2), 0x07)
	payload, err := Envelope{Type: TypeGenerationSettled}.With(&GenerationSettled{Effect: "r1t1", Opaque: deep, Status: "ok"})
	if err != nil {
		t.Fatal(err)
	}
	scannedAsDecoded(t, Event{Session: "s1", Door: DoorLLM, Seq: 2, Payload: payload})
}
