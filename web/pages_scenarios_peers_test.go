//go:build peers

package web_test

// What: at each event of each scenario the cursor shows the state that the fold has there
// (UI-04).
//
// How: each history becomes an archive, which a server has while the page's own functions
// move the cursor over its events. What the page's tree shows is compared with the view of
// the fold, which the page gets from the test. The hash is a part of it. At the last event
// all of the tree is opened.

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/refold/refold"
	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/session/scenario"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/archive/archivetest"
	"github.com/refold/refold/internal/browser"
	"github.com/refold/refold/internal/prove/provetest"
	"github.com/refold/refold/refoldtest"
	"github.com/refold/refold/web"
)

// goldenState is what the fold has after an event.
type goldenState struct {
	Seq  uint64       `json:"seq"`
	View session.View `json:"view"`
}

// cursorOver moves the cursor over the events [from, to) of a session, and returns how the
// page differs at the first one that does, or an empty text. Leaves and heads of the tree
// are texts, in its order; of a list or an object in another one only the head is shown.
const cursorOver = `(async ([sid, from, to]) => {
	const module = (name) => import(document.querySelector("script[type=module]").src.replace("app.js", name));
	const [{ go, setQuery }, { flat }] = [await module("ui.js"), await module("text.js")];
	const golden = await (await fetch("/golden")).json();
	if (from === 0) go("/s/" + sid + "?tab=state&at=" + golden[0].seq);
	const texts = (name, value, depth, all) => {
		const head = flat(name) + ": ";
		if (value === null || typeof value !== "object") return [head + flat(JSON.stringify(value).slice(0, 4096))];
		const entries = Object.entries(value), list = Array.isArray(value);
		if (!entries.length) return [head + (list ? "[]" : "{}")];
		const parts = depth < 2 || all ? entries.slice(0, 200).flatMap(([k, v]) => texts(k, v, depth + 1, all)) : [];
		if (entries.length > 200 && (depth < 2 || all)) parts.push("… " + (entries.length - 200) + " more");
		return [head + (list ? "[" + entries.length + "]" : "{" + entries.length + "}"), ...parts];
	};
	for (const [i, { seq, view }] of [...golden.entries()].slice(from, to)) {
		setQuery({ at: seq });
		const all = i === golden.length - 1;
		const want = Object.entries(view).flatMap(([k, v]) => texts(k, v, 1, all));
		const until = performance.now() + 30_000;
		let got = [], at = 0;
		do {
			await new Promise(requestAnimationFrame);
			if (all) document.querySelectorAll(".tree details:not([open])").forEach((d) => { d.open = true; });
			got = [...document.querySelectorAll(".tree .leaf, .tree summary")].map((e) => e.textContent);
			at = want.findIndex((text, n) => text !== got[n]);
			if (at < 0 && got.length > want.length) at = want.length;
		} while (at >= 0 && performance.now() < until);
		if (at >= 0) return "event " + seq + ": the page shows " + JSON.stringify(got[at]) + ", the fold has " + JSON.stringify(want[at]);
		if (!document.querySelector(".past")?.textContent.includes("Nothing is asked.")) return "event " + seq + ": the page does not say that it is of the past";
	}
	return "";
})(%s)`

// UI-04.
func TestPageCursorAtEachEventOfAllScenarios(t *testing.T) {
	t.Parallel()
	w := serve(t, web.Options{}, refold.Model(refoldtest.Model()))
	rest := web.Handler(w.rt, web.Options{Auth: auth})
	var played atomic.Pointer[http.Handler]
	var golden atomic.Pointer[[]goldenState]
	url := newServer(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method != http.MethodGet:
			t.Errorf("looking sent %s %s", r.Method, r.URL.Path)
		case r.URL.Path == "/golden":
			_ = json.NewEncoder(rw).Encode(*golden.Load())
		case strings.HasPrefix(r.URL.Path, "/v1/sessions/"):
			(*played.Load()).ServeHTTP(rw, r)
		default:
			rest.ServeHTTP(rw, r)
		}
	}))
	unknown := []string{"/state?record=false: 503"}
	p := browser.Open(t, phone)
	p.Do(chromedp.Navigate(url + "/approvals#token=all"))
	ready(p)
	files, states := provetest.Histories(t, "../actors/session/testdata/scenarios/*.txt"), 0
	for _, file := range slices.Sorted(maps.Keys(files)) {
		for _, h := range files[file] {
			of := fold(t, h)
			all := make([]goldenState, len(of.views))
			for i := range of.views {
				all[i] = goldenState{h.Events[i].Seq, of.views[i]}
			}
			if n := len(all) - 1; of.views[n].Rules > session.RulesVersion { // a release that knows these shows the last state
				unknown, all = append(unknown, fmt.Sprintf("/state?at=%d&record=false: 503", all[n].Seq)), all[:n]
			}
			handler, end := archived(t, h)
			golden.Store(&all)
			played.Store(&handler)
			if of.views[0].Install != installOf(t, h) {
				saysWhatIsMissing(p, h.Events[0].Session)
				all = nil
			}
			for from := 0; from < len(all); from += 50 { // an evaluation takes at most a minute
				what, err := json.Marshal([]any{h.Events[0].Session, from, from + 50})
				if err != nil {
					t.Fatal(err)
				}
				if wrong := browser.Value[string](p, fmt.Sprintf(cursorOver, what)); wrong != "" {
					t.Errorf("%s: %s", filepath.Base(file), wrong)
				}
			}
			press(p, `.nav a[href$="/approvals"]`)
			p.Eventually(`location.pathname === "/approvals" && !document.querySelector(".session-head")`)
			end()
			states += len(all)
		}
	}
	for _, fault := range unknown {
		p.IgnoreFaults(fault)
	}
	p.IgnoreFaults("/state?at=2&record=false: 500")
	if t.Logf("%d states of %d files", states, len(files)); states < 1500 {
		t.Errorf("%d states, which are too few: are the scenarios still there?", states)
	}
}

// installOf returns the hash of the install record that a history has.
func installOf(t *testing.T, h scenario.History) string {
	t.Helper()
	install, err := session.ParseInstall(h.Install)
	if err != nil {
		t.Fatal(err)
	}
	return install.Hash.String()
}

// saysWhatIsMissing: the tombstone of a scenario names an install record that nobody has,
// so no state can be shown. The page says so, and does not wait for ever.
func saysWhatIsMissing(p *browser.Page, sid string) {
	browser.Value[bool](p, fmt.Sprintf(`import(document.querySelector("script[type=module]").src.replace("app.js", "ui.js")).then(({ go }) => (go("/s/%s?tab=state&at=2"), true))`, sid))
	p.Eventually(has("main [role=alert]", "a fault of the server"))
	p.TakeFault("/state?at=2&record=false: 500")
}

// archived returns a server of a history, and what ends it.
func archived(t *testing.T, h scenario.History) (handler http.Handler, end func()) {
	t.Helper()
	c, _, err := client.OpenArchive(archivetest.Write(t, h))
	if err != nil {
		t.Fatal(err)
	}
	rt, err := refold.Open(t.Context(), inFile{c})
	if err != nil {
		t.Fatal(err)
	}
	return web.Handler(rt, web.Options{Auth: auth, Limits: web.Limits{PerSecond: 1_000_000}}), func() { _ = rt.Close() }
}
