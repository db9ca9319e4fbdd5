package client_test

// The index of sessions: its rows, their order, its pages, and how many requests
// and how much memory it needs.
//
// How: a host in the test folds a few sessions; thousands are filled in as
// notices and log messages that the test publishes itself.

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/bus/bustest"
)

// index reads an index to its end, or up to n rows if n is not 0.
func (w *world) index(o client.IndexOptions, n int) (rows []client.IndexRow) {
	w.t.Helper()
	for row, err := range w.Index(w.ctx, o) {
		bustest.OK(w.t, err)
		if rows = append(rows, row); len(rows) == n {
			break
		}
	}
	return rows
}

// names are the sessions of rows.
func names(rows []client.IndexRow) string {
	var sids []string
	for _, r := range rows {
		sids = append(sids, r.Session)
	}
	return strings.Join(sids, " ")
}

func TestIndexShowsSessionStatus(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, toolsRecord).host()
	w.ask("done", "hi")
	w.answer("done", 1, "hello\nthere")
	w.ask("failed", "hi")
	w.say(session.DoorLLM, "failed", session.TypeGenerationSettled, map[string]any{"effect": "r1t1", "status": "failed", "error": map[string]any{"code": "overloaded"}})
	w.ask("waiting", "send it")
	w.say(session.DoorLLM, "waiting", session.TypeToolCallsObserved, map[string]any{
		"effect": "r1t1", "calls": []any{map[string]any{"tool_name": "send", "arguments": `{"to":"ann"}`}},
	})
	w.ask("paused", "and then?")
	if _, err := w.Pause(w.ctx, "paused", client.ControlOptions{}); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"done":    "completed, nobody, run 1, p/m: hello there",
		"failed":  "failed, nobody, run 1, p/m: overloaded",
		"waiting": "running, approval, run 1, p/m: calls send",
		"paused":  "paused, model, run 1, p/m: and then?",
	}
	var got map[string]string
	bustest.Until(t, "every session is told as it is", func() bool {
		got = map[string]string{}
		for _, r := range w.index(client.IndexOptions{}, 0) {
			got[r.Session] = fmt.Sprintf("%s, %s, run %d, %s/%s: %s", r.State, r.WaitsFor, r.Run, r.Provider, r.Model, r.Words)
			if age := time.Since(time.UnixMilli(r.At)); r.Noticed || age < -time.Minute || age > time.Hour {
				t.Errorf("%s: noticed %t, at %d", r.Session, r.Noticed, r.At)
			}
		}
		return maps.Equal(got, want)
	})
	for _, c := range []struct {
		o    client.IndexOptions
		want string // in any order
	}{
		{client.IndexOptions{State: []string{"failed", "paused"}}, "failed paused"},
		{client.IndexOptions{WaitsFor: "approval"}, "waiting"},
		{client.IndexOptions{Model: "m", Name: "d"}, "done"},
		{client.IndexOptions{Model: "p/m", State: []string{"completed"}}, "done"},
		{client.IndexOptions{Model: "other"}, ""},
		{client.IndexOptions{Since: time.Now().Add(time.Hour)}, ""},
		{client.IndexOptions{Since: time.Now().Add(-time.Hour), Name: "f"}, "failed"},
	} {
		found := strings.Fields(names(w.index(c.o, 0)))
		slices.Sort(found)
		if strings.Join(found, " ") != c.want {
			t.Errorf("%+v: got %q, want %q", c.o, found, c.want)
		}
	}
	for _, cursor := range []string{"x", "n", "n0", "p64.a", "p1"} {
		for _, err := range w.Index(w.ctx, client.IndexOptions{After: cursor}) {
			if !errors.Is(err, client.ErrCursor) {
				t.Errorf("the cursor %q: %v", cursor, err)
			}
		}
	}
}

// asked returns how many messages the client of a world has published.
func (w *world) asked() int64 {
	w.t.Helper()
	all, err := w.node.Raw().Connz(&server.ConnzOptions{})
	bustest.OK(w.t, err)
	for _, one := range all.Conns {
		if one.Name == "test" {
			return one.InMsgs
		}
	}
	w.t.Fatal("the client is not connected")
	return 0
}

// A page requests a window of notices and the missing facts of its rows, however
// many sessions there are. With All every session is found.
func TestPagesOfManySessionsHaveNoGapOrRepeat(t *testing.T) {
	t.Parallel()
	const sessions, silent = 6_000, 5_900
	w := newWorld(t)
	client.FillIndex(t, w.node.URL(), sessions, silent)
	before := w.asked()
	page := w.index(client.IndexOptions{}, 50)
	if asked := w.asked() - before; asked > 40 {
		t.Errorf("the first page of %d sessions took %d requests", sessions, asked)
	}
	if got, want := page[0], (client.IndexRow{
		Session: "s005899", State: "completed", WaitsFor: "nobody", Run: 1, Provider: "p", Model: "m", Words: "done 5899", At: page[0].At, Cursor: page[0].Cursor,
	}); got != want {
		t.Errorf("the first row: got %+v, want %+v", got, want)
	}
	next := w.index(client.IndexOptions{After: page[49].Cursor}, 50)
	if page[49].Session != "s005850" || next[0].Session != "s005849" {
		t.Errorf("a page ends with %s, the next begins with %s", page[49].Session, next[0].Session)
	}
	seen, i := map[string]string{}, 0
	for row, err := range w.Index(w.ctx, client.IndexOptions{All: true, Name: "s0"}) {
		bustest.OK(t, err)
		seen[row.Session] = row.State
		i++
	}
	counts := map[string]int{}
	for _, state := range seen {
		counts[state]++
	}
	if i != sessions || counts["completed"] != silent*9/10 || counts["running"] != silent/10 || counts[client.StateSilent] != sessions-silent {
		t.Errorf("%d rows of %d sessions, want %d of each: %v", i, len(seen), sessions, counts)
	}
	last := w.index(client.IndexOptions{All: true, State: []string{client.StateSilent}}, 30)
	rest := w.index(client.IndexOptions{All: true, State: []string{client.StateSilent}, After: last[29].Cursor}, 0)
	if len(last)+len(rest) != sessions-silent || strings.Contains(names(last), rest[0].Session) {
		t.Errorf("silent sessions: %d on a page, %d behind it", len(last), len(rest))
	}
}
