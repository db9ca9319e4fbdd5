package journal_test

import (
	"reflect"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/journal"
)

// storedOutputsContract: every server returns the stored outputs of a session as the
// leader has them: its effects, and its last notice if that is from a fold.
func storedOutputsContract(t *testing.T, e testbus.Env) {
	want := func(sid string, said journal.LastSaid, effects ...session.Effect) {
		t.Helper()
		for i, b := range e.All {
			w, err := b.StoredOutputs(e.Ctx, sid)
			if err != nil {
				t.Fatalf("server %d: %v", i, err)
			}
			if w.Notice != said {
				t.Errorf("server %d: the last notice of %s: got %+v, want %+v", i, sid, w.Notice, said)
			}
			got := map[string]string{}
			for _, one := range w.Effects {
				got[one.Name.Effect] = one.Name.Session + " " + string(one.Name.Class) + " " + string(one.Payload)
			}
			for _, one := range effects {
				if had, want := got[one.Name], sid+" "+string(one.Class)+" "+string(one.Payload); had != want {
					t.Errorf("server %d: effect %s: got %q, want %q", i, one.Name, had, want)
				}
			}
			if len(got) != len(effects) {
				t.Errorf("server %d: effects of %s: got %v, want %d", i, sid, got, len(effects))
			}
		}
	}
	say := func(sid string, n uint64, payload string) {
		t.Helper()
		bustest.OK(t, e.B.Notify(e.Ctx, sid, n, []byte(payload)))
	}
	want("outputs-none", journal.LastSaid{})

	turn := session.Effect{Name: "r1t1", Class: session.ClassLLM, Target: "openai", Payload: []byte("turn")}
	call := session.Effect{Name: "r1t1c0", Class: session.ClassTool, Target: "host", Payload: []byte("call")}
	for _, one := range []session.Effect{turn, call} {
		bustest.OK(t, ask(e.Ctx, e.B, "outputs", one))
	}
	want("outputs", journal.LastSaid{}, turn, call)
	say("outputs", 1, `{"n":1,"seq":7,"at":100,"type":"RunStarted"}`)
	say("outputs", 2, `{"n":2,"seq":9,"at":200,"type":"RunEnded"}`)
	want("outputs", journal.LastSaid{N: 2, Seq: 9, At: 200}, turn, call)
	if _, _, err := e.B.Claim(e.Ctx, claimOf("outputs", "r1t1", 1), []byte(`{"by":"i"}`)); err != nil {
		t.Fatal(err)
	}
	want("outputs", journal.LastSaid{N: 2, Seq: 9, At: 200}, turn, call)
	want("outputs-2", journal.LastSaid{}) // another one, whose name begins alike

	// What is no notice of a fold says nothing, whoever wrote it.
	for _, payload := range []string{`{"type":"quarantined"}`, `{"n":`, "\x00"} {
		say("outputs", 0, payload)
		want("outputs", journal.LastSaid{}, turn, call)
	}
	say("outputs", 0, `{"type":"SessionChanged","seq":11,"at":250}`)
	want("outputs", journal.LastSaid{Seq: 11, At: 250}, turn, call)
	say("outputs", 4, `{"n":3,"seq":12,"at":300}`+"\n"+`{"n":4,"seq":12,"at":300}`)
	want("outputs", journal.LastSaid{N: 4, Seq: 12, At: 300}, turn, call)
}

// lastSummaryContract: every server returns the summary in the last notice of a session,
// and a notice without a number is stored once.
func lastSummaryContract(t *testing.T, e testbus.Env) {
	want := func(sid string, summary session.Summary) {
		t.Helper()
		for i, b := range e.All {
			got, err := b.LastSummary(e.Ctx, sid)
			if err != nil || !reflect.DeepEqual(got, summary) {
				t.Errorf("server %d: the last summary of %s: got %+v (%v), want %+v", i, sid, got, err, summary)
			}
		}
	}
	say := func(n uint64, payload string) {
		t.Helper()
		bustest.OK(t, e.B.Notify(e.Ctx, "summed", n, []byte(payload)))
	}
	want("summed", session.Summary{})
	say(2, `{"n":1}`+"\n"+`{"n":2,"summary":{"lifecycle":"running","run":1,"calls":["a"]}}`)
	want("summed", session.Summary{Lifecycle: session.Running, Run: 1, Calls: []string{"a"}})
	changed := `{"type":"SessionChanged","seq":3,"summary":{"lifecycle":"paused","run":1}}`
	say(0, changed)
	want("summed", session.Summary{Lifecycle: session.Paused, Run: 1})
	say(3, `{"n":3,"summary":{"lifecycle":"running","run":1}}`)
	say(0, changed) // from an owner that is late
	want("summed", session.Summary{Lifecycle: session.Running, Run: 1})
	want("summed-2", session.Summary{}) // another one, whose name begins alike
	say(4, `{"n":4}`)
	want("summed", session.Summary{})
}
