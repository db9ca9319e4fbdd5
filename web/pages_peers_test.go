//go:build peers

package web_test

// What: the inspector's pages in Chromium: they show what happens while it happens, what
// runs is what was shown, no text becomes anything but text, and nobody gets in who should
// not.
//
// How: a real server and its handler; a browser of its own for each test. A page that
// breaks its own policy, throws, or sends a request that fails, fails its test.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/refold/refold"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/browser"
	"github.com/refold/refold/internal/inside"
	"github.com/refold/refold/refoldtest"
	"github.com/refold/refold/web"
)

// desk and phone are the sizes of pages.
var (
	desk  = browser.Size{Width: 1440, Height: 1000}
	phone = browser.Size{Width: 360, Height: 800}
)

// open opens a page with a token.
func (w *world) open(size browser.Size, token, path string) *browser.Page {
	w.t.Helper()
	p := browser.Open(w.t, size)
	p.Do(chromedp.Navigate(w.url + path + "#token=" + token))
	ready(p)
	return p
}

// ready waits until a page shows what it is about.
func ready(p *browser.Page) {
	p.Eventually(`document.documentElement.dataset.ready !== undefined && document.querySelector("h1") && !document.querySelector(".skeleton")`)
}

// press clicks on what a selector finds, which must be there and enabled.
func press(p *browser.Page, selector string) {
	p.Eventually(fmt.Sprintf(`document.querySelector(%q) && !document.querySelector(%[1]q).disabled`, selector))
	browser.Value[bool](p, fmt.Sprintf(`(document.querySelector(%q).click(), true)`, selector))
}

// enter presses Tab until what a selector finds has the focus, and then Enter.
func enter(p *browser.Page, selector string) {
	for tabs := 0; !browser.Value[bool](p, fmt.Sprintf(`document.activeElement.matches(%q)`, selector)); tabs++ {
		if tabs == 60 {
			p.Eventually(fmt.Sprintf(`"%s is reached by Tab" === ""`, selector)) // fails, and says what the page shows
		}
		p.Do(chromedp.KeyEvent("\t"))
	}
	p.Do(chromedp.KeyEvent("\r"))
}

// fill writes a text into a field, as a person who replaces what is in it.
func fill(p *browser.Page, selector, text string) {
	p.Eventually(fmt.Sprintf(`document.querySelector(%q)`, selector))
	browser.Value[bool](p, fmt.Sprintf(`(() => {
		const field = document.querySelector(%q);
		Object.getOwnPropertyDescriptor(Object.getPrototypeOf(field), "value").set.call(field, %q);
		return field.dispatchEvent(new Event("input", { bubbles: true }));
	})()`, selector, text))
}

// has is an expression that is true if a selector finds something with a text.
func has(selector, text string) string {
	return fmt.Sprintf(`[...document.querySelectorAll(%q)].some((e) => e.textContent.includes(%q))`, selector, text)
}

// held is a model that writes a text, and its end when it is let go on.
type held struct{ goOn chan struct{} }

// Generate implements executor.Model.
func (h held) Generate(ctx context.Context, _ executor.Request, delta func(string)) (executor.Answer, error) {
	delta("It is ")
	select {
	case <-h.goOn:
	case <-ctx.Done():
		return executor.Answer{}, ctx.Err()
	}
	delta("raining.")
	return executor.Answer{Text: "It is raining."}, nil
}

// holding returns a world whose model waits, and what lets one of its turns go on.
func holding(t *testing.T) (*world, chan<- struct{}) {
	t.Helper()
	h := held{make(chan struct{})}
	return serve(t, web.Options{}, refold.Model(refold.ModelRef{Provider: "held", Model: "held", Open: func() (executor.Model, error) { return h, nil }})), h.goOn
}

// UI-01: the row of a session appears, and goes from running to completed, without a
// reload.
func TestPageSessionsFollow(t *testing.T) {
	t.Parallel()
	w, goOn := holding(t)
	p := w.open(desk, "all", "/")
	if text := p.Text(); !strings.Contains(text, "No session yet") {
		t.Errorf("an empty list does not say so: %s", text)
	}
	browser.Value[bool](p, `(window.loadedOnce = true)`)
	w.want(http.StatusAccepted, nil, "all", "POST", "/v1/sessions/hello/runs", `{"agent": "helper", "input": "How is the weather?"}`)
	p.Eventually(has(`[data-refold-session="hello"] .state`, "running"))
	goOn <- struct{}{}
	p.Eventually(has(`[data-refold-session="hello"] .state`, "completed"))
	p.Eventually(has(`[data-refold-session="hello"] .words`, "It is raining."))
	// While the focus is in the list, rows keep their places.
	browser.Value[bool](p, `(document.querySelector(".rowlink").focus(), true)`)
	w.want(http.StatusAccepted, nil, "all", "POST", "/v1/sessions/later/runs", `{"agent": "helper", "input": "And now?"}`)
	p.Eventually(has(`.newer`, "1 newer"))
	goOn <- struct{}{}
	press(p, ".newer")
	p.Eventually(`document.querySelectorAll("tr.go").length === 2`)
	// The filter is in the address, and an empty list says what it is filtered by.
	fill(p, `#filter`, "nobody")
	p.Eventually(`location.search === "?name=nobody" && ` + has(".empty", "No session matches"))
	if !browser.Value[bool](p, `window.loadedOnce`) {
		t.Error("the page was loaded again")
	}
}

// UI-02: a turn's text grows while the model writes, and is once what the log has.
func TestPageTextGrows(t *testing.T) {
	t.Parallel()
	w, goOn := holding(t)
	w.want(http.StatusAccepted, nil, "all", "POST", "/v1/sessions/hello/runs", `{"agent": "helper", "input": "How is the weather?"}`)
	p := w.open(desk, "all", "/s/hello")
	goOn <- struct{}{}
	p.Eventually(has(".turn.model .said", "It is raining.") + ` && ` + has(".title .state", "completed"))
	w.want(http.StatusAccepted, nil, "all", "POST", "/v1/sessions/hello/runs", `{"agent": "helper", "input": "Still?"}`)
	p.Eventually(`document.querySelector("#streaming .said")?.textContent === "It is "`)
	goOn <- struct{}{}
	p.Eventually(has(".title .state", "completed") + ` && [...document.querySelectorAll(".turn.model .said")].map((e) => e.textContent).join("|") === "It is raining.|It is raining." && !document.querySelector("#streaming")`)
}

// UI-04: the state at the cursor is the fold's, and moving the cursor publishes nothing.
func TestPageCursor(t *testing.T) {
	t.Parallel()
	w := bought(t)
	events, hashes := w.states()
	p := w.open(desk, "acme", "/s/s?tab=state")
	for i := len(events) - 2; i >= 0; i-- {
		press(p, `[aria-label="Previous event"]`)
		p.Eventually(fmt.Sprintf(`location.search.includes("at=%d") && %s`, events[i].Seq, has(".tree", hashes[i])))
		if i == 0 {
			p.Eventually(has(".past", "Nothing is asked.") + ` && !document.querySelector("[data-refold-action], .composer")`)
		}
	}
	press(p, ".past button")
	p.Eventually(has(".tree", hashes[len(hashes)-1]))
	if now, err := inside.Of(w.rt).Client().LastEvent(w.ctx); err != nil || now != events[len(events)-1].Seq {
		t.Errorf("looking published: the log ends at %d (%v)", now, err)
	}
}

// waiting returns a world in which a call waits, and the call.
func waiting(t *testing.T, ran func(string)) (*world, web.Approval) {
	t.Helper()
	buy := refold.Func("shop.buy", func(_ context.Context, in order) (string, error) {
		ran(in.Item)
		return "bought " + in.Item, nil
	}, refold.NeedsApproval())
	w := serve(t, web.Options{}, refold.Tools(buy), refold.Model(refoldtest.Model(
		refoldtest.Calls(refoldtest.To("shop_buy", order{"tea"})), refoldtest.Say("I have it."))))
	w.want(http.StatusAccepted, nil, "all", "POST", "/v1/sessions/s/runs", `{"agent": "helper", "input": "Buy tea."}`)
	var list web.ApprovalList
	for len(list.Approvals) == 0 { // w.ctx bounds it
		w.want(http.StatusOK, &list, "all", "GET", "/v1/approvals", "")
	}
	return w, list.Approvals[0]
}

// decisions returns how many decisions the log of the session s has.
func (w *world) decisions() (n int) {
	w.t.Helper()
	var list web.EventList
	w.want(http.StatusOK, &list, "all", "GET", "/v1/sessions/s/events", "")
	for _, e := range list.Events {
		if e.Type == "ApprovalDecided" {
			n++
		}
	}
	return n
}

// UI-06: what runs has the hash that was shown; a double click decides once.
func TestPageApproves(t *testing.T) {
	t.Parallel()
	ran := make(chan string, 2)
	w, call := waiting(t, func(item string) { ran <- item })
	p := w.open(desk, "all", "/approvals")
	p.Eventually(fmt.Sprintf(`document.querySelector('[data-refold-call="r1t1c0"] .copy')?.title.includes(%q)`, call.ArgsHash))
	p.Eventually(has(".nav .count", "1"))
	p.Eventually(has(`.approval .code`, `"tea"`) + ` && !document.querySelector(".approval .btn.main").disabled`)
	browser.Value[bool](p, `(() => { const b = document.querySelector(".approval .btn.main"); b.click(); b.click(); return true; })()`)
	if item := <-ran; item != "tea" {
		t.Errorf("what ran is %q, want what was shown", item)
	}
	p.Eventually(has(".page-head", "No calls waiting") + ` && ` + has(".approval", "no longer waits"))
	if n := w.decisions(); n != 1 {
		t.Errorf("the log has %d decisions, want 1", n)
	}
}

// UI-06: a call that was decided meanwhile can't be decided by the page.
func TestPageApprovalIsStale(t *testing.T) {
	t.Parallel()
	ran := make(chan string, 2)
	w, call := waiting(t, func(item string) { ran <- item })
	p := w.open(desk, "all", "/approvals")
	p.Eventually(`document.querySelector(".approval .btn.main")?.disabled === false`)
	w.want(http.StatusOK, nil, "all", "POST", "/v1/sessions/s/approvals/r1t1c0", `{"decision": "approve", "args_hash": "`+call.ArgsHash+`", "arguments": "{\"item\": \"milk\"}"}`)
	if item := <-ran; item != "milk" {
		t.Errorf("what ran is %q, want milk", item)
	}
	p.Eventually(has(".approval", "no longer waits") + ` && document.querySelector(".approval .btn.main").disabled`)
	if n := w.decisions(); n != 1 {
		t.Errorf("the log has %d decisions, want 1", n)
	}
}

// UI-07: an edit that the schema refuses is told, and not sent; a good one runs, and the
// conversation has it.
func TestPageApprovesWithEdits(t *testing.T) {
	t.Parallel()
	ran := make(chan string, 2)
	w, _ := waiting(t, func(item string) { ran <- item })
	p := w.open(desk, "all", "/s/s")
	press(p, ".approval .btn:not(.main):not(.danger):not(.bare)")
	p.Eventually(`document.querySelector("dialog textarea")`)
	fill(p, "dialog textarea", `{"item": 7}`)
	p.Eventually(has("dialog .note.bad", "It would be refused") + ` && document.querySelector("dialog .btn.main").disabled`)
	if n := w.decisions(); n != 0 {
		t.Fatalf("the log has %d decisions, want none", n)
	}
	fill(p, "dialog textarea", `{"item": "green tea"}`)
	press(p, "dialog .btn.main:not(:disabled)")
	if item := <-ran; item != "green tea" {
		t.Errorf("what ran is %q, want the edit", item)
	}
	p.Eventually(has(".call", "With these arguments instead") + ` && ` + has(".call", "green tea"))
}

// UI-09: the preview of a control says what comes of it.
func TestPagePreviewsAndPauses(t *testing.T) {
	t.Parallel()
	w, _ := waiting(t, func(string) {})
	p := w.open(desk, "all", "/s/s")
	press(p, `[data-refold-action="pause"]`)
	p.Eventually(has("dialog .note", "What would come of it"))
	press(p, "dialog .btn.main")
	p.Eventually(has(".title", "paused") + ` && !document.querySelector("dialog")`)
	var list web.EventList
	w.want(http.StatusOK, &list, "all", "GET", "/v1/sessions/s/events", "")
	if last := list.Events[len(list.Events)-1]; last.Type != "RunPauseRequested" || last.By != "ada" {
		t.Errorf("got %+v, want the pause of ada", last)
	}
	p.Eventually(`document.querySelector('[data-refold-action="resume"]') && !document.querySelector('[data-refold-action="pause"]')`)
}

// UI-11: without a token, with a wrong one, and with one that may only read.
func TestPageTokens(t *testing.T) {
	t.Parallel()
	w := bought(t)
	p := browser.Open(t, desk)
	p.Do(chromedp.Navigate(w.url + "/s/s"))
	p.Eventually(has(".gate", "Token"))
	p.TakeFault("/v1/caller: 401")
	fill(p, ".gate input", "nonsense")
	press(p, ".gate .btn")
	p.Eventually(has(".gate .note", "does not accept this token"))
	p.TakeFault("/v1/caller: 401")
	fill(p, ".gate input", "reader")
	press(p, ".gate .btn")
	p.Eventually(has(".said", "I have it."))
	if browser.Value[bool](p, `Boolean(document.querySelector(".composer, .actions .btn:not(:disabled)")) || `+has(".nav a", "Fleet")) {
		t.Error("a token with a scope that may only read is offered more")
	}
	p.Do(chromedp.Navigate(w.url + "/s/s#token=acme"))
	p.Eventually(has(".said", "I have it.") + ` && location.hash === "" && document.querySelector(".composer")`)
	if stored := browser.Value[string](p, `JSON.stringify([document.cookie, {...localStorage}, {...sessionStorage}])`); strings.Contains(stored, "acme") {
		t.Errorf("the token is stored: %s", stored)
	}
}

// UI-08: an action is offered exactly where the table of runs in docs/semantics.md allows
// it and it does something.
func TestPageOffersWhatTheTableAllows(t *testing.T) {
	t.Parallel()
	w := bought(t)
	p := w.open(desk, "acme", "/")
	columns := map[int]string{2: "cancel", 3: "interrupt", 4: "pause", 5: "resume", 6: "complete", 7: "fail"}
	want := map[string]bool{}
	for _, state := range []string{"no run", "running", "waiting_input", "paused", "interrupting"} {
		cells := tableRow(t, "../docs/semantics.md", "| "+state+" |")
		for i, action := range columns {
			cell := cells[i+1]
			want[state+" "+action] = !strings.Contains(cell, "run_not_active") && !strings.Contains(cell, "illegal_transition") && !strings.Contains(cell, "no-op")
		}
	}
	var got map[string]bool
	text := browser.Value[string](p, `import(document.querySelector("script[type=module]").src.replace("app.js", "controls.js")).then(({ actions, isOffered }) => {
		const all = {};
		for (const state of ["no run", "running", "waiting_input", "paused", "interrupting"])
			for (const a of actions) if (a.when) all[state + " " + a.id] = isOffered(a, state === "no run" ? { lifecycle: "completed", status: "open" } : { lifecycle: state, status: "open", run: {} });
		return JSON.stringify(all);
	})`)
	if err := json.Unmarshal([]byte(text), &got); err != nil || len(got) != len(want) {
		t.Fatalf("got %s (%v)", text, err)
	}
	for name, is := range want {
		if got[name] != is {
			t.Errorf("%s: offered is %v, and the table says %v", name, got[name], is)
		}
	}
}

// tableRow returns the cells of a table's row in a document.
func tableRow(t *testing.T, file, begins string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, begins) {
			return strings.Split(line, "|")
		}
	}
	t.Fatalf("%s has no row %s", file, begins)
	return nil
}

// UI-03: a stream that is cut ten times shows each event of the log once, in order.
func TestPageStreamIsCut(t *testing.T) {
	t.Parallel()
	w := serve(t, web.Options{}, refold.Model(refoldtest.Model(refoldtest.Say("hello"))))
	w.want(http.StatusOK, nil, "all", "POST", "/v1/sessions/s/runs", `{"agent": "helper", "input": "hi"}`, "Prefer", "wait=60")
	cut := httptest.NewServer(web.Handler(w.rt, web.Options{Auth: auth, Limits: web.Limits{PerSecond: 1_000_000}}))
	t.Cleanup(func() {
		cut.CloseClientConnections()
		cut.Close()
	})
	p := browser.Open(t, desk)
	p.Do(chromedp.Navigate(cut.URL + "/s/s?tab=events#token=all"))
	ready(p)
	p.Eventually(`document.querySelector(".ev")`)
	c := inside.Of(w.rt).Client()
	for i := range 30 {
		value := fmt.Sprint(i)
		if _, err := c.SetFacts(w.ctx, "s", map[string]*string{"n": &value}, ""); err != nil {
			t.Fatal(err)
		}
		if i%3 == 0 {
			cut.CloseClientConnections()
		}
	}
	var list web.EventList
	w.want(http.StatusOK, &list, "all", "GET", "/v1/sessions/s/events", "")
	p.Eventually(fmt.Sprintf(`document.querySelector(".vlist").getAttribute("aria-rowcount") === "%d"`, len(list.Events)))
	browser.Value[bool](p, `(document.querySelector(".vlist").scrollTop = 1e6, true)`)
	p.Eventually(fmt.Sprintf(`document.querySelector('[data-refold-seq="%d"]')`, list.Events[len(list.Events)-1].Seq))
	shown := browser.Value[[]uint64](p, `[...document.querySelectorAll(".ev")].map((e) => Number(e.dataset.refoldSeq))`)
	tail := list.Events[len(list.Events)-len(shown):]
	for i := range shown {
		if shown[i] != tail[i].Seq {
			t.Fatalf("got %v, want the last events of the log", shown)
		}
	}
	p.TakeFault("net::ERR_")
}

// UI-12: for every tool and turn the page says what the view says.
func TestPageSaysWhy(t *testing.T) {
	t.Parallel()
	w := bought(t)
	var tools web.ToolsShown
	w.want(http.StatusOK, &tools, "acme", "GET", "/v1/sessions/s/tools?turn=r1t1", "")
	p := w.open(desk, "acme", "/s/s?tab=tools&turn=r1t1")
	for _, tool := range tools.Tools {
		p.Eventually(has(".tool", tool.ToolName))
		if tool.Why != "offered" {
			p.Eventually(has(".tool", tool.Why))
		}
	}
	press(p, ".strip button:last-child")
	p.Eventually(`location.search.includes("turn=r2t1")`)
}

// UI-14, by counts: ten thousand events and a scroll through all of them, with a bounded
// number of nodes.
func TestPageHasFewNodes(t *testing.T) {
	t.Parallel()
	w := serve(t, web.Options{}, refold.Model(refoldtest.Model(refoldtest.Say("hello"))))
	w.want(http.StatusOK, nil, "all", "POST", "/v1/sessions/s/runs", `{"agent": "helper", "input": "hi"}`, "Prefer", "wait=60")
	c := inside.Of(w.rt).Client()
	var publishing sync.WaitGroup
	for worker := range 20 {
		publishing.Go(func() {
			for i := range 500 {
				value := fmt.Sprint(worker, i)
				if _, err := c.SetFacts(w.ctx, "s", map[string]*string{"n": &value}, ""); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	publishing.Wait()
	p := w.open(desk, "all", "/s/s?tab=events")
	p.Eventually(`Number(document.querySelector(".vlist").getAttribute("aria-rowcount")) > 10000`)
	for i := range 20 {
		browser.Value[bool](p, fmt.Sprintf(`new Promise((done) => { const l = document.querySelector(".vlist"); l.scrollTop = l.scrollHeight * %d / 20; requestAnimationFrame(() => requestAnimationFrame(() => done(true))); })`, i))
		if nodes := browser.Value[int](p, `document.querySelectorAll("*").length`); nodes > 3000 {
			t.Fatalf("the page has %d nodes, at most 3000 are allowed", nodes)
		}
	}
	if rows := browser.Value[int](p, `document.querySelectorAll(".ev").length`); rows == 0 || rows > 60 {
		t.Errorf("%d rows are drawn, want those that are seen", rows)
	}
}

// UI-17: from the list to an event and back with the keyboard alone.
func TestPageKeyboard(t *testing.T) {
	t.Parallel()
	w := bought(t)
	p := w.open(desk, "acme", "/")
	p.Eventually(`document.querySelector(".rowlink")`)
	p.Do(chromedp.KeyEvent("j"))
	p.Eventually(`document.activeElement.matches(".rowlink")`)
	p.Do(chromedp.KeyEvent("\r"))
	p.Eventually(`location.pathname === "/s/s" && document.querySelector(".cursor")`)
	ready(p)
	p.Do(chromedp.KeyEvent("["))
	p.Eventually(`location.search.startsWith("?at=")`)
	p.Do(chromedp.KeyEvent("l"))
	p.Eventually(`location.search === ""`)
	p.Do(chromedp.KeyEvent("?"))
	p.Eventually(has("dialog", "previous and next event"))
	p.Do(chromedp.KeyEvent("\u001b"))
	p.Eventually(`!document.querySelector("dialog")`)
	p.Do(chromedp.KeyEvent("g"), chromedp.KeyEvent("a"))
	p.Eventually(`location.pathname === "/approvals"`)
}

type search struct {
	Query string `json:"query"`
}

// UI-16: axe-core finds nothing on any page, in both themes, at three widths.
func TestPagesAreAccessible(t *testing.T) {
	t.Parallel()
	axe, err := os.ReadFile("../internal/inspector/npm/node_modules/axe-core/axe.min.js")
	if err != nil {
		t.Fatalf("%v: make check-web installs it", err)
	}
	w := gallery(t)
	for _, width := range []int64{1440, 768, 360} {
		p := browser.Open(t, browser.Size{Width: width, Height: 900})
		for name, path := range galleryPages {
			p.Do(chromedp.Navigate("about:blank"), chromedp.Navigate(w.url+path+"#token=all"))
			ready(p)
			browser.Value[any](p, string(axe)+"; 0")
			for _, theme := range []string{"light", "dark"} {
				browser.Value[bool](p, `(document.documentElement.dataset.theme = "`+theme+`", true)`)
				found := browser.Value[string](p, `axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }).then((r) => r.violations.map((v) => v.id + ": " + v.nodes.slice(0, 4).map((n) => n.target + " " + (n.any[0]?.message ?? n.all[0]?.message ?? n.none[0]?.message ?? "")).join("; ")).join("\n"))`)
				if found != "" {
					t.Errorf("%s, %s, %d px: %s", name, theme, width, found)
				}
			}
			if browser.Value[bool](p, `document.documentElement.scrollWidth > innerWidth`) {
				t.Errorf("%s at %d px scrolls sideways", name, width)
			}
		}
	}
}

// galleryPages are all pages and panels.
var galleryPages = map[string]string{
	"sessions": "/", "session": "/s/weather-bergen", "timeline": "/s/weather-bergen?tab=timeline&run=1", "events": "/s/weather-bergen?tab=events&at=5", "state": "/s/weather-bergen?tab=state", "compare": "/s/weather-bergen?tab=state&part=diff&compare=4",
	"tools": "/s/weather-bergen?tab=tools", "batch": "/s/weather-bergen?tab=batch", "effects": "/s/weather-bergen?tab=effects",
	"approvals": "/approvals", "fleet": "/fleet", "system": "/system",
}

// gallery returns a world with sessions of each kind.
func gallery(t *testing.T) *world {
	t.Helper()
	find := refold.Func("docs.search", func(_ context.Context, in search) (string, error) {
		if strings.Contains(in.Query, "broken") {
			return "", errors.New("the index is being rebuilt")
		}
		return `{"hits": [{"title": "Bergen in November", "score": 0.91}, {"title": "Rain statistics", "score": 0.74}], "took_ms": 12}`, nil
	}, refold.RetrySafe(), refold.ReadOnly())
	w := serve(t, web.Options{}, refold.Tools(shop(), find), refold.System("You help a shop."), refold.Model(refoldtest.Model(
		refoldtest.Calls(refoldtest.To("docs_search", search{"weather in Bergen"}), refoldtest.To("docs_search", search{"broken index"})),
		refoldtest.Say("In November it rains on most days in Bergen: 25 of 30, and 283 mm in all.\n\nI could not reach the second index, so these are last year's figures. Shall I order an umbrella?"),
		refoldtest.Calls(refoldtest.To("shop_buy", order{"one black umbrella, 120 cm"})),
		refoldtest.Say("The umbrella is ordered."))))
	w.want(http.StatusOK, nil, "all", "POST", "/v1/sessions/weather-bergen/runs", `{"agent": "helper", "input": "What is the weather in Bergen in November?"}`, "Prefer", "wait=60")
	w.want(http.StatusAccepted, nil, "all", "POST", "/v1/sessions/weather-bergen/runs", `{"agent": "helper", "input": "Yes, please order one."}`)
	for i := range 5 {
		w.want(http.StatusOK, nil, "all", "POST", fmt.Sprintf("/v1/sessions/support-%03d/runs", i), `{"agent": "helper", "input": "Where is my parcel?"}`, "Prefer", "wait=60")
	}
	for list := (web.ApprovalList{}); len(list.Approvals) < 1; { // w.ctx bounds it
		w.want(http.StatusOK, &list, "all", "GET", "/v1/approvals", "")
	}
	if dir := os.Getenv("REFOLD_PICTURES"); dir != "" {
		picture(w, dir)
	}
	return w
}

// picture writes pictures of all pages, for people.
func picture(w *world, dir string) {
	for _, width := range []int64{1440, 768, 360} {
		p := browser.Open(w.t, browser.Size{Width: width, Height: 900})
		for name, path := range galleryPages {
			p.Do(chromedp.Navigate("about:blank"), chromedp.Navigate(w.url+path+"#token=all"))
			ready(p)
			for _, theme := range []string{"light", "dark"} {
				browser.Value[bool](p, `(document.documentElement.dataset.theme = "`+theme+`", true)`)
				if err := os.WriteFile(fmt.Sprintf("%s/%s-%d-%s.png", dir, name, width, theme), p.Screenshot(), 0o644); err != nil {
					w.t.Fatal(err)
				}
			}
		}
	}
}
