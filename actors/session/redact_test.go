package session_test

// Events without their text: what they lose, and that sessions fold them to the same state.

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/session/scenario"
	"github.com/refold/refold/codec"
)

// redact returns the data of an event without its text, as JSON.
func redact(t *testing.T, door session.Door, payload string) (string, []session.Filler) {
	t.Helper()
	e, fillers, err := session.Redact(session.Event{Session: "s", Door: door, Seq: 7, Time: 8, Payload: []byte(payload)})
	if err != nil {
		t.Fatal(err)
	}
	env, err := session.ReadEnvelope(e.Payload)
	if err != nil {
		t.Fatal(err)
	}
	if len(env.Data) == 0 {
		return "null", nil
	}
	text, err := codec.ToJSON(env.Data)
	if err != nil {
		t.Fatal(err)
	}
	return string(text), fillers
}

func TestRedactedData(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ what, payload, want string }{
		{"an input", `{"type":"RunRequested","data":{"input":{"text":"call +49 30 1234567 now"},"submission":"s-1","roles":["admin"]}}`,
			`{"input":{"text":"[redacted]             "},"roles":["admin"],"submission":"s-1"}`},
		{"short texts, each another one", `{"type":"RunRequested","data":{"input":{"parts":[{"text":"Ann"},{"text":"Bob"},{"text":"Ann"},{"text":"a"}]}}}`,
			`{"input":{"parts":[{"text":"xx1"},{"text":"xx2"},{"text":"xx1"},{"text":"x"}]}}`},
		{"text in UTF-8: as many bytes", `{"type":"SteerRequested","data":{"input":{"text":"Grüße aus Köln"}}}`,
			`{"input":{"text":"[redacted]       "}}`},
		{"arguments: keys and their form stay", `{"type":"ToolCallsObserved","data":{"effect":"r1t1","calls":[{"tool_name":"pay","provider_call_id":"c1","arguments":"{\"iban\": \"DE02 1203\", \"cents\": -1250, \"to\":[\"DE02 1203\",\"x\\\"y\"]}"}],"opaque":[{"signature":"abc"}]}}`,
			`{"calls":[{"arguments":"{\"iban\": \"xxxxxxxx1\", \"cents\": -1111, \"to\":[\"xxxxxxxx1\",\"xxx2\"]}","provider_call_id":"c1","tool_name":"pay"}],"effect":"r1t1"}`},
		{"arguments that are no JSON", `{"type":"ToolCallsObserved","data":{"effect":"r1t1","calls":[{"tool_name":"pay","arguments":"{\"iban\": \"DE02"}]}}`,
			`{"calls":[{"arguments":"[redacted]    ","tool_name":"pay"}],"effect":"r1t1"}`},
		{"facts", `{"type":"FactsSet","data":{"facts":{"status":"divorced","model":"x","none":null}}}`,
			`{"facts":{"model":"x","none":null,"status":"xxxxxxx2"}}`},
		{"a failure", `{"type":"ToolCallSettled","data":{"effect":"r1t1c0","status":"failed","error":{"code":"no_such_person","detail":"no Ann Smith here"}}}`,
			`{"effect":"r1t1c0","error":{"code":"no_such_person","detail":"[redacted]       "},"status":"failed"}`},
		{"no event", `{"type":"`, `null`},
		{"no known event", `{"type":"Any","data":{"text":"secret"}}`, `null`},
		{"a body that can't be read", `{"type":"RunRequested","data":{"input":"secret"}}`, `null`},
	} {
		if got, _ := redact(t, session.DoorIn, c.payload); strings.TrimSuffix(got, "\n") != c.want {
			t.Errorf("%s: got\n%s, want\n%s", c.what, got, c.want)
		}
	}
}

// TestRedactedBlobs: the copy names blobs of as many bytes without text, which the caller
// stores.
func TestRedactedBlobs(t *testing.T) {
	t.Parallel()
	ref := codec.RefOf([]byte("secret")).String()
	got, fillers := redact(t, session.DoorIn, `{"type":"RunRequested","data":{"input":{"blob":"`+ref+`","media_type":"image/png","name":"ann.png","size":300000}}}`)
	if strings.Contains(got, ref) || strings.Contains(got, "ann") || len(fillers) != 1 || !strings.Contains(got, fillers[0].Ref.String()) {
		t.Fatalf("got %s and %v", got, fillers)
	}
	if content := fillers[0].Content(); len(content) != 300000 || codec.RefOf(content) != fillers[0].Ref || !bytes.HasPrefix(content, []byte("[redacted] ")) {
		t.Errorf("the blob has %d bytes, and begins with %q", len(content), content[:20])
	}
}

func TestRedactRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		payload string
		want    error
	}{
		{`{"type":"SessionClosed"}`, session.ErrNoText},
		{`{"type":"WakeSettled","data":{"effect":"w1"}}`, session.ErrNoText},
		{`{"type":"TranscriptImported","data":{"blob":"` + codec.RefOf(nil).String() + `","size":2,"messages":[{"role":"user","offset":0,"size":2}]}}`, session.ErrImportedEvent},
	} {
		e := session.Event{Session: "s", Door: session.DoorCtl, Seq: 7, Payload: []byte(c.payload)}
		if _, _, err := session.Redact(e); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.payload, err, c.want)
		}
	}
	e := session.Event{Session: "s", Seq: 7, Payload: []byte(`{"type":"RunRequested","data":{"input":{"text":"hi"}}}`)}
	once, _, err := session.Redact(e)
	if err != nil || session.LeafOf(once) != session.LeafOf(e) {
		t.Errorf("the leaf is %s (%v), want %s", session.LeafOf(once), err, session.LeafOf(e))
	}
	if _, _, err := session.Redact(once); !errors.Is(err, session.ErrRedacted) {
		t.Errorf("redacted twice: %v", err)
	}
}

// TestRedactedHistoriesFold: in the history of each scenario, every third event is redacted alone.
// The chain stays, and where the copy leaves another state than the event, it is by a text
// that the state has, or by which it decides. Most leave the same one in the end.
func TestRedactedHistoriesFold(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/scenarios/*.txt")
	if err != nil || len(files) < 100 {
		t.Fatalf("%d scenarios, %v", len(files), err)
	}
	var same, other int
	for _, h := range histories(t, files) {
		want := foldAll(t, h, -1)
		for i := 0; i < len(h.Events); i += 3 {
			switch got := foldAll(t, h, i); {
			case got == nil:
			case got.Chain != want.Chain || got.Count != want.Count || got.Check() != nil:
				t.Errorf("without the text of %s the chain is %s, want %s (%v)", h.Events[i].Payload, got.Chain, want.Chain, got.Check())
			case bytes.Equal(got.Bytes(), want.Bytes()):
				same++
			default:
				other++
			}
		}
	}
	if same < other {
		t.Errorf("%d events leave the same state without their text, and %d another one", same, other)
	}
	t.Logf("%d events leave the same state, %d another one", same, other)
}

func histories(t *testing.T, files []string) (all []scenario.History) {
	t.Helper()
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		file, err := scenario.Parse(string(text))
		if err != nil {
			t.Fatal(err)
		}
		played, err := file.Play()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, played...)
	}
	return all
}

// foldAll folds a history without the text of one of its events; nil: it has none.
func foldAll(t *testing.T, h scenario.History, without int) *session.State {
	t.Helper()
	install, err := session.ParseInstall(h.Install)
	if err != nil {
		t.Fatal(err)
	}
	s := session.New(install, h.Events[0].Session)
	for i, e := range h.Events {
		if i == without {
			if e, _, err = session.Redact(e); err != nil {
				return nil
			}
		}
		_, _ = s.Evolve(e)
	}
	return s
}
