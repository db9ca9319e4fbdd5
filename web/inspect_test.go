package web_test

// What: the operations of the inspector's pages: what they show is what the log and the
// fold have, and nothing is published by looking.
//
// How: a real server with a session of two runs, in which a call waited for a person.

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold"
	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/inside"
	"github.com/refold/refold/refoldtest"
	"github.com/refold/refold/web"
)

// bought plays a session: it buys tea, and talks on.
func bought(t *testing.T) *world {
	t.Helper()
	w := serve(t, web.Options{}, refold.Tools(shop()), refold.Model(refoldtest.Model(
		refoldtest.Calls(refoldtest.To("shop_buy", order{"tea"})), refoldtest.Say("I have it."), refoldtest.Say("Bye."))))
	w.want(http.StatusAccepted, nil, "acme", "POST", "/v1/sessions/s/runs", `{"agent": "helper", "input": "Buy tea."}`)
	s := w.follow("acme", "/v1/sessions/s/updates?after=start")
	u := web.Update{}
	for u.Type != "approval_asked" {
		u, _ = w.update(s)
	}
	w.want(http.StatusOK, nil, "acme", "POST", "/v1/sessions/s/approvals/r1t1c0", `{"decision": "approve", "args_hash": "`+u.Call.ArgsHash+`"}`)
	for u.Type != "run_ended" {
		u, _ = w.update(s)
	}
	w.want(http.StatusOK, nil, "acme", "POST", "/v1/sessions/s/runs", `{"input": "Goodbye."}`, "Prefer", "wait=60")
	return w
}

// states returns the fold's hash of each event of the session acme-s, and the events.
func (w *world) states() (events []session.Event, hashes []string) {
	w.t.Helper()
	c := inside.Of(w.rt).Client()
	fold := c.Folder("acme-s")
	for e, err := range c.Read(w.ctx, "acme-s", 0, 0) {
		if err != nil {
			w.t.Fatal(err)
		}
		_, state, err := fold(w.ctx, e)
		if err != nil {
			w.t.Fatal(err)
		}
		events, hashes = append(events, e), append(hashes, state.Hash().String())
	}
	return events, hashes
}

// TestInspectEvents: the list has each event of the log once, in pages; an event has its
// bytes, the state's hash after it, and what it changed.
func TestInspectEvents(t *testing.T) {
	t.Parallel()
	w := bought(t)
	events, hashes := w.states()
	var heads []web.EventHead
	for from := uint64(1); from > 0; {
		var page web.EventList
		w.want(http.StatusOK, &page, "acme", "GET", fmt.Sprintf("/v1/sessions/s/events?from=%d&limit=3", from), "")
		if page.Total != len(events) || len(page.Events) > 3 {
			t.Fatalf("got %d of %d events, want at most 3 of %d", len(page.Events), page.Total, len(events))
		}
		heads, from = append(heads, page.Events...), page.Next
	}
	opened := map[string]int{}
	for i, h := range heads {
		if h.Seq != events[i].Seq || h.N != i+1 || h.Type == "" || h.Bytes != len(events[i].Payload) {
			t.Errorf("head %d: got %+v, want event %d", i, h, events[i].Seq)
		}
		for _, name := range h.Opened {
			opened[name]++
		}
		var shown web.EventShown
		got := w.want(http.StatusOK, &shown, "acme", "GET", fmt.Sprintf("/v1/sessions/s/events/%d", h.Seq), "")
		if shown.Hash != hashes[i] || shown.Seq != h.Seq || len(shown.Said) != len(h.Notices) || len(shown.Effects) != len(h.Opened) || len(shown.Changes) == 0 {
			t.Errorf("event %d: got %s", h.Seq, got.text)
		}
		raw := w.do("acme", "GET", fmt.Sprintf("/v1/sessions/s/events/%d/raw", h.Seq), "")
		if raw.text != string(events[i].Payload) || raw.header.Get("X-Content-Type-Options") != "nosniff" || !strings.HasPrefix(raw.header.Get("Content-Disposition"), "attachment") {
			t.Errorf("raw %d: got %d %q %v", h.Seq, raw.status, raw.text, raw.header)
		}
	}
	for _, name := range []string{"r1t1", "r1t1c0", "r1t2", "r2t1"} {
		if opened[name] != 1 {
			t.Errorf("effect %s was opened %d times: %v", name, opened[name], opened)
		}
	}
	w.refuse(http.StatusNotFound, "no_event", "acme", "GET", "/v1/sessions/s/events/1", "")
	w.refuse(http.StatusNotFound, "no_event", "acme", "GET", "/v1/sessions/s/events/1/raw", "")
	w.refuse(http.StatusBadRequest, "bad_request", "acme", "GET", "/v1/sessions/s/events/x", "")
	w.refuse(http.StatusBadRequest, "bad_request", "acme", "GET", "/v1/sessions/s/events?limit=2001", "")
	w.refuse(http.StatusNotFound, "no_session", "acme", "GET", "/v1/sessions/other/events", "")
}

// UI-04, below the browser: the state at each event is that of the fold, and looking
// publishes nothing.
func TestInspectStates(t *testing.T) {
	t.Parallel()
	w := bought(t)
	events, hashes := w.states()
	c := inside.Of(w.rt).Client()
	last, err := c.LastEvent(w.ctx)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range events {
		var shown web.StateShown
		w.want(http.StatusOK, &shown, "acme", "GET", fmt.Sprintf("/v1/sessions/s/state?at=%d", e.Seq), "")
		if shown.View.Hash != hashes[i] || shown.View.Session != "s" || shown.N != i+1 || !strings.Contains(string(shown.Record), `"session":"s"`) {
			t.Errorf("at %d: got %s of %s, want %s", e.Seq, shown.View.Hash, shown.View.Session, hashes[i])
		}
	}
	var newest web.StateShown
	w.want(http.StatusOK, &newest, "acme", "GET", "/v1/sessions/s/state", "")
	if newest.Seq != events[len(events)-1].Seq {
		t.Errorf("the newest is at %d, want %d", newest.Seq, events[len(events)-1].Seq)
	}
	var brief web.StateShown
	w.want(http.StatusOK, &brief, "acme", "GET", "/v1/sessions/s/state?record=false", "")
	if brief.Record != nil || brief.View.Hash != newest.View.Hash {
		t.Errorf("without its record the newest state is %s with the record %s, want %s without", brief.View.Hash, brief.Record, newest.View.Hash)
	}
	w.refuse(http.StatusBadRequest, "bad_request", "acme", "GET", "/v1/sessions/s/state?record=maybe", "")
	var same, differ web.ChangeList
	w.want(http.StatusOK, &same, "acme", "GET", fmt.Sprintf("/v1/sessions/s/diff?a=%d", newest.Seq), "")
	w.want(http.StatusOK, &differ, "acme", "GET", fmt.Sprintf("/v1/sessions/s/diff?a=%d&b=%d", events[0].Seq, newest.Seq), "")
	at := slices.IndexFunc(differ.Changes, func(c web.Change) bool { return c.Path == "count" })
	if len(same.Changes) != 0 || at < 0 || differ.Changes[at].Old != "1" && differ.Changes[at].Old != "" || differ.Changes[at].New != fmt.Sprint(len(events)) {
		t.Errorf("same: got %+v; from the first event: %+v", same, differ)
	}
	w.refuse(http.StatusNotFound, "no_event", "acme", "GET", "/v1/sessions/s/state?at=1", "")
	if now, err := c.LastEvent(w.ctx); err != nil || now != last {
		t.Errorf("looking published: the log ends at %d (%v), and did at %d", now, err, last)
	}
}

// TestInspectCheckpoints: states between checkpoints, after more events than one holds.
func TestInspectCheckpoints(t *testing.T) {
	t.Parallel()
	w := serve(t, web.Options{}, refold.Model(refoldtest.Model(refoldtest.Say("hello"))))
	c := inside.Of(w.rt).Client()
	w.want(http.StatusOK, nil, "acme", "POST", "/v1/sessions/s/runs", `{"agent": "helper", "input": "hi"}`, "Prefer", "wait=60")
	for i := range web.CheckpointEach + 10 {
		value := fmt.Sprint(i)
		if _, err := c.SetFacts(w.ctx, "acme-s", map[string]*string{"n": &value}, ""); err != nil {
			t.Fatal(err)
		}
	}
	events, hashes := w.states()
	for _, i := range []int{0, 1, 100, web.CheckpointEach - 1, web.CheckpointEach, web.CheckpointEach + 1, len(events) - 2, len(events) - 1} {
		var shown web.StateShown
		w.want(http.StatusOK, &shown, "acme", "GET", fmt.Sprintf("/v1/sessions/s/state?at=%d", events[i].Seq), "")
		if shown.View.Hash != hashes[i] {
			t.Errorf("event %d: got %s, want %s", i, shown.View.Hash, hashes[i])
		}
	}
}

// span is a span of a timeline, whose times are Unix milliseconds.
type span struct {
	place, parent, kind, label, outcome, code string
	run, begin, end, seq, deadline            int64
	failed                                    bool
}

// spansOf reads the columns of a timeline.
func spansOf(t *testing.T, line web.Timeline) (all []span) {
	t.Helper()
	var run, begin, seq int64
	for i, place := range line.Places {
		run, begin, seq = run+line.Runs[i], begin+line.Begins[i], seq+line.Seqs[i]
		s := span{
			place: place, kind: line.Names[line.Kinds[i]], label: line.Names[line.Labels[i]], outcome: line.Names[line.Outcomes[i]], code: line.Names[line.Codes[i]],
			run: run, begin: begin, seq: seq, failed: line.Failed[i] == 1,
		}
		if line.Parents[i] != 0 {
			s.parent = line.Places[i+line.Parents[i]]
		}
		if line.Took[i] >= 0 {
			s.end = begin + line.Took[i]
		}
		if line.Deadlines[i] != 0 {
			s.deadline = begin + line.Deadlines[i]
		}
		all = append(all, s)
	}
	return all
}

// TestInspectWork: the timeline, the tools of each turn and the effects are those of the
// session.
func TestInspectWork(t *testing.T) {
	t.Parallel()
	w := bought(t)
	var line web.Timeline
	w.want(http.StatusOK, &line, "acme", "GET", "/v1/sessions/s/timeline", "")
	var list web.EventList
	w.want(http.StatusOK, &list, "acme", "GET", "/v1/sessions/s/events", "")
	times := map[uint64]int64{}
	for _, e := range list.Events {
		times[e.Seq] = e.Time
	}
	places, spans := map[string]string{}, spansOf(t, line)
	for _, s := range spans {
		places[s.place] = s.kind
		if s.kind != "wake" && s.end == 0 || s.end != 0 && s.end < s.begin { // a wake outlives what it was set for
			t.Errorf("%s: got %d to %d, want it ended", s.place, s.begin, s.end)
		}
		if s.kind != "wake" && s.end != times[uint64(s.seq)] {
			t.Errorf("%s: got its end at %d by event %d, which is of %d", s.place, s.end, s.seq, times[uint64(s.seq)])
		}
	}
	for place, kind := range map[string]string{"w1": "wake", "r1": "run", "r1t1": "turn", "r1t1a1": "attempt", "r1t1c0": "call", "r1t1c0p": "approval", "r1t1g0": "group", "r2": "run"} {
		if places[place] != kind {
			t.Errorf("span %s: got %q, want %q: %v", place, places[place], kind, places)
		}
	}
	var later web.Timeline
	w.want(http.StatusOK, &later, "acme", "GET", fmt.Sprintf("/v1/sessions/s/timeline?from=%d", spans[len(spans)-1].end+1), "")
	if rest := spansOf(t, later); len(rest) != 1 || rest[0].place != "w1" {
		t.Errorf("after the end: got %+v", rest)
	}
	var tools web.ToolsShown
	w.want(http.StatusOK, &tools, "acme", "GET", "/v1/sessions/s/tools?turn=r1t1", "")
	at := slices.IndexFunc(tools.Tools, func(t web.ToolShown) bool { return t.ToolID == "shop.buy" })
	if len(tools.Turns) != 3 || at < 0 || !tools.Tools[at].Offered || tools.Tools[at].Approval != "always" || len(tools.Tools[at].Schema) == 0 || tools.Decided.Effect != "r1t1" {
		t.Errorf("got %+v", tools)
	}
	w.refuse(http.StatusNotFound, "no_turn", "acme", "GET", "/v1/sessions/s/tools?turn=r9t1", "")
	w.refuse(http.StatusBadRequest, "bad_request", "acme", "GET", "/v1/sessions/s/tools?turn=nine", "")
	var effects web.EffectList
	w.want(http.StatusOK, &effects, "acme", "GET", "/v1/sessions/s/effects", "")
	found := map[string]string{}
	for _, e := range effects.Effects {
		if found[e.Effect] = e.Stored; e.Class != "wake" && e.EndedSeq == 0 || e.Hash == "" {
			t.Errorf("%s: got %+v, want it ended", e.Effect, e)
		}
	}
	if effects.Unknown != "" || found["r1t1"] != "same" || found["r1t1c0"] != "same" || found["r2t1"] != "same" {
		t.Errorf("got %v (%s), want each stored as the fold asks", found, effects.Unknown)
	}
	w.want(http.StatusOK, &effects, "acme", "GET", "/v1/sessions/s/effects?limit=1", "")
	if len(effects.Effects) != 1 || !effects.More {
		t.Errorf("limit 1: got %+v", effects)
	}
}

// TestInspectOpenWork: what is open is a span without an end, with its deadline.
func TestInspectOpenWork(t *testing.T) {
	t.Parallel()
	w := serve(t, web.Options{}, refold.Tools(shop()), refold.Model(refoldtest.Model(refoldtest.Calls(refoldtest.To("shop_buy", order{"tea"})))))
	w.want(http.StatusAccepted, nil, "acme", "POST", "/v1/sessions/s/runs", `{"agent": "helper", "input": "Buy tea."}`)
	s := w.follow("acme", "/v1/sessions/s/updates?after=start")
	for u := (web.Update{}); u.Type != "approval_asked"; {
		u, _ = w.update(s)
	}
	var line web.Timeline
	w.want(http.StatusOK, &line, "acme", "GET", "/v1/sessions/s/timeline", "")
	open := map[string]int64{}
	for _, s := range spansOf(t, line) {
		if s.end == 0 {
			open[s.place] = s.deadline
		}
	}
	if _, run := open["r1"]; !run || open["r1t1c0p"] == 0 {
		t.Errorf("got %v, want the run and the approval open", open)
	}
}

// UI-09, below the browser: a preview says what comes of the event once it is published,
// and publishes nothing.
func TestPreviewIsWhatComes(t *testing.T) {
	t.Parallel()
	w := bought(t)
	c := inside.Of(w.rt).Client()
	last, err := c.LastEvent(w.ctx)
	if err != nil {
		t.Fatal(err)
	}
	preview := func(body string) (p web.Preview) {
		w.want(http.StatusOK, &p, "acme", "POST", "/v1/sessions/s/preview", body)
		return p
	}
	if p := preview(`{"type": "RunPauseRequested", "door": "in"}`); p.Rejected != string(session.RejectRunNotActive) {
		t.Errorf("a pause without a run: got %+v", p)
	}
	if p := preview(`{"type": "FactsSet", "door": "in", "data": {"set": {"plan": "gold"}}}`); p.Rejected != string(session.RejectWrongDoor) {
		t.Errorf("facts through the door in: got %+v", p)
	}
	if p := preview(`{"type": "Nonsense", "door": "ctl"}`); p.Rejected != string(session.RejectUnknownType) {
		t.Errorf("an unknown type: got %+v", p)
	}
	p := preview(`{"type": "RunRequested", "door": "in", "data": {"input": {"text": "Hello?"}}}`)
	if p.Rejected != "" || len(p.Effects) != 1 || p.Effects[0].Effect != "r3t1" || len(p.Changes) == 0 || p.After != last {
		t.Errorf("a run: got %+v, want its generation", p)
	}
	if now, err := c.LastEvent(w.ctx); err != nil || now != last {
		t.Fatalf("previews published: the log ends at %d (%v), and did at %d", now, err, last)
	}
	w.want(http.StatusAccepted, nil, "acme", "POST", "/v1/sessions/s/runs", `{"input": "Hello?"}`)
	var list web.EventList
	w.want(http.StatusOK, &list, "acme", "GET", fmt.Sprintf("/v1/sessions/s/events?from=%d", last+1), "")
	if len(list.Events) == 0 || !slices.Equal(list.Events[0].Opened, []string{"r3t1"}) {
		t.Errorf("the run: got %+v, want what the preview said", list.Events)
	}
	var said []string
	for _, n := range p.Said {
		said = append(said, n.Type)
	}
	if !slices.Equal(said, list.Events[0].Notices) {
		t.Errorf("notices: got %v, and the preview said %v", list.Events[0].Notices, said)
	}
	w.refuse(http.StatusBadRequest, "bad_request", "acme", "POST", "/v1/sessions/s/preview", `{"type": "RunRequested", "door": "llm"}`)
	w.refuse(http.StatusForbidden, "forbidden", "approver", "POST", "/v1/sessions/s/preview", `{"type": "RunRequested", "door": "in"}`)
}

// UI-03, below the browser: a stream of events that is cut after each event has each event
// of the log once, in order.
func TestInspectLiveEvents(t *testing.T) {
	t.Parallel()
	w := bought(t)
	events, _ := w.states()
	var seqs []uint64
	for after := "0"; len(seqs) < len(events); {
		s := w.follow("acme", "/v1/sessions/s/live?after=0", "Last-Event-ID", after)
		e, err := s.next()
		if err != nil {
			t.Fatal(err)
		}
		s.body.Close()
		var head web.EventHead
		if err := json.Unmarshal([]byte(e.data), &head); err != nil || e.id != fmt.Sprint(head.Seq) {
			t.Fatalf("got %+v (%v)", e, err)
		}
		after, seqs = e.id, append(seqs, head.Seq)
	}
	for i, seq := range seqs {
		if seq != events[i].Seq {
			t.Errorf("event %d: got %d, want %d", i, seq, events[i].Seq)
		}
	}
	s := w.follow("acme", fmt.Sprintf("/v1/sessions/s/live?after=%d", seqs[len(seqs)-1]))
	w.want(http.StatusAccepted, nil, "acme", "POST", "/v1/sessions/s/runs", `{"input": "Hello?"}`)
	e, err := s.next()
	if err != nil || !strings.Contains(e.data, "RunRequested") {
		t.Errorf("got %+v (%v), want the new event", e, err)
	}
	w.refuse(http.StatusBadRequest, "bad_request", "acme", "GET", "/v1/sessions/s/live?after=x", "")
}

// UI-01, below the browser: rows come as sessions change, of the scope alone, and none
// twice after a cut.
func TestInspectLiveRows(t *testing.T) {
	t.Parallel()
	w := bought(t)
	s := w.follow("acme", "/v1/live")
	w.want(http.StatusAccepted, nil, "other", "POST", "/v1/sessions/hidden/runs", `{"agent": "helper", "input": "A secret."}`)
	w.want(http.StatusAccepted, nil, "acme", "POST", "/v1/sessions/t/runs", `{"agent": "helper", "input": "hi"}`)
	last := ""
	for row := (web.SessionRow{}); row.WaitsFor != "approval"; {
		e, err := s.next()
		if err != nil || strings.Contains(e.data, "secret") || e.id == last {
			t.Fatalf("got %+v (%v), want a row of t", e, err)
		}
		if err := json.Unmarshal([]byte(e.data), &row); err != nil || row.Session != "t" {
			t.Fatalf("got %+v (%v), want a row of t", e, err)
		}
		last = e.id
	}
	s = w.follow("acme", "/v1/live?after="+last)
	w.want(http.StatusAccepted, nil, "acme", "POST", "/v1/sessions/u/runs", `{"agent": "helper", "input": "hi"}`)
	if e, err := s.next(); err != nil || !strings.Contains(e.data, `"session":"u"`) {
		t.Errorf("after %s: got %+v (%v), want u alone", last, e, err)
	}
	if e, err := w.follow("acme", "/v1/live?after=99999999").next(); err != nil || e.kind != "reset" {
		t.Errorf("after a position of another log: got %+v (%v), want a reset", e, err)
	}
}

// TestInspectSystem: fleet, system and verify are for tokens without a scope, and say what
// runs and what is stored.
func TestInspectSystem(t *testing.T) {
	t.Parallel()
	w := bought(t)
	var fleet web.FleetShown
	stored := func(l web.LaneShown) bool { return l.Pending == 0 && l.Unacknowledged == 0 && l.Oldest == 0 }
	for served := false; !served; { // bridges are heard a little after they begin; w.ctx bounds it
		w.want(http.StatusOK, &fleet, "all", "GET", "/v1/fleet", "")
		served = slices.ContainsFunc(fleet.Targets, func(t web.TargetShown) bool { return t.Target == "tool/helper" && t.Bridges == 1 }) &&
			!slices.ContainsFunc(fleet.LaneStates, func(l web.LaneShown) bool { return !stored(l) })
	}
	if len(fleet.SessionActors) != 1 || fleet.Lanes == 0 || len(fleet.Installs) == 0 || !fleet.Installs[0].Pinned || fleet.Unknown != "" {
		t.Errorf("got %+v", fleet)
	}
	actor := fleet.SessionActors[0]
	if actor.Rules != session.RulesVersion || actor.Work == nil || actor.Work.Takeovers != uint64(fleet.Lanes) || actor.Work.Events == 0 || len(actor.Work.Owned) != fleet.Lanes || actor.Work.Version == "" {
		t.Errorf("got %+v, %+v, want the owner of %d lanes", actor, actor.Work, fleet.Lanes)
	}
	for i, lane := range fleet.LaneStates {
		if len(fleet.LaneStates) != fleet.Lanes || lane.Lane != i || lane.Owner != actor.Instance || !lane.Pinned {
			t.Errorf("lane %d: got %+v, want that %s owns it", i, lane, actor.Instance)
		}
	}
	if !slices.ContainsFunc(fleet.Bridges, func(b web.BridgeShown) bool {
		return b.Rules == session.RulesVersion && b.Work != nil && b.Work.Done > 0 && b.Version != ""
	}) {
		t.Errorf("got bridges %+v, want one that has settled effects", fleet.Bridges)
	}
	var system web.SystemShown
	w.want(http.StatusOK, &system, "all", "GET", "/v1/system", "")
	if len(system.Streams) != 9 || system.Missing != 0 || system.Rules != session.RulesVersion || len(system.Quarantines) != 0 || system.Pinned != session.RulesVersion || system.NATS == "" || system.Timers.Set == 0 || system.Timers.Due != 0 || system.Timers.Unknown != "" {
		t.Errorf("got %+v", system)
	}
	var one web.Verified
	w.want(http.StatusOK, &one, "acme", "POST", "/v1/sessions/s/verify", "")
	all, hashes := w.states()
	if one.Session != "s" || one.Events != uint64(len(all)) || one.Hash != hashes[len(hashes)-1] || len(one.Differences) != 0 || one.Same == 0 {
		t.Errorf("got %+v", one)
	}
	got, err := http.DefaultClient.Do(w.request("all", "POST", "/v1/verify", ""))
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	var step web.VerifyStep
	for s := (&events{body: got.Body, in: bufio.NewReader(got.Body)}); !step.Done; {
		e, err := s.next()
		if err == nil {
			err = json.Unmarshal([]byte(e.data), &step)
		}
		if err != nil {
			t.Fatalf("got %+v (%v)", e, err)
		}
	}
	if step.Sessions != 1 || step.Events != uint64(len(all)) || step.Differ != 0 {
		t.Errorf("got %+v", step)
	}
	for path, method := range map[string]string{"/v1/fleet": "GET", "/v1/system": "GET", "/v1/verify": "POST"} {
		w.refuse(http.StatusForbidden, "forbidden", "acme", method, path, "")
	}
}
