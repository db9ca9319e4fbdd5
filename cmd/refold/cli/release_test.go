package cli

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/bus/bustest"
)

func TestReleaseSaysWhatItDoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.does(0, "run", "s1", "hi", "--no-follow")
	w.waits("s1", 1)
	if _, errOut := w.does(statusFailed, "release", "s1"); !strings.Contains(errOut, "session s1: the session is not quarantined") {
		t.Errorf("got %q, want that it is not quarantined", errOut)
	}
	view, err := w.View(w.ctx, "s1")
	bustest.OK(t, err)
	at := view.Seq + 1
	bustest.OK(t, w.bus.PutQuarantine(w.ctx, "s1", fmt.Appendf(nil, `{"seq":%d,"reason":"a test"}`, at)))
	said := fmt.Sprintf(`^session s1  quarantined from %d on: a test\nAfter a release it is loaded up to the event before %d, `, at, at)
	w.prints(statusFailed, said, "release", "s1") // nobody says yes
	if _, found, err := w.bus.GetQuarantine(w.ctx, "s1"); err != nil || !found {
		t.Errorf("without a yes: quarantined %v (%v), want that it stays", found, err)
	}
	w.prints(0, said+fmt.Sprintf(`[^\n]*\n[^\n]*\nsession s1  released: it continues with %d within 15 s`, at), "release", "s1", "--yes")
	if _, err := w.Quarantined(w.ctx, "s1"); !errors.Is(err, client.ErrNotQuarantined) {
		t.Errorf("released: got %v, want that it is not quarantined", err)
	}
}

// TestReleaseOfUnknownSession: a quarantine can be ended although nothing else
// is stored of its session.
func TestReleaseOfUnknownSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bustest.OK(t, w.bus.PutQuarantine(w.ctx, "s1", []byte(`{"seq":7,"reason":"a test"}`)))
	w.prints(0, `^session s1  quarantined from 7 on: a test\nNothing else is stored of it: .*\nsession s1  released: it begins with its next event\n$`, "release", "s1", "--yes")
	if _, err := w.Quarantined(w.ctx, "s1"); !errors.Is(err, client.ErrNotQuarantined) {
		t.Errorf("released: got %v, want that it is not quarantined", err)
	}
	w.does(0, "run", "s1", "hi", "--no-follow")
	w.waits("s1", 1)
}
