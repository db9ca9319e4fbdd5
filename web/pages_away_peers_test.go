//go:build peers

package web_test

// What: pages while something is away, or is much: NATS for a while, a bridge that dies in
// the middle of an answer, a hundred thousand sessions and events.
//
// How: a server in the test, which it stops, and a runtime beside the one that answers the
// pages, whose connection it closes. Sessions without end are notices that the test
// publishes; events without end are answers that it makes.

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/browser"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/inside"
	"github.com/refold/refold/refoldtest"
	"github.com/refold/refold/web"
)

// onNode returns a world on a server of the test.
func onNode(t testing.TB) (*world, *bustest.Node) {
	t.Helper()
	node := bustest.Server(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	t.Cleanup(carry(t, node))
	w := &world{t: t, ctx: ctx}
	w.rt, _ = w.beside(node)
	w.url = w.handler(web.Options{})
	return w, node
}

// beside returns another runtime on a server, and its connection.
func (w *world) beside(node *bustest.Node) (*refold.Runtime, *nats.Conn) {
	w.t.Helper()
	nc, err := nats.Connect(node.URL(), nats.MaxReconnects(-1), nats.ReconnectWait(100*time.Millisecond))
	bustest.OK(w.t, err)
	w.t.Cleanup(nc.Close)
	rt, err := refold.Open(w.ctx, refold.NATS(nc), refold.Grace(time.Second))
	bustest.OK(w.t, err)
	w.t.Cleanup(func() { _ = rt.Close() })
	return rt, nc
}

// UI-18: NATS is away: the pages say so, keep what they have, and go on by themselves.
func TestPagesWhileNATSIsAway(t *testing.T) {
	t.Parallel()
	w, node := onNode(t)
	_, err := w.rt.Agent("helper", refold.Model(refoldtest.Model(refoldtest.Say("I am here."), refoldtest.Say("I am here again."))))
	bustest.OK(t, err)
	w.want(http.StatusOK, nil, "all", "POST", "/v1/sessions/s/runs", `{"agent": "helper", "input": "Are you there?"}`, "Prefer", "wait=60")
	pages := []*browser.Page{w.open(desk, "all", "/s/s"), w.open(desk, "all", "/")}
	const held = `document.body.innerText.includes("I am here.")`
	for _, p := range pages {
		p.Eventually(held)
		browser.Value[bool](p, `(window.loadedOnce = true)`)
	}
	node.Stop()
	for _, p := range pages {
		p.Eventually(has(".offline", "does not reach the log") + ` && ` + held)
	}
	node.Start()
	for _, p := range pages {
		p.Eventually(`!document.querySelector(".offline")`)
	}
	w.want(http.StatusOK, nil, "all", "POST", "/v1/sessions/s/runs", `{"agent": "helper", "input": "And now?"}`, "Prefer", "wait=60")
	for _, p := range pages {
		p.Eventually(`window.loadedOnce && document.body.innerText.includes("I am here again.")`)
		p.TakeFault("/readyz: 503")
		p.IgnoreFaults(": 50") // of what was asked for meanwhile
	}
}

// UI-02: a text grows; its bridge dies in the middle; the text is void, comes once, and ends
// as the log has it.
func TestPageBridgeDiesInMidAnswer(t *testing.T) {
	t.Parallel()
	w, node := onNode(t)
	h := held{make(chan struct{})}
	model := refold.Model(refold.ModelRef{Provider: "held", Model: "held", Open: func() (executor.Model, error) { return h, nil }})
	_, err := w.rt.Agent("helper", model, refold.ServedElsewhere())
	bustest.OK(t, err)
	dies, nc := w.beside(node)
	_, err = dies.Agent("helper", model)
	bustest.OK(t, err)
	const ask = `{"agent": "helper", "input": "How is the weather?"}`
	w.want(http.StatusAccepted, nil, "all", "POST", "/v1/sessions/s/runs", ask)
	h.goOn <- struct{}{}
	p := w.open(desk, "all", "/s/s")
	p.Eventually(has(".rule", "Run 1 completed"))
	w.want(http.StatusAccepted, nil, "all", "POST", "/v1/sessions/s/runs", ask)
	p.Eventually(has("#streaming", "It is"))
	nc.Close()
	lives, _ := w.beside(node)
	_, err = lives.Agent("helper", model)
	bustest.OK(t, err)
	p.Eventually(has("#streaming", "It is"))
	close(h.goOn) // also of the turn that nobody reads any more
	p.Eventually(has(".rule", "Run 2 completed") + ` && !document.querySelector("#streaming")`)
	if said := browser.Value[[]string](p, `[...document.querySelectorAll(".turn.model .said")].map((e) => e.textContent)`); !slices.Equal(said, []string{"It is raining.", "It is raining."}) {
		t.Errorf("got the texts %q, want one of each run", said)
	}
	p.IgnoreFaults(": 50")
}

// UI-15: a hundred thousand sessions: the page draws a part, filters, and finds by name.
func TestPageManySessions(t *testing.T) {
	t.Parallel()
	w, node := onNode(t)
	const sessions = 100_000
	fillNotices(t, node, sessions)
	var asked []string
	handler := web.Handler(w.rt, web.Options{Auth: auth, Limits: web.Limits{PerSecond: 1_000_000}})
	url := newServer(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/v1/sessions/") {
			asked = append(asked, r.URL.Path)
		}
		handler.ServeHTTP(rw, r)
	}))
	p := browser.Open(t, desk)
	p.Do(chromedp.Navigate(url + "/#token=all"))
	ready(p)
	last := fmt.Sprintf("s%06d", sessions-1)
	p.Eventually(fmt.Sprintf(`document.querySelector('[data-refold-session="%s"]')`, last))
	if n := browser.Value[int](p, `document.querySelectorAll("*").length`); n > 3000 {
		t.Errorf("the page has %d nodes, at most 3000 are allowed", n)
	}
	press(p, ".more .btn")
	p.Eventually(`document.querySelectorAll("[data-refold-session]").length > 50`)
	p.Do(chromedp.Navigate("about:blank"), chromedp.Navigate(url+"/?name=s000007#token=all"))
	ready(p)
	p.Eventually(`document.querySelectorAll("[data-refold-session]").length === 1 && document.querySelector('[data-refold-session="s000007"]')`)
	p.Do(chromedp.Navigate("about:blank"), chromedp.Navigate(url+"/?state=running#token=all"))
	ready(p)
	p.Eventually(`document.querySelectorAll("[data-refold-session]").length > 20 && [...document.querySelectorAll("[data-refold-session] .state")].every((e) => e.textContent === "running")`)
	if len(asked) > 0 {
		t.Errorf("the list asked for single sessions: %q", asked)
	}
}

// fillNotices publishes the last notices of n sessions, of which every tenth runs.
func fillNotices(t testing.TB, node *bustest.Node, n int) {
	t.Helper()
	nc, err := nats.Connect(node.URL())
	bustest.OK(t, err)
	defer nc.Close()
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(4096), jetstream.WithPublishAsyncErrHandler(func(_ jetstream.JetStream, _ *nats.Msg, err error) { t.Error(err) }))
	bustest.OK(t, err)
	for i := range n {
		sid := fmt.Sprintf("s%06d", i)
		notice, summary := `"type":"RunFinished","data":{"run":1,"lifecycle":"completed","output":{"text":"done"}}`, `{"lifecycle":"completed","waits_for":"nobody","run":1,"provider":"p","model":"m","text":"done"}`
		if i%10 == 0 {
			notice, summary = `"type":"RunStarted","data":{"run":1,"seq":1,"provider":"p","model":"m"}`, `{"lifecycle":"running","waits_for":"model","run":1,"provider":"p","model":"m","text":"hi"}`
		}
		_, err := js.PublishAsync("refold.out."+sid, fmt.Appendf(nil, `{"v":1,"n":2,%s,"session":%q,"seq":1,"at":%d,"summary":%s}`, notice, sid, time.Now().UnixMilli(), summary), jetstream.WithStallWait(time.Minute))
		bustest.OK(t, err)
	}
	select {
	case <-js.PublishAsyncComplete():
	case <-time.After(time.Minute):
		t.Fatal("not all notices were stored")
	}
}

// UI-14: a hundred thousand events are listed and scrolled through with a bounded number of
// nodes; fifty openings of a session do not make the heap grow.
func TestPageManyEvents(t *testing.T) {
	t.Parallel()
	w := serve(t, web.Options{}, refold.Model(refoldtest.Model(refoldtest.Say("hello"))))
	w.want(http.StatusOK, nil, "all", "POST", "/v1/sessions/s/runs", `{"agent": "helper", "input": "hi"}`, "Prefer", "wait=60")
	var listed web.EventList
	w.want(http.StatusOK, &listed, "all", "GET", "/v1/sessions/s/events", "")
	first := listed.Events[0]
	handler := web.Handler(w.rt, web.Options{Auth: auth, Limits: web.Limits{PerSecond: 1_000_000}})
	total := 100_000
	url := newServer(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/sessions/s/events" {
			handler.ServeHTTP(rw, r)
			return
		}
		from, _ := strconv.Atoi(r.URL.Query().Get("from"))
		page := web.EventList{Total: total}
		for n := from; n < from+2000 && n <= total; n++ {
			e := first
			e.N, e.Seq, e.Type = n, first.Seq, "FactsSet"
			if n > 1 {
				e.Seq = first.Seq + uint64(n)
			}
			page.Events = append(page.Events, e)
		}
		if from+2000 <= total {
			page.Next = uint64(from + 2000)
		}
		_ = json.NewEncoder(rw).Encode(page)
	}))
	p := browser.Open(t, desk)
	p.Do(chromedp.Navigate(url + fmt.Sprintf("/s/s?tab=events&at=%d#token=all", first.Seq)))
	ready(p)
	p.Eventually(`document.querySelector(".vlist").getAttribute("aria-rowcount") === "100000"`)
	for i := range 10 {
		browser.Value[bool](p, fmt.Sprintf(`new Promise((done) => { const l = document.querySelector(".vlist"); l.scrollTop = l.scrollHeight * %d / 10; requestAnimationFrame(() => requestAnimationFrame(() => done(true))); })`, i))
		if n := browser.Value[int](p, `document.querySelectorAll("*").length`); n > 3000 {
			t.Fatalf("the page has %d nodes, at most 3000 are allowed", n)
		}
	}
	if rows := browser.Value[int](p, `document.querySelectorAll(".ev").length`); rows == 0 || rows > 60 {
		t.Errorf("%d rows are drawn, want those that are seen", rows)
	}
	// Each opening has 10,000 events; one that kept them would keep two megabytes.
	total = 10_000
	var heaps []float64
	for range 50 {
		browser.Value[bool](p, `(document.querySelector(".nav a").click(), true)`)
		p.Eventually(`document.querySelector('[data-refold-session="s"] .rowlink')`)
		press(p, `[data-refold-session="s"] .rowlink`)
		p.Eventually(`document.querySelector(".tabs, [role=tablist]") && /10\D000/.test(document.querySelector(".cursor .where").textContent)`)
		heaps = append(heaps, p.Heap())
	}
	t.Logf("heap in MB after openings 1, 10, 50: %.1f, %.1f, %.1f", heaps[0], heaps[9], heaps[49])
	if grown := heaps[49] - heaps[9]; grown > 10 || heaps[49] > 60 {
		t.Errorf("the heap is %v MB after each opening", heaps)
	}
}

// UI-19: what Verify says of a session that differs is what the client says, as does the
// CLI.
func TestPageVerifiesWithADifference(t *testing.T) {
	t.Parallel()
	w, node := onNode(t)
	_, err := w.rt.Agent("helper", refold.Model(refoldtest.Model(refoldtest.Say("I am here."), refoldtest.Say("Still."))))
	bustest.OK(t, err)
	for _, sid := range []string{"s", "other"} {
		w.want(http.StatusOK, nil, "all", "POST", "/v1/sessions/"+sid+"/runs", `{"agent": "helper", "input": "Are you there?"}`, "Prefer", "wait=60")
	}
	var list web.EventList
	w.want(http.StatusOK, &list, "all", "GET", "/v1/sessions/s/events", "")
	_, js := testbus.JS(t, node)
	log, err := js.Stream(w.ctx, "REFOLD_LOG")
	bustest.OK(t, err)
	bustest.OK(t, log.SecureDeleteMsg(w.ctx, list.Events[2].Seq))
	r, err := inside.Of(w.rt).Client().VerifySession(w.ctx, "s")
	bustest.OK(t, err)
	if r.Identical() {
		t.Fatal("a session without its third event is identical")
	}
	p := w.open(desk, "all", "/system")
	press(p, `[aria-label="Verify"] .btn.main`)
	p.Eventually(has("#verdict", "It differs.") + ` && ` + has("#verdict", "1 differ"))
	for _, d := range r.Differences {
		if !strings.Contains(p.Text(), d) {
			t.Errorf("the page lacks %q: %s", d, p.Text())
		}
	}
}

// UI-17: a stopped session is released with the keyboard alone.
func TestPageReleasesByKeyboard(t *testing.T) {
	t.Parallel()
	w := serve(t, web.Options{}, refold.Model(refoldtest.Model(refoldtest.Say("Well."), refoldtest.Say("Well."))))
	w.want(http.StatusOK, nil, "all", "POST", "/v1/sessions/s/runs", `{"agent": "helper", "input": "hi"}`, "Prefer", "wait=60")
	w.quarantine("s")
	p := w.open(desk, "all", "/")
	p.Do(chromedp.KeyEvent("g"), chromedp.KeyEvent("y"))
	p.Eventually(`document.querySelector("[data-refold-release]")`)
	enter(p, "[data-refold-release]")
	p.Eventually(`document.querySelector("dialog .foot .btn")`)
	enter(p, "dialog .foot .btn")
	p.Eventually(`!document.querySelector("dialog, [data-refold-release]")`)
	w.want(http.StatusOK, nil, "all", "POST", "/v1/sessions/s/runs", `{"agent": "helper", "input": "Again."}`, "Prefer", "wait=60")
}
