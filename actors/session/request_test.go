package session

// Requests that are read in one pass, envelope and body, against the same ones
// decoded step by step: for values that were drawn and for bytes that were
// malformed.

import (
	"bytes"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/refold/refold/codec"
)

func TestRequestsAreScannedAsDecoded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := drawing{t}
		body := &RunRequested{Input: Content{Text: d.text()}, Submission: d.text(), WhenBusy: d.text()}
		if rapid.IntRange(0, 4).Draw(t, "more") == 0 {
			body.Config = d.config()
		}
		typ := rapid.SampledFrom([]string{TypeRunRequested, TypeRunRequested, TypeSteerRequested, "Other"}).Draw(t, "type")
		payload, err := Envelope{At: d.number(), By: d.text(), ID: d.text(), Type: typ, V: rapid.IntRange(0, 2).Draw(t, "v")}.With(body)
		if err != nil {
			return // it holds text that is none
		}
		if rapid.Bool().Draw(t, "json") {
			if payload, err = codec.ToJSON(payload); err != nil {
				t.Fatal(err)
			}
		}
		for range rapid.IntRange(0, 2).Draw(t, "faults") {
			payload = spoil(t, payload)
		}
		for _, door := range []Door{DoorIn, DoorCtl, DoorLLM} {
			requestedAsDecoded(t, Event{Session: "s1", Door: door, Seq: 2, Time: 3, Payload: payload})
		}
	})
}

// requestedAsDecoded compares a request that is scanned, if it is, with the one
// that is decoded. It reports whether it is scanned. What was found of its bytes on
// the way says the same either way.
func requestedAsDecoded(t rapid.TB, e Event) (scanned bool) {
	var q request
	env, scanned := q.scan(&e)
	want, bad := open(e)
	if got, gotBad := openCanonical(e, q.canonical); !reflect.DeepEqual(got, want) || !reflect.DeepEqual(gotBad, bad) {
		t.Fatalf("%s %x: got %+v, %+v, want %+v, %+v", e.Door, e.Payload, got, gotBad, want, bad)
	}
	if !scanned {
		return false
	}
	if bad != nil {
		t.Fatalf("%s %x: scanned, want %v", e.Door, e.Payload, bad)
	}
	if env.ID != want.ID || env.Type != want.Type || want.Type != TypeRunRequested || !bytes.Equal(env.Data, want.Data) {
		t.Fatalf("%s %x: got %+v, want %+v", e.Door, e.Payload, env, want)
	}
	var body RunRequested
	if bad := decodeContent(want.Data, "input", &body); bad != nil {
		t.Fatalf("%s %x: scanned, want %v", e.Door, e.Payload, bad)
	}
	if bad := inputFault(&body.Input); bad != nil {
		t.Fatalf("%s %x: scanned, want %v", e.Door, e.Payload, bad)
	}
	body.Input = Content{} // is looked at and not kept
	if !reflect.DeepEqual(q.body, body) {
		t.Fatalf("%s %x: got %+v, want %+v", e.Door, e.Payload, q.body, body)
	}
	return true
}

// Usual requests are read in one pass; larger or invalid ones are not.
func TestUsualRequestsAreScanned(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		`{"type":"RunRequested","data":{"input":{"text":"a"}}}`:                                                                     true,
		`{"v":1,"id":"i","by":"b","at":7,"type":"RunRequested","data":{"submission":"s","input":{"text":"a"},"when_busy":"queue"}}`: true,
		`{"type":"RunRequested","data":{"input":{"text":""}}}`:                                                                      false,
		`{"type":"RunRequested","data":{"input":{}}}`:                                                                               false,
		`{"type":"RunRequested","data":{"input":{"text":"a"},"config":{"model":"m"}}}`:                                              false,
		`{"type":"RunRequested","data":{"input":{"parts":[{"text":"a"}]}}}`:                                                         false,
		`{"type":"RunRequested","data":{"input":{"text":"a"}},"v":2}`:                                                               false,
		`{"type":"SteerRequested","data":{"input":{"text":"a"}}}`:                                                                   false,
		`{"type":"RunRequested","data":{"input":{"text":"a"}}`:                                                                      false,
	} {
		e := Event{Session: "s1", Door: DoorIn, Seq: 2, Time: 3, Payload: []byte(text)}
		if got := requestedAsDecoded(t, e); got != want {
			t.Errorf("%s: scanned is %v, want %v", text, got, want)
		}
		packed, err := codec.FromJSON([]byte(text))
		if err != nil {
			continue // it is malformed
		}
		e.Payload = packed
		if got := requestedAsDecoded(t, e); got != want {
			t.Errorf("%s packed: scanned is %v, want %v", text, got, want)
		}
	}
}
