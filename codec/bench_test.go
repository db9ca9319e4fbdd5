package codec

import (
	"testing"
)

// benchEnvelope and benchBody have the shape of an event, so that the benchmarks
// measure the cost of a message before its fold.
type benchEnvelope struct {
	At   int64  `msgpack:"at,omitempty"`
	By   string `msgpack:"by,omitempty"`
	Data Raw    `msgpack:"data,omitempty"`
	ID   string `msgpack:"id,omitempty"`
	Type string `msgpack:"type"`
	V    int    `msgpack:"v,omitempty"`
}

type benchBody struct {
	DurationMS  int64        `msgpack:"duration_ms,omitempty"`
	Effect      string       `msgpack:"effect"`
	HostSession *benchHost   `msgpack:"host_session,omitempty"`
	Output      *benchOutput `msgpack:"output,omitempty"`
	PlanHash    string       `msgpack:"plan_hash,omitempty"`
	Status      string       `msgpack:"status"`
}

type benchHost struct {
	ID     string `msgpack:"id,omitempty"`
	Status string `msgpack:"status"`
}

type benchOutput struct {
	Blob *Ref          `msgpack:"blob,omitempty"`
	Size int64         `msgpack:"size,omitempty"`
	Text string        `msgpack:"text,omitempty"`
	Part []benchOutput `msgpack:"part,omitempty"`
}

const benchJSON = `{"v":1,"id":"01JD4Q6TS4T7S6V8M3Z5X9K2WB","type":"ToolCallSettled","at":1732180000123,"by":"bridge-1","data":` +
	`{"effect":"r1t2c0","status":"succeeded","duration_ms":42,"plan_hash":"` +
	`9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08","host_session":{"id":"hs-1","status":"ready"},` +
	`"output":{"text":"package main\n\nimport \"fmt\"\n\nfunc main() {\n\tfmt.Println(\"hello\")\n}\n// and some more text, so that it is as long as most are\n"}}}`

func benchEvent(b *testing.B) ([]byte, benchEnvelope, benchBody) {
	data, err := Canonicalize([]byte(benchJSON))
	if err != nil {
		b.Fatal(err)
	}
	var env benchEnvelope
	if err := Unmarshal(data, &env); err != nil {
		b.Fatal(err)
	}
	var body benchBody
	if err := Unmarshal(env.Data, &body); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	return data, env, body
}

// BenchmarkEvent is the hot path: an event as it comes from the log.
func BenchmarkEvent(b *testing.B) {
	data, _, _ := benchEvent(b)
	for b.Loop() {
		canonical, err := Canonicalize(data)
		if err != nil {
			b.Fatal(err)
		}
		var env benchEnvelope
		if err := Unmarshal(canonical, &env); err != nil {
			b.Fatal(err)
		}
		var body benchBody
		if err := Unmarshal(env.Data, &body); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCanonicalize(b *testing.B) {
	data, _, _ := benchEvent(b)
	for b.Loop() {
		if _, err := Canonicalize(data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCanonicalizeJSON(b *testing.B) {
	benchEvent(b)
	text := []byte(benchJSON)
	for b.Loop() {
		if _, err := Canonicalize(text); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkUnmarshal(b *testing.B) {
	_, env, _ := benchEvent(b)
	for b.Loop() {
		var body benchBody
		if err := Unmarshal(env.Data, &body); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMarshal(b *testing.B) {
	_, _, body := benchEvent(b)
	for b.Loop() {
		if _, err := Marshal(&body); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkToJSON(b *testing.B) {
	data, _, _ := benchEvent(b)
	for b.Loop() {
		if _, err := ToJSON(data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkHashText(b *testing.B) {
	h := Sum(nil)
	for b.Loop() {
		if _, err := ParseHash(h.String()); err != nil {
			b.Fatal(err)
		}
	}
}
