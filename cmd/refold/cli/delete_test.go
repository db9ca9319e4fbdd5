package cli

import (
	"strings"
	"testing"

	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/bus/bustest"
)

// TestDeleteSessions: a dry run says what would go and deletes nothing; a held session is
// refused with advice; names are chosen by their beginning; a deleted session is said to be
// deleted already.
func TestDeleteSessions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, sid := range []string{"acme-1", "acme-2", "other"} {
		_, err := w.Run(w.ctx, sid, "the marker", client.RunOptions{})
		bustest.OK(t, err)
		_, err = w.View(w.ctx, sid)
		bustest.OK(t, err)
	}
	if out, _ := w.does(0, "delete", "--name", "acme-", "--dry-run"); !strings.Contains(out, "session acme-2  1 event, ") || !strings.Contains(out, "2 sessions  ") || strings.Contains(out, "other") {
		t.Errorf("dry run: %s", out)
	}
	if out, _ := w.does(0, "delete", "--closed-before", "90d", "--dry-run"); out != "" {
		t.Errorf("nothing is closed: %s", out)
	}
	if out, _ := w.does(0, "hold", "acme-1", "--reason", "case 4711"); !strings.Contains(out, "refold hold acme-1 --release") {
		t.Errorf("hold: %s", out)
	}
	if _, told := w.does(statusFailed, "delete", "acme-1", "--yes"); !strings.Contains(told, "refold hold acme-1 --release ends the hold") {
		t.Errorf("a held session: %s", told)
	}
	w.does(0, "hold", "acme-1", "--release")
	if out, _ := w.does(0, "delete", "--name", "acme-", "--yes", "--reason", "they asked"); !strings.Contains(out, "session acme-1  deleted: 5 events, ") || !strings.Contains(out, "stored again") {
		t.Errorf("deleted: %s", out)
	}
	if _, told := w.does(0, "delete", "acme-1", "--yes"); !strings.Contains(told, "deleted already: ") {
		t.Errorf("deleted again: %s", told)
	}
	_, err := w.Erase(w.ctx, "other", "", "") // as DELETE of the HTTP API
	bustest.OK(t, err)
	_, err = w.View(w.ctx, "other")
	bustest.OK(t, err)
	if out, _ := w.does(0, "delete", "--erased", "--yes"); !strings.Contains(out, "session other  deleted: ") || strings.Contains(out, "acme") {
		t.Errorf("deleted what was erased: %s", out)
	}
	if out, _ := w.does(0, "transcript", "acme-2"); strings.Contains(out, "marker") {
		t.Errorf("its transcript: %s", out)
	}
	if out, _ := w.does(0, "verify", "--all"); !strings.Contains(out, "identical") {
		t.Errorf("verify: %s", out)
	}
	ledger, _ := w.does(0, "delete", "--ledger")
	if ledger != "{\"session\":\"acme-1\"}\n{\"session\":\"acme-2\"}\n{\"session\":\"other\"}\n" {
		t.Errorf("the ledger: %s", ledger)
	}
	for _, args := range [][]string{{"delete"}, {"delete", "s1", "--name", "acme-"}, {"delete", "--closed-before", "soon"}} {
		w.does(statusUsage, args...)
	}
}

// TestDeleteFromLedger: after a restore the sessions of a printed ledger are deleted that the
// log has; a file of another form is refused, and nothing is deleted.
func TestDeleteFromLedger(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, sid := range []string{"s1", "s2"} {
		_, err := w.Run(w.ctx, sid, "the marker", client.RunOptions{})
		bustest.OK(t, err)
		_, err = w.View(w.ctx, sid)
		bustest.OK(t, err)
	}
	if _, told := w.does(statusFailed, "delete", "--from-ledger", file(t, `{"session":"s1"}{"name":"s2"}`), "--yes"); !strings.Contains(told, "object 2") {
		t.Errorf("a wrong file: %s", told)
	}
	out, _ := w.does(0, "delete", "--from-ledger", file(t, "{\"session\":\"s1\"}\n{\"session\":\"gone\"}\n"), "--yes")
	if !strings.Contains(out, "session s1  deleted: 2 events") || strings.Contains(out, "s2") || strings.Contains(out, "session gone") {
		t.Errorf("deleted: %s", out)
	}
}
