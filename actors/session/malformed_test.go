package session_test

// Snapshots in which one thing is not as a fold leaves it, drawn at random: a
// number, a text, the length of a list, a pointer. Most are refused; what is
// taken must be a state that everything can be done with.

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

func TestMalformedSnapshots(t *testing.T) {
	t.Parallel()
	bases, from := stages(t)
	taken, refused := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		var r session.Record
		if err := codec.Unmarshal(bases[rapid.IntRange(0, len(bases)-1).Draw(rt, "stage")].State, &r); err != nil {
			rt.Fatal(err)
		}
		for range rapid.IntRange(1, 2).Draw(rt, "things") {
			spoil(rt, reflect.ValueOf(&r).Elem())
		}
		snap, err := sealed(&r)
		if err != nil {
			return
		}
		s, err := session.Restore(snap, from)
		if err != nil {
			refused++
			return
		}
		taken++
		useAll(rt, s)
	})
	if taken == 0 || refused == 0 {
		t.Errorf("%d were taken and %d refused, want some of both", taken, refused)
	}
}

// sealed returns a record as the snapshot that its hash says it is.
func sealed(r *session.Record) (session.Snapshot, error) {
	state, err := codec.Marshal(r)
	return session.Snapshot{
		Hash: codec.Digest(state), Install: r.Install, Leaf: r.Leaf, Rules: int(r.Rules), Seq: r.Seq, State: state, V: session.Version,
	}, err
}

// spoil changes one thing in v, or in what it holds.
func spoil(rt *rapid.T, v reflect.Value) {
	if !v.CanSet() {
		return // not part of a snapshot
	}
	switch v.Kind() {
	case reflect.Struct:
		spoil(rt, v.Field(rapid.IntRange(0, v.NumField()-1).Draw(rt, v.Type().Name())))
	case reflect.Pointer:
		switch {
		case v.IsNil():
			v.Set(reflect.New(v.Type().Elem()))
		case rapid.IntRange(0, 9).Draw(rt, "nil") == 0:
			v.SetZero()
		default:
			spoil(rt, v.Elem())
		}
	case reflect.Slice:
		spoilSlice(rt, v)
	case reflect.Array: // a hash
		v.Index(0).SetUint(v.Index(0).Uint() ^ 1)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(rapid.SampledFrom([]int64{-1, 0, 1, 2, 3, 64, 99, math.MaxInt32, math.MinInt32}).Draw(rt, "int"))
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(rapid.SampledFrom([]uint64{0, 1, 2, 3, 9, 255}).Draw(rt, "uint"))
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.String:
		v.SetString(rapid.SampledFrom([]string{"", "x", "open", "waiting", "failed", "host.exec", "stat", "a b", "loopp", "hook", "run", "profile"}).Draw(rt, "text"))
	}
}

func spoilSlice(rt *rapid.T, v reflect.Value) {
	n := v.Len()
	switch how := rapid.IntRange(0, 5).Draw(rt, "slice"); {
	case how == 0:
		v.SetZero()
	case how == 1 && n > 0:
		v.SetLen(n - 1)
	case how == 2 && n > 0:
		v.Set(reflect.Append(v, v.Index(rapid.IntRange(0, n-1).Draw(rt, "twice"))))
	case how == 3:
		v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
	case n > 0:
		spoil(rt, v.Index(rapid.IntRange(0, n-1).Draw(rt, "element")))
	}
}

// useAll shows the state, and settles whatever is open, a few times over.
func useAll(rt *rapid.T, s *session.State) {
	l := &laws{t: rt, state: s, install: s.InstallRecord(), tools: builtinTools()}
	seq, clock := s.Seq, s.Clock
	for range 6 {
		_ = s.View()
		_ = s.Snapshot().Bytes()
		fold := func(door session.Door, payload []byte) {
			seq++
			_, _ = s.Evolve(session.Event{Session: "s1", Door: door, Seq: seq, Time: clock, Payload: payload})
			if err := s.Check(); err != nil {
				rt.Fatalf("invariant: %v", err)
			}
		}
		for _, e := range s.Open() {
			fold(l.settle(e))
		}
		for _, name := range l.hostLoopCalls() {
			fold(drawCallSettlement(rt, name))
		}
		for _, c := range l.replies() {
			fold(drawReply(rt, c))
		}
		if s.Turn != nil {
			fold(l.drawBatchSettled(fmt.Sprintf("r%dt%d", s.Turn.Run, s.Turn.Number)))
		}
		fold(l.drawOverrides())
		fold(l.drawRegistrySet())
	}
}

// A snapshot with results of a later batch, or with others than the latest batch
// has, is refused. Once it was accepted, and the batch's next result was looked up
// past the end.
func TestResultsOfABatchToCome(t *testing.T) {
	t.Parallel()
	bases, from := stages(t)
	open, over := 0, 0
	for i, base := range bases {
		var r session.Record
		if err := codec.Unmarshal(base.State, &r); err != nil {
			t.Fatal(err)
		}
		if r.Turn == nil {
			continue
		}
		kept := &session.DoneBatch{Results: make([]codec.Hash, 1), Run: r.Turn.Run, Turn: r.Turn.Number + 1}
		if r.Done != nil && r.Done.Turn == r.Turn.Number && r.Done.Run == r.Turn.Run {
			over++
			kept.Turn, kept.Results = r.Turn.Number, make([]codec.Hash, len(r.Done.Results)+1)
		} else if r.Turn.Batch != nil {
			open++
			kept.Turn, kept.Results = r.Turn.Number, make([]codec.Hash, len(r.Turn.Batch.Calls))
		}
		r.Done = kept
		snap, err := sealed(&r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := session.Restore(snap, from); err == nil || !strings.Contains(err.Error(), "are kept") {
			t.Errorf("stage %d: got %v, want that the results kept are refused", i, err)
		}
	}
	if open == 0 {
		t.Errorf("%d stages with an open batch, %d with one that is over: want some", open, over)
	}
}
