package session

// An envelope is read in one of two ways, and which of them must not matter.

import (
	"testing"

	"github.com/refold/refold/codec"
)

func FuzzEnvelope(f *testing.F) {
	for _, text := range []string{
		`{"type":"RunRequested","data":{"input":{"text":"a"}}}`, `{"v":1,"id":"i","by":"b","at":7,"type":"WakeSettled","data":{"effect":"w1"}}`,
		`{"type":"X"}`, `{"type":""}`, `{}`, `{"type":7}`, `{"type":"X","data":null}`, `{"type":"X","data":[1]}`, `{"type":"X","at":-1,"v":-1}`,
		`{"type":"X","at":1.5}`, `{"type":"X","at":18446744073709551615}`, `{"type":"X","v":0,"id":"","by":"","at":0}`, `{"type":"X","extra":1}`,
	} {
		f.Add([]byte(text))
		packed, err := codec.FromJSON([]byte(text))
		if err != nil {
			f.Fatal(err)
		}
		for _, b := range [][]byte{packed, append(packed, 0xc0), packed[:len(packed)-1]} {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		got, scanned := scanEnvelope(payload)
		if !scanned {
			return // the slow way is the only one
		}
		canonical, err := codec.Canonicalize(payload)
		if err != nil {
			t.Fatalf("%x was scanned: %v", payload, err)
		}
		var want Envelope
		if err := codec.Decode(canonical, &want); err != nil {
			t.Fatalf("%x was scanned: %v", payload, err)
		}
		if got.At != want.At || got.By != want.By || string(got.Data) != string(want.Data) || got.ID != want.ID || got.Type != want.Type || got.V != want.V {
			t.Errorf("%x: scanned %+v, decoded %+v", payload, got, want)
		}
	})
}

// Envelopes of Refold's bridges are scanned, not decoded.
func TestEnvelopesAreScanned(t *testing.T) {
	t.Parallel()
	data, err := codec.Marshal(map[string]string{"effect": "w1"})
	if err != nil {
		t.Fatal(err)
	}
	for _, typ := range append(EventTypes(), "X") {
		for _, env := range []Envelope{
			{Type: typ}, {Type: typ, Data: data}, {At: -1, By: "b", Data: data, ID: "i", Type: typ, V: Version},
		} {
			payload, err := codec.Marshal(env)
			if err != nil {
				t.Fatal(err)
			}
			if _, scanned := scanEnvelope(payload); !scanned {
				t.Errorf("%+v is not scanned", env)
			}
		}
	}
}
