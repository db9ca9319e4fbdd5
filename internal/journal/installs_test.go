package journal_test

// Records with a fault are parsed once, and what is before them is pinned.

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/journal"
)

// records is a log of install records.
type records struct{ log []session.Event }

func (r *records) InstallBefore(_ context.Context, seq uint64) (e session.Event, found bool, err error) {
	for _, have := range r.log {
		if !found || have.Seq < seq {
			e, found = have, true
		}
	}
	return e, found, nil
}

// add appends a record after a sequence of its own and one of another event's.
func (r *records) add(payload string) session.Event {
	e := session.Event{Door: session.DoorInstall, Seq: uint64(2*len(r.log) + 1), Time: int64(len(r.log)), Payload: []byte(payload)}
	r.log = append(r.log, e)
	return e
}

func goodRecord(model string) string {
	return fmt.Sprintf(`{"v":1,"rules":1,"tools":[],"config":{"provider":"p","model":%q}}`, model)
}

func faultyRecord(n int) string { return fmt.Sprintf(`{"v":1,"rules":1,"fault":%d}`, n) }

// wantPinned looks up what a session pins, and wants a model.
func wantPinned(t *testing.T, in *journal.Installs, seq uint64, model string) {
	t.Helper()
	install, err := in.Pinned(t.Context(), seq)
	if err != nil || install.Record.Config.Model != model {
		t.Fatalf("the session at %d: got %+v %v, want the record of %q", seq, install, err, model)
	}
}

func TestFaultyRecordsAreParsedOnce(t *testing.T) {
	t.Parallel()
	const faulty = 200
	r, said := &records{}, &testbus.Log{}
	in := journal.NewInstalls(r, slog.New(slog.NewTextHandler(said, nil)), nil)
	r.add(goodRecord("a"))
	for n := range faulty {
		r.add(faultyRecord(n))
	}
	last := r.log[len(r.log)-1].Seq
	for _, seq := range []uint64{last + 1, last - 1, 3, 2} {
		wantPinned(t, in, seq, "a")
	}
	bustest.OK(t, in.Load(t.Context()))
	for _, e := range r.log {
		bustest.OK(t, in.See(t.Context(), e))
	}
	if install, err := in.Known(last + 1); err != nil || install.Record.Config.Model != "a" {
		t.Errorf("known: got %+v %v, want the record of a", install, err)
	}
	if got := len(said.Lines(`"install record ignored"`)); got != faulty {
		t.Errorf("%d records parsed and found faulty, want each of %d once", got, faulty)
	}
	r.add(goodRecord("b"))
	wantPinned(t, in, last+3, "b")
	r.add(`{"v":1,"rules":2,"tools":[]}`)
	r.add(faultyRecord(0))
	var unknown *session.UnknownRulesError
	if _, err := in.Pinned(t.Context(), last+9); !errors.As(err, &unknown) {
		t.Errorf("behind a record of newer rules: got %v, want *UnknownRulesError", err)
	}
	wantPinned(t, in, last+3, "b")
}

// A session that has faulty records only before it pins the oldest that is not.
func TestFaultyRecordsAtTheStart(t *testing.T) {
	t.Parallel()
	r := &records{}
	in := journal.NewInstalls(r, slog.New(slog.DiscardHandler), nil)
	for n := range 50 {
		r.add(faultyRecord(n))
	}
	if _, err := in.Pinned(t.Context(), 101); !errors.Is(err, journal.ErrNoInstall) {
		t.Fatalf("got %v, want ErrNoInstall", err)
	}
	r.add(goodRecord("a"))
	wantPinned(t, in, 51, "a")
}

// A log that lost its end has other records at the same sequences.
func TestRewrittenRecordCounts(t *testing.T) {
	t.Parallel()
	r := &records{}
	in := journal.NewInstalls(r, slog.New(slog.DiscardHandler), nil)
	for _, payload := range []string{goodRecord("a"), goodRecord("b"), faultyRecord(1), faultyRecord(2)} {
		r.add(payload)
	}
	wantPinned(t, in, 100, "b")
	r.log = r.log[:1]
	for _, payload := range []string{goodRecord("c"), faultyRecord(3), faultyRecord(2)} {
		r.add(payload)
		r.log[len(r.log)-1].Time += 1000
	}
	wantPinned(t, in, 100, "c")
}
