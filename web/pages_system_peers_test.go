//go:build peers

package web_test

// What pages say of the processes that run, of the lanes, and of timers.

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/refold/refold/internal/browser"
	"github.com/refold/refold/web"
)

// The pages show who owns each lane, what the processes have done, and the timers.
func TestPageFleetShowsWhatRuns(t *testing.T) {
	t.Parallel()
	w := bought(t)
	p := w.open(desk, "all", "/fleet")
	p.Eventually(`(() => {
		const actor = document.querySelector("[data-refold-actor]")?.dataset.refoldActor;
		const lanes = [...document.querySelectorAll("[data-refold-lane]")];
		return actor && lanes.length === 8 && lanes.every((l) => l.textContent.includes(actor));
	})()`)
	p.Eventually(has(`[data-refold-actor] [data-label="take-overs"]`, "8") + ` && ` + has(`[data-refold-actor]`, "rules 1"))
	p.Eventually(`[...document.querySelectorAll('[data-refold-bridge] [data-label="settled"]')].some((e) => Number.parseInt(e.textContent) > 0)`)
	p = w.open(desk, "all", "/system")
	p.Eventually(has("dl.facts dd", "new sessions follow 1") + ` && ` + has("dl.facts dd", "are set, and none is due"))
}

// Rates are those of the last minute, by the times of the counts: of a process that answered
// once, and of one that is gone and comes back, none is told.
func TestPageFleetShowsRates(t *testing.T) {
	t.Parallel()
	w := bought(t)
	inner := web.Handler(w.rt, web.Options{Auth: auth})
	var answers atomic.Int64
	changed := newServer(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/fleet" {
			inner.ServeHTTP(rw, r)
			return
		}
		n := uint64(answers.Add(1))
		rw.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(rw).Encode(web.FleetShown{
			Bridges: []web.BridgeShown{
				{Instance: "steady", Targets: []string{}, Work: &web.BridgeWork{Done: 7, Failed: 2}},
				{Instance: "busy", Targets: []string{}, Work: &web.BridgeWork{Done: 1e6 * n, Failed: 1e6 * n}},
				{Instance: fmt.Sprint("new", n), Targets: []string{}, Work: &web.BridgeWork{Done: 5}},
			},
			SessionActors: []web.ActorShown{{Instance: "actor", Lanes: []int{}, Rules: 1, Work: &web.ActorWork{Owned: []int{}, Events: 1e6 * n}}},
			LaneStates:    []web.LaneShown{}, Targets: []web.TargetShown{}, Installs: []web.InstallShown{},
		})
	}))
	p := (&world{t: t, url: changed}).open(desk, "all", "/fleet")
	p.Eventually(has(`[data-refold-bridge="steady"] [data-refold-rate]`, "0.0 effects/s"))
	p.Eventually(`Number.parseInt(document.querySelector('[data-refold-bridge="busy"] [data-refold-rate]').textContent.replaceAll("\u202f", "")) > 100`)
	p.Eventually(`/^[1-9].* events\/s$/.test(document.querySelector('[data-refold-actor="actor"] [data-refold-rate]').textContent)`)
	p.Eventually(`document.querySelectorAll('[data-refold-bridge^="new"]').length === 1 && !document.querySelector('[data-refold-bridge^="new"] [data-refold-rate]')`)
	rates := browser.Value[string](p, `import(document.querySelector("script[type=module]").src.replace("app.js", "fleet.js")).then(({ ratesOf }) => {
		const told = [];
		let counted = new Map();
		for (const [at, n] of [[0, 100], [5000, 150], [60_000, 700], [66_000, 700], [130_000, 700]]) {
			const now = ratesOf(counted, at === 5000 ? [["a", n]] : [["a", n], ["b", 3]], at);
			counted = now.counted;
			told.push([...now.rates].map(([name, rate]) => name + rate).join(" "));
		}
		return told.join(", ");
	})`)
	if want := ", a10, a10, a0 b0, "; rates != want {
		t.Errorf("got rates %q, want %q", rates, want)
	}
}

// A lane that nobody owns, and one whose owner does not answer, are told apart; an event
// that waits, an older release and what this server may not ask are told, too.
func TestPageFleetShowsWhatIsWrong(t *testing.T) {
	t.Parallel()
	w := bought(t)
	inner := web.Handler(w.rt, web.Options{Auth: auth})
	var denied atomic.Bool
	changed := newServer(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/fleet" {
			inner.ServeHTTP(rw, r)
			return
		}
		answer := httptest.NewRecorder()
		inner.ServeHTTP(answer, r)
		if answer.Code != http.StatusOK { // the page is left
			rw.WriteHeader(answer.Code)
			return
		}
		var f web.FleetShown
		if err := json.Unmarshal(answer.Body.Bytes(), &f); err != nil || len(f.LaneStates) != 8 || len(f.SessionActors) != 1 {
			t.Errorf("got %s (%v)", answer.Body, err)
			return
		}
		waits := time.Now().Add(-90 * time.Second).UnixMilli()
		f.LaneStates[3] = web.LaneShown{Lane: 3, Pending: 1200, Oldest: waits}
		f.LaneStates[4] = web.LaneShown{Lane: 4, Pinned: true, Unacknowledged: 7, Oldest: waits}
		f.SessionActors = append(f.SessionActors, web.ActorShown{Instance: "newer", Lanes: []int{}, Heard: time.Now().UnixMilli(), Rules: 2})
		if denied.Load() {
			f.LaneStates, f.Unknown = []web.LaneShown{}, "permissions violation: CONSUMER.LIST.REFOLD_LOG"
		}
		rw.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(rw).Encode(f)
	}))
	p := (&world{t: t, url: changed}).open(desk, "all", "/fleet")
	p.Eventually(has(`[data-refold-lane="3"]`, "nobody") + ` && ` + has(`[data-refold-lane="3"] .tag.bad`, "1 min 3") + ` && ` + has(`[data-refold-lane="3"] [data-label="pending"]`, "1\u202f200"))
	p.Eventually(has(`[data-refold-lane="4"]`, "does not answer") + ` && ` + has(`[data-refold-lane="4"] [data-label="unacknowledged"]`, "7"))
	p.Eventually(has(`[data-refold-actor] .tag.warn`, "rules 1, others know 2") + ` && !` + has(`[data-refold-actor="newer"]`, "others know"))
	denied.Store(true)
	p = (&world{t: t, url: changed}).open(desk, "all", "/fleet")
	p.Eventually(has(`[aria-label="Lanes"]`, "Lanes are not known: permissions violation"))
}
