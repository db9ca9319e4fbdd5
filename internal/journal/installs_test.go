package journal_test

// Invalid records are read and parsed once, for all lookups past them.

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

// records is a log of install records that counts reads.
type records struct {
	log  []session.Event
	read int
}

func (r *records) InstallBefore(_ context.Context, seq uint64) (e session.Event, found bool, err error) {
	r.read++
	for _, have := range r.log {
		if !found || have.Seq < seq {
			e, found = have, true
		}
	}
	return e, found, nil
}

// add appends a record. Even sequences belong to other events.
func (r *records) add(payload string) session.Event {
	e := session.Event{Door: session.DoorInstall, Seq: uint64(2*len(r.log) + 1), Time: int64(len(r.log)), Payload: []byte(payload)}
	r.log = append(r.log, e)
	return e
}

func goodRecord(model string) string {
	return fmt.Sprintf(`{"v":1,"rules":1,"tools":[],"config":{"provider":"p","model":%q}}`, model)
}

func faultyRecord(n int) string { return fmt.Sprintf(`{"v":1,"rules":1,"fault":%d}`, n) }

// wantPinned looks up what a session pins, and checks the model and the number of reads.
func wantPinned(t *testing.T, in *journal.Installs, r *records, seq uint64, model string, read int) {
	t.Helper()
	before := r.read
	install, err := in.Pinned(t.Context(), seq)
	if err != nil || install.Record.Config.Model != model {
		t.Fatalf("the session at %d: got %+v %v, want the record of %q", seq, install, err, model)
	}
	if got := r.read - before; got != read {
		t.Errorf("the session at %d: %d records read, want %d", seq, got, read)
	}
}

func TestInvalidRecordsAreReadOnce(t *testing.T) {
	t.Parallel()
	const faulty = 200
	r, said := &records{}, &testbus.Log{}
	in := journal.NewInstalls(r, slog.New(slog.NewTextHandler(said, nil)), nil)
	r.add(goodRecord("a"))
	for n := range faulty {
		r.add(faultyRecord(n))
	}
	last := r.log[len(r.log)-1].Seq
	wantPinned(t, in, r, last+1, "a", faulty+1)
	for seq := last + 1; seq > 1; seq -= 2 { // one read tells that nothing is newer
		wantPinned(t, in, r, seq, "a", 1)
	}
	// A new one is read, and nothing behind it.
	r.add(faultyRecord(faulty))
	wantPinned(t, in, r, last+3, "a", 2)
	wantPinned(t, in, r, last+3, "a", 1)
	for range 2 { // the newest, and from the one that can be pinned on
		before := r.read
		bustest.OK(t, in.Load(t.Context()))
		if got := r.read - before; got != 2 {
			t.Errorf("loading the records: %d read, want 2", got)
		}
	}
	for _, e := range r.log {
		bustest.OK(t, in.See(t.Context(), e))
	}
	if install, err := in.Known(last + 3); err != nil || install.Record.Config.Model != "a" {
		t.Errorf("known: got %+v %v, want the record of a", install, err)
	}
	if got := len(said.Lines(`"install record ignored"`)); got != faulty+1 {
		t.Errorf("%d records parsed and found faulty, want each of %d once", got, faulty+1)
	}
	// One that can be pinned ends the look, and one of newer rules is no fault.
	r.add(goodRecord("b"))
	wantPinned(t, in, r, last+5, "b", 1)
	r.add(`{"v":1,"rules":2,"tools":[]}`)
	r.add(faultyRecord(0))
	for range 2 {
		var unknown *session.UnknownRulesError
		if _, err := in.Pinned(t.Context(), last+9); !errors.As(err, &unknown) {
			t.Errorf("behind a record of newer rules: got %v, want *UnknownRulesError", err)
		}
	}
	wantPinned(t, in, r, last+5, "b", 1)
}

// If all records before a session are invalid, it pins the oldest valid one. The search
// from the newest record on passes the invalid ones too.
func TestInvalidRecordsAtTheStartAreReadOnce(t *testing.T) {
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
	wantPinned(t, in, r, 51, "a", 3) // its own last one, the newest, and the last again
}

// TestRewrittenRecordReplacesTheLostOne: a log that lost its end has other
// records at the same sequences.
func TestRewrittenRecordReplacesTheLostOne(t *testing.T) {
	t.Parallel()
	r := &records{}
	in := journal.NewInstalls(r, slog.New(slog.DiscardHandler), nil)
	for _, payload := range []string{goodRecord("a"), goodRecord("b"), faultyRecord(1), faultyRecord(2)} {
		r.add(payload)
	}
	wantPinned(t, in, r, 100, "b", 3)
	r.log = r.log[:1]
	for _, payload := range []string{goodRecord("c"), faultyRecord(3), faultyRecord(2)} {
		r.add(payload)
		r.log[len(r.log)-1].Time += 1000
	}
	wantPinned(t, in, r, 100, "c", 3)
}

// TestInvalidRecordsAreRememberedUpToALimit: of more records than the
// limit, the remembered ones are still passed with one read.
func TestInvalidRecordsAreRememberedUpToALimit(t *testing.T) {
	t.Parallel()
	r := &newestFirst{first: session.Event{Door: session.DoorInstall, Seq: 1, Payload: []byte(goodRecord("a"))}}
	in := journal.NewInstalls(r, slog.New(slog.DiscardHandler), nil)
	for range 3 {
		r.read = 0
		install, err := in.Pinned(t.Context(), faultyMany)
		if err != nil || install.Record.Config.Model != "a" {
			t.Fatalf("got %+v %v", install, err)
		}
	}
	if r.read != 1 {
		t.Errorf("%d records read, want 1", r.read)
	}
	if _, err := in.Pinned(t.Context(), faultyMany/2); err != nil { // not remembered, and found
		t.Error(err)
	}
}

const faultyMany = 20_000

// newestFirst has an invalid record at each sequence after the first.
type newestFirst struct {
	first session.Event
	read  int
}

func (r *newestFirst) InstallBefore(_ context.Context, seq uint64) (session.Event, bool, error) {
	r.read++
	if seq = min(seq, faultyMany) - 1; seq <= 1 {
		return r.first, true, nil
	}
	return session.Event{Door: session.DoorInstall, Seq: seq, Payload: []byte(faultyRecord(int(seq)))}, true, nil
}
