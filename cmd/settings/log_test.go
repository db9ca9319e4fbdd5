package settings_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/refold/refold/cmd/settings"
)

// Lines about a traced run get its ids, wherever the session and the effect are
// attributes.
func TestLogLinesGetTraceIDs(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	d := settings.Daemon{LogLevel: "info", LogFormat: "json"}
	log, err := d.Logger(&out, func(session, effect string) (trace, span string) {
		if session != "s1" {
			return "", ""
		}
		return "trace of " + session, "span of " + effect
	})
	if err != nil {
		t.Fatal(err)
	}
	log.Info("a", "session", "s1", "effect", "r1t1")
	log.With("session", "s1").Info("b", "effect", "r1t2")
	log.Info("c", "session", "s2")
	log.Info("d")
	log.Debug("not written", "session", "s1")
	want := []map[string]string{
		{"msg": "a", "trace_id": "trace of s1", "span_id": "span of r1t1"}, {"msg": "b", "trace_id": "trace of s1", "span_id": "span of r1t2"}, {"msg": "c"}, {"msg": "d"},
	}
	lines := bytes.Split(bytes.TrimSpace(out.Bytes()), []byte("\n"))
	if len(lines) != len(want) {
		t.Fatalf("got %d lines, want %d:\n%s", len(lines), len(want), &out)
	}
	for i, line := range lines {
		var got map[string]any
		if err := json.Unmarshal(line, &got); err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"msg", "trace_id", "span_id"} {
			if is, _ := got[key].(string); is != want[i][key] {
				t.Errorf("line %d: %s is %q, want %q", i+1, key, is, want[i][key])
			}
		}
	}
}
