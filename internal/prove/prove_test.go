package prove_test

// What: a session that is folded again is equal to what was claimed of it, and whatever a
// network alters is found, at the event that it altered.
//
// How: the histories of the fold's scenarios, folded twice; one of them with bytes of it
// altered in turn.

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session/scenario"
	"github.com/refold/refold/internal/prove"
	"github.com/refold/refold/internal/prove/provetest"
)

// report folds what was sent.
func report(t testing.TB, a *provetest.Told) *prove.Report {
	t.Helper()
	text, err := json.Marshal(a.Claims)
	if err != nil {
		t.Fatal(err)
	}
	p, err := prove.Begin(text, a.Install)
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range a.Pages {
		p.Page(page)
	}
	return p.End()
}

const scenarios = "../../actors/session/testdata/scenarios/"

func TestScenariosAreProven(t *testing.T) {
	t.Parallel()
	events := 0
	for name, all := range provetest.Histories(t, scenarios+"*.txt") {
		for _, h := range all {
			events += len(h.Events)
			for _, each := range []int{1, 3, 1000} {
				said := provetest.Tell(t, h, each)
				r := report(t, said)
				if len(r.Differences) > 0 || r.Events != len(h.Events) || r.States != r.Events || r.Hash != said.Claims.Hash.String() || r.Chain != said.Claims.Chain.String() ||
					r.SnapshotAt != said.Claims.Seq || r.EffectsSame != len(said.Claims.Effects) || r.EffectsGone != 0 {
					t.Errorf("%s in pages of %d: got %+v, want all %d events and %d effects to be equal", name, each, r, len(h.Events), len(said.Claims.Effects))
				}
			}
		}
	}
	if events < 1000 {
		t.Errorf("the scenarios have %d events: too few to say anything", events)
	}
}

// small returns a history with effects.
func small(t testing.TB) scenario.History {
	t.Helper()
	for _, all := range provetest.Histories(t, scenarios+"02_batch_groups.txt") {
		if len(all) > 0 && len(all[0].Events) > 5 {
			return all[0]
		}
	}
	t.Fatal("the scenario has no history")
	return scenario.History{}
}

// UI-05, below the browser: a byte of the log that is altered in transit is found at the
// event that it is of, whichever it is.
func TestAlteredByteNamesItsEvent(t *testing.T) {
	t.Parallel()
	h := small(t)
	said := provetest.Tell(t, h, 1000)
	whole := said.Pages[0]
	for at := 0; at < len(whole); at += 11 { // a session is parsed and folded for each
		said.Pages[0] = bytes.Clone(whole)
		said.Pages[0][at] ^= 0x10
		want := len(h.Events) + 1 // the end of the page
		for n, begins := range said.Places {
			if begins <= at {
				want = n + 1
			}
		}
		if at >= len(said.Pages[0])-9 {
			want = 0
		}
		r := report(t, said)
		switch {
		case want == 0 && len(r.Differences) == 0 && r.Events == len(h.Events): // the end names another next page
		case len(r.Differences) != 1 || want > 0 && r.Differences[0].N != want:
			t.Fatalf("byte %d of event number %d altered: got %+v", at, want, r.Differences)
		}
	}
}

func TestLogIsNotAsItWas(t *testing.T) {
	t.Parallel()
	h := small(t)
	last := len(h.Events)
	for name, c := range map[string]struct {
		alter func(*provetest.Told)
		n     int
		text  string
	}{
		"one is missing": {func(a *provetest.Told) {
			a.Pages[0] = append(a.Pages[0][:a.Places[2]:a.Places[2]], a.Pages[0][a.Places[3]:]...)
		}, 3, "is missing"},
		"one comes twice": {func(a *provetest.Told) {
			a.Pages[0] = append(bytes.Clone(a.Pages[0][:a.Places[3]]), a.Pages[0][a.Places[2]:]...)
		}, 4, "is missing"},
		"the last is missing": {func(a *provetest.Told) { a.Pages[0] = prove.AppendEnd(a.Pages[0][:a.Places[last-1]], 0) }, last, "came"},
		"the page is cut":     {func(a *provetest.Told) { a.Pages[0] = a.Pages[0][:a.Places[3]+7] }, 4, "ends within it"},
		"nothing came":        {func(a *provetest.Told) { a.Pages = nil }, 1, "0 came"},
		"more came":           {func(a *provetest.Told) { a.Claims.Events-- }, last - 1, "another one"},
		"another state":       {func(a *provetest.Told) { a.Claims.Checkpoints[1].Hash[0]++ }, 2, "another build"},
		"another chain":       {func(a *provetest.Told) { a.Claims.Chain[0]++ }, last, "chain over all"},
		"another snapshot":    {func(a *provetest.Told) { a.Claims.Snapshot.Hash[0]++ }, last, "snapshot"},
		"an effect's bytes":   {func(a *provetest.Told) { a.Claims.Effects[0].Hash[0]++ }, 2, "other bytes"},
		"an effect of nobody": {func(a *provetest.Told) { a.Claims.Effects = append(a.Claims.Effects, prove.Effect{Effect: "r9t9c9"}) }, 0, "no event asks"},
	} {
		said := provetest.Tell(t, h, 1000)
		c.alter(said)
		r := report(t, said)
		if len(r.Differences) == 0 || r.Differences[0].N != c.n || !strings.Contains(r.Differences[0].Text, c.text) {
			t.Errorf("%s: got %+v, want event number %d: %s", name, r.Differences, c.n, c.text)
		}
	}
	gone := provetest.Tell(t, h, 1000)
	gone.Claims.Effects, gone.Claims.Unknown = nil, "it may not be read"
	if r := report(t, gone); len(r.Differences) > 0 || r.EffectsGone == 0 || r.Unknown == "" {
		t.Errorf("effects that are not stored any more: got %+v, want no difference", r)
	}
}

func TestBeginRefuses(t *testing.T) {
	t.Parallel()
	said := provetest.Tell(t, small(t), 1000)
	text, err := json.Marshal(said.Claims)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ claims, install, text string }{
		"no JSON":        {"{", string(said.Install), "can't be read"},
		"unknown field":  {`{"x": 1}`, string(said.Install), "unknown field"},
		"no record":      {string(text), "no", "install record"},
		"another record": {string(text), `{"v": 1, "rules": 1, "tools": []}`, "has the hash"},
	} {
		if _, err := prove.Begin([]byte(c.claims), []byte(c.install)); err == nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: got %v, want %s", name, err, c.text)
		}
	}
}
