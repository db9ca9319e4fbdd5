package cli

import (
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
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

// TestDeleteWithChildren: a session that has children is not deleted without them, and
// nothing is left of any.
func TestDeleteWithChildren(t *testing.T) {
	t.Parallel()
	w := newWorldOn(t, bustest.Server(t), `{"v":1,"rules":1,"config":{"provider":"p","model":"m"},"tools":[`+
		`{"tool_id":"team.ask","tool_name":"ask","args_schema":{"type":"object"},"executor":{"kind":"session"}}]}`, slog.New(slog.DiscardHandler))
	_, err := w.Run(w.ctx, "acme-1", "the marker", client.RunOptions{})
	bustest.OK(t, err)
	tree := []string{"acme-1"}
	for n := range 2 {
		w.says(session.DoorLLM, tree[n], session.TypeToolCallsObserved, `{"effect":"r1t1","calls":[{"tool_name":"ask","arguments":"{\"input\":\"the marker\"}"}]}`)
		bustest.Until(t, "a child that runs", func() bool {
			children, err := w.Children(w.ctx, "acme-1")
			bustest.OK(t, err)
			tree = append([]string{"acme-1"}, children...)
			return len(children) == n+1 && w.isRunning(tree[n+1])
		})
	}
	_, told := w.does(statusFailed, "delete", "acme-1", "--yes")
	for _, want := range []string{tree[1], tree[2], "--with-children"} {
		if !strings.Contains(told, want) {
			t.Errorf("refused: %q lacks %s", told, want)
		}
	}
	if out, _ := w.does(0, "delete", "acme-1", "--with-children", "--yes"); !strings.Contains(out, "session acme-1 with "+tree[2]+", "+tree[1]+"  deleted: ") {
		t.Errorf("deleted: %s", out)
	}
	if ledger, _ := w.does(0, "delete", "--ledger"); strings.Count(ledger, "\n") != len(tree) {
		t.Errorf("the ledger: %s", ledger)
	}
	bustest.Until(t, "nothing is left, also of what they told each other meanwhile", func() bool {
		w.does(0, "delete", "--erased", "--yes")
		return !slices.ContainsFunc(tree, func(sid string) bool {
			d, err := w.Deletable(w.ctx, sid, client.DeleteOptions{})
			bustest.OK(t, err)
			return d.All() > 0
		})
	})
}

// isRunning reports whether a session has an active run.
func (w *world) isRunning(sid string) bool {
	v, err := w.View(w.ctx, sid)
	bustest.OK(w.t, err)
	return v.Lifecycle == session.Running
}
