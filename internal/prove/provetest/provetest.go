// Package provetest has what a server would send of histories that no server played, for
// tests of proofs.
package provetest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/session/scenario"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/prove"
)

// Told is what a server sends of a session.
type Told struct {
	Claims  prove.Claims
	Install []byte
	Pages   [][]byte
	Places  []int // where the frame of each event begins, in the first page
}

// Tell folds a history, and returns what a server would send of it in pages of so many
// events.
func Tell(t testing.TB, h scenario.History, each int) *Told {
	t.Helper()
	install, err := session.ParseInstall(h.Install)
	if err != nil {
		t.Fatal(err)
	}
	s := session.New(install, h.Events[0].Session)
	open := map[string]bool{}
	all := &Told{Install: h.Install, Claims: prove.Claims{Session: s.Session, Install: install.Hash}}
	var page []byte
	for i, e := range h.Events {
		if i > 0 && i%each == 0 {
			all.Pages, page = append(all.Pages, prove.AppendEnd(page, e.Seq)), nil
		}
		all.Places = append(all.Places, len(page))
		_, _ = s.Evolve(e)
		page = prove.Append(page, e, s.Chain)
		all.Claims.Checkpoints = append(all.Claims.Checkpoints, prove.Checkpoint{N: i + 1, Hash: s.Hash()})
		for _, o := range s.Open() {
			if !open[o.Name] && o.Class != session.ClassWake {
				all.Claims.Effects = append(all.Claims.Effects, prove.Effect{Effect: o.Name, Hash: codec.Sum(o.Payload)})
			}
			open[o.Name] = true
		}
		all.Claims.Snapshot = &prove.Snapshot{Seq: e.Seq, Hash: s.Hash()}
	}
	all.Pages = append(all.Pages, prove.AppendEnd(page, 0))
	all.Claims.Events, all.Claims.Seq, all.Claims.Chain, all.Claims.Hash = len(h.Events), s.Seq, s.Chain, s.Hash()
	return all
}

// Histories returns those of the scenarios that match a pattern, by file.
func Histories(t testing.TB, pattern string) map[string][]scenario.History {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	all := map[string][]scenario.History{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		file, err := scenario.Parse(string(text))
		if err != nil {
			t.Fatal(err)
		}
		if all[path], err = file.Play(); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	return all
}
