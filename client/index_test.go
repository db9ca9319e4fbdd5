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
	"reflect"
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
	send := map[string]any{"effect": "r1t1", "calls": []any{map[string]any{"tool_name": "send", "arguments": `{"to":"ann"}`}}}
	w.ask("waiting", "send it")
	w.say(session.DoorLLM, "waiting", session.TypeToolCallsObserved, send)
	w.ask("approved", "send it")
	calls := w.say(session.DoorLLM, "approved", session.TypeToolCallsObserved, send)
	w.took("approved")(w.Approve(w.ctx, w.waiting("approved", 1)[0], client.DecideOptions{}))
	w.ask("running", "what is here?")
	paused := w.ask("paused", "and then?")
	w.took("paused")(w.Pause(w.ctx, "paused", client.ControlOptions{}))
	w.ask("input", "ask me")
	w.say(session.DoorCtl, "input", session.TypeRunCancelRequested, map[string]any{})
	w.say(session.DoorCtl, "input", session.TypeRunRequested, map[string]any{
		"input": map[string]any{"text": "talk"}, "config": map[string]any{"provider": "p", "model": "other", "completion": "explicit"},
	})
	w.say(session.DoorLLM, "input", session.TypeGenerationSettled, map[string]any{"effect": "r2t1", "status": "ok", "text": map[string]any{"text": "which one?"}})
	w.say(session.DoorCtl, "spent", session.TypeRunRequested, map[string]any{
		"input": map[string]any{"text": "talk"}, "config": map[string]any{"provider": "p", "model": "m", "budget": map[string]any{"tokens": 500, "on_breach": "pause"}},
	})
	w.say(session.DoorLLM, "spent", session.TypeToolCallsObserved, map[string]any{
		"effect": "r1t1", "usage": map[string]any{"input_tokens": 700, "output_tokens": 33}, "calls": []any{map[string]any{"tool_name": "nosuch", "arguments": "{}"}},
	})
	w.ask("closed", "hi")
	closed := w.answer("closed", 1, "bye")
	w.say(session.DoorCtl, "closed", session.TypeSessionClosed, map[string]any{})
	w.ask("stopped", "hi")
	w.answer("stopped", 1, "fine")
	w.forge("stopped", "r2t1", []byte("another effect"))
	w.ask("stopped", "and now?")
	want := map[string]string{
		"done":     "completed, nobody, run 1, p/m: hello there",
		"failed":   "failed, nobody, run 1, p/m: overloaded",
		"waiting":  "running, approval, run 1, p/m: calls send",
		"approved": fmt.Sprintf("running, tools, run 1, p/m: (event %d)", calls),
		"running":  "running, model, run 1, p/m: what is here?",
		"paused":   fmt.Sprintf("paused, model, run 1, p/m: (event %d)", paused),
		"input":    "waiting_input, input, run 2, p/other: which one?",
		"spent":    "paused, resume, run 1, p/m, spent, 733 tokens: calls nosuch",
		"closed":   fmt.Sprintf("closed, nobody, run 1, p/m: (event %d)", closed),
		"stopped":  "quarantined, operator, run 1, p/m: fine",
	}
	var got map[string]string
	defer func() {
		for sid := range want {
			if got[sid] != want[sid] {
				t.Logf("%s: got %s, want %s", sid, got[sid], want[sid])
			}
		}
	}()
	bustest.Until(t, "every session is listed as it is", func() bool {
		got = map[string]string{}
		for _, r := range w.index(client.IndexOptions{}, 0) {
			text := fmt.Sprintf("%s, %s, run %d, %s/%s", r.State, r.WaitsFor, r.Run, r.Provider, r.Model)
			if r.Spent {
				text += ", spent"
			}
			if r.Tokens > 0 {
				text += fmt.Sprintf(", %d tokens", r.Tokens)
			}
			got[r.Session] = text + ": " + r.Words()
			if age := time.Since(time.UnixMilli(r.At)); age < -time.Minute || age > time.Hour {
				t.Errorf("%s: at %d", r.Session, r.At)
			}
		}
		return maps.Equal(got, want)
	})
	w.filters(t)
	bustest.OK(t, w.bus.Notify(w.ctx, "stopped", 0, session.NewReleased("stopped", 9, 1, w.index(client.IndexOptions{Name: "stopped"}, 1)[0].Summary).JSON()))
	if row := w.index(client.IndexOptions{}, 1)[0]; row.Session != "stopped" || row.State != "completed" {
		t.Errorf("after its release: got %s %s, want stopped, completed", row.Session, row.State)
	}
	bustest.OK(t, w.bus.Notify(w.ctx, "stopped", 0, []byte(`{"v":1,"type":"RunStarted","session":"stopped","seq":1,"at":1,"data":{}}`)))
	if row := w.index(client.IndexOptions{}, 1)[0]; row.Session != "stopped" || row.State != client.StateUnknown {
		t.Errorf("without a summary: got %s %s, want stopped, unknown", row.Session, row.State)
	}
}

// filters lists the sessions of TestIndexShowsSessionStatus with options.
func (w *world) filters(t *testing.T) {
	t.Helper()
	for _, c := range []struct {
		o    client.IndexOptions
		want string // in any order
	}{
		{client.IndexOptions{State: []string{"failed", "paused"}}, "failed paused spent"},
		{client.IndexOptions{State: []string{"closed", "quarantined"}}, "closed stopped"},
		{client.IndexOptions{WaitsFor: "approval"}, "waiting"},
		{client.IndexOptions{WaitsFor: "operator"}, "stopped"},
		{client.IndexOptions{Model: "m", Name: "d"}, "done"},
		{client.IndexOptions{Model: "p/m", State: []string{"completed"}}, "done"},
		{client.IndexOptions{Model: "other"}, "input"},
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

// A page requests a window of notices, however many sessions there are, and no view and
// no event. With All every session is found.
func TestPagesOfManySessionsHaveNoGapOrRepeat(t *testing.T) {
	t.Parallel()
	const sessions, silent = 6_000, 5_900
	w := newWorld(t)
	client.FillIndex(t, w.node.URL(), sessions, silent)
	before := w.asked()
	page := w.index(client.IndexOptions{}, 50)
	if asked := w.asked() - before; asked > 8 {
		t.Errorf("the first page of %d sessions took %d requests", sessions, asked)
	}
	if got, want := page[0], (client.IndexRow{
		Session: "s005899", State: "completed", At: page[0].At, Cursor: page[0].Cursor,
		Summary: session.Summary{Lifecycle: session.Completed, WaitsFor: "nobody", Run: 1, Provider: "p", Model: "m", Text: "done 5899"},
	}); !reflect.DeepEqual(got, want) {
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
