//go:build peers

package web_test

// What: how long pages take, what they need, and what they cost the system. The figures
// are no tests: docs/inspector.md has those of one machine.
//
//	go test -tags peers -run '^$' -bench 'Page|Inspect' -benchtime 20x -timeout 30m ./web

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/refold/refold"
	"github.com/refold/refold/actors/session/scenario"
	"github.com/refold/refold/internal/archive/archivetest"
	"github.com/refold/refold/internal/browser"
	"github.com/refold/refold/internal/inside"
	"github.com/refold/refold/refoldtest"
	"github.com/refold/refold/web"
)

// slower is how many times slower the processor of a page is made: a phone's.
const slower = 4

// measured reports the p-th part of values, as a metric.
func measured(b *testing.B, name string, p float64, values []float64) {
	b.Helper()
	if len(values) == 0 {
		b.Fatalf("%s: nothing was measured", name)
	}
	slices.Sort(values)
	b.ReportMetric(values[min(len(values)-1, int(p*float64(len(values))))], name)
}

// numbers returns the numbers that an expression of JavaScript has, as a list.
func numbers(b *testing.B, p *browser.Page, expression string) (all []float64) {
	b.Helper()
	text := browser.Value[string](p, `Promise.resolve(`+expression+`).then((all) => JSON.stringify(all))`)
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		b.Fatalf("got %s: %v", text, err)
	}
	return all
}

// opened opens a page anew, and returns its first contentful paint and, once a condition
// holds, the time since it was asked for, both in milliseconds.
func opened(b *testing.B, p *browser.Page, url, condition string) (paint, usable float64) {
	b.Helper()
	p.Do(chromedp.Navigate("about:blank"), chromedp.Navigate(url))
	all := numbers(b, p, fmt.Sprintf(`(async () => {
		while (!(%s)) await new Promise(requestAnimationFrame);
		const usable = performance.now();
		let paint;
		while (!(paint = performance.getEntriesByName("first-contentful-paint")[0])) await new Promise(requestAnimationFrame);
		return [paint.startTime, usable];
	})()`, condition))
	return all[0], all[1]
}

// The list of sessions, with 50 and with 100,000 of them.
func BenchmarkPageSessions(b *testing.B) {
	for _, sessions := range []int{50, 100_000} {
		b.Run(fmt.Sprint(sessions), func(b *testing.B) {
			w, node := onNode(b)
			fillNotices(b, node, sessions)
			last := fmt.Sprintf(`document.querySelector('[data-refold-session="s%06d"]')`, sessions-1)
			p := browser.Open(b, desk)
			opened(b, p, w.url+"/#token=all", last) // the server has read all notices
			p.SlowCPU(slower)
			var paints, rows []float64
			for b.Loop() {
				paint, usable := opened(b, p, w.url+"/#token=all", last)
				paints, rows = append(paints, paint), append(rows, usable)
			}
			measured(b, "first-paint-ms", 0.5, paints)
			measured(b, "rows-ms", 0.5, rows)
		})
	}
}

// A session of 10,000 events: until it can be used, frames while all of them are scrolled
// through, steps of the cursor, and what the page holds then.
func BenchmarkPageSession(b *testing.B) {
	p := browser.Open(b, desk)
	url := serveHistory(b, busy(b, 2500)) + "?tab=events#token=all"
	var usable, frames, steps []float64
	for b.Loop() {
		_, ms := opened(b, p, url, `/10\D000/.test(document.querySelector(".cursor .where")?.textContent) && document.querySelector(".ev") && document.querySelector(".said")`)
		usable = append(usable, ms)
	}
	frames = numbers(b, p, `(async () => {
		const list = document.querySelector(".vlist"), all = [];
		let before = performance.now();
		for (let at = 0; at < list.scrollHeight; at += 800) {
			list.scrollTop = at;
			const now = await new Promise(requestAnimationFrame);
			all.push(now - before);
			before = now;
		}
		return all;
	})()`)
	b.ReportMetric(browser.Value[float64](p, `document.querySelectorAll("*").length`), "nodes")
	b.ReportMetric(p.Heap(), "heap-MB")
	steps = numbers(b, p, `(async () => {
		document.querySelector('[role=tab][id$="-state"]').click();
		while (!document.querySelector(".tree")) await new Promise(requestAnimationFrame);
		const all = [], back = document.querySelector('[aria-label="Previous event"]'), words = () => document.querySelector('[role=tabpanel] .label')?.textContent;
		for (let i = 0; i < 100; i++) {
			const was = words(), begun = performance.now();
			back.click();
			while (words() === was) await new Promise(requestAnimationFrame);
			all.push(performance.now() - begun);
		}
		return all;
	})()`)
	measured(b, "usable-ms", 0.5, usable)
	measured(b, "frame-p95-ms", 0.95, frames)
	measured(b, "step-p95-ms", 0.95, steps)
}

// busy returns a history of runs of two turns with a call between, which are four events
// each. Times are as irregular as those of models and tools.
func busy(t testing.TB, runs int) scenario.History {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	passes := func(ms int) string { return fmt.Sprintf("clock +%dms", ms/2+random.IntN(ms)) }
	steps := []string{`install {"v":1,"rules":1,"config":{"provider":"openai","model":"m1"},"tools":[{"tool_id":"shop.look","tool_name":"look","args_schema":{"type":"object"},"executor":{"kind":"effect","target":"shop"}}]}`}
	for run := range runs {
		at := fmt.Sprintf("r%dt1", run+1)
		steps = append(steps, `run "look"`, passes(1000), "settle "+at+" calls look{}", passes(300), "settle "+at+`c0 ok "seen"`, passes(1000), fmt.Sprintf(`settle r%dt2 text "I saw it."`, run+1), passes(60_000))
	}
	file, err := scenario.Parse(strings.Join(steps, "\n----\n\n") + "\n----\n")
	if err != nil {
		t.Fatal(err)
	}
	all, err := file.Play()
	if err != nil {
		t.Fatal(err)
	}
	return all[0]
}

// What the server takes for a session of 10,000 events, and the memory of this process, in
// which the NATS server and the session-actor run as well.
func BenchmarkInspectServer(b *testing.B) {
	h := busy(b, 2500)
	url, sid, _ := strings.Cut(serveHistory(b, h), "/s/")
	w := &world{t: b, ctx: b.Context(), url: url}
	var states, lines []float64
	size := 0
	for b.Loop() {
		for range 50 {
			begun := time.Now()
			w.want(http.StatusOK, nil, "all", "GET", fmt.Sprintf("/v1/sessions/%s/state?at=%d", sid, h.Events[rand.IntN(len(h.Events))].Seq), "")
			states = append(states, ms(begun))
		}
		begun := time.Now()
		size = w.packed("/v1/sessions/" + sid + "/timeline")
		lines = append(lines, ms(begun))
	}
	measured(b, "state-p99-ms", 0.99, states)
	measured(b, "timeline-ms", 0.5, lines)
	b.ReportMetric(float64(size)/1000, "timeline-gzip-kB")
	b.ReportMetric(float64(len(h.Events)), "events")
}

// packed returns the bytes of an answer with gzip.
func (w *world) packed(path string) int {
	w.t.Helper()
	got, err := http.DefaultClient.Do(w.request("all", "GET", path, ""))
	if err != nil {
		w.t.Fatal(err)
	}
	defer got.Body.Close()
	var all bytes.Buffer
	z := gzip.NewWriter(&all)
	if _, err := io.Copy(z, got.Body); err != nil {
		w.t.Fatal(err)
	}
	if err := z.Close(); err != nil || got.StatusCode != http.StatusOK {
		w.t.Fatalf("GET %s: got %d (%v)", path, got.StatusCode, err)
	}
	return all.Len()
}

func ms(begun time.Time) float64 { return float64(time.Since(begun).Microseconds()) / 1000 }

// heap returns the megabytes of this process that are in use.
func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapInuse+m.StackInuse) / 1e6
}

// The memory that 100,000 sessions in the list, and 16 that are open, add to a server.
func BenchmarkInspectMemory(b *testing.B) {
	for b.Loop() {
		w, node := onNode(b)
		idle := heap()
		fillNotices(b, node, 100_000)
		stored := heap()
		p := browser.Open(b, desk)
		opened(b, p, w.url+"/#token=all", `document.querySelector('[data-refold-session="s099999"]')`)
		listed := heap()
		b.ReportMetric(idle, "idle-MB")
		b.ReportMetric(listed-stored, "list-MB")
	}
	const open = 16
	path := archivetest.Write(b, busy(b, 2500))
	var urls [open]string
	for i := range urls {
		urls[i] = serveArchive(b, path)
	}
	before := heap()
	for i, url := range urls {
		url, sid, _ := strings.Cut(url, "/s/")
		w := &world{t: b, ctx: b.Context(), url: url}
		w.want(http.StatusOK, nil, "all", "GET", "/v1/sessions/"+sid+"/timeline", "")
		if i == 0 {
			b.ReportMetric(heap()-before, "open-session-MB")
		}
	}
	b.ReportMetric(heap()-before, "open-sessions-MB")
}

// From the answer that an event is stored to its row on the screen.
func BenchmarkPageEvent(b *testing.B) {
	w := serve(b, web.Options{}, refold.Model(refoldtest.Model(refoldtest.Say("hello"))))
	w.ctx = b.Context()
	w.want(http.StatusOK, nil, "all", "POST", "/v1/sessions/s/runs", `{"agent": "helper", "input": "hi"}`, "Prefer", "wait=60")
	p := w.open(desk, "all", "/s/s?tab=events")
	p.Eventually(`document.querySelector(".ev")`)
	browser.Value[bool](p, `(() => {
		window.rowAt = {};
		new MutationObserver(() => document.querySelectorAll(".ev > .num:first-child").forEach((e) => { window.rowAt[e.textContent] ??= Date.now(); })).observe(document.body, { subtree: true, childList: true, characterData: true });
		return true;
	})()`)
	c := inside.Of(w.rt).Client()
	stored := map[uint64]time.Time{}
	for b.Loop() {
		for i := range 10 {
			value := fmt.Sprint(len(stored), i)
			seq, err := c.SetFacts(w.ctx, "s", map[string]*string{"n": &value}, "")
			if err != nil {
				b.Fatal(err)
			}
			stored[seq] = time.Now()
			p.Eventually(fmt.Sprintf(`window.rowAt[%d]`, seq))
		}
	}
	var took []float64
	for seq, at := range stored {
		took = append(took, max(0, browser.Value[float64](p, fmt.Sprintf(`window.rowAt[%d]`, seq))-float64(at.UnixMicro())/1000))
	}
	measured(b, "row-p50-ms", 0.5, slices.Clone(took))
	measured(b, "row-p99-ms", 0.99, took)
}

// Runs a second without a follower, with one that reads the stream of all sessions as a
// page does, and with a page in Chromium, which takes the same processors, in turns.
func BenchmarkInspectFollowed(b *testing.B) {
	turns := make([]refoldtest.Turn, 1000)
	for i := range turns {
		turns[i] = refoldtest.Say("An answer of some words, which is neither long nor short.")
	}
	w := serve(b, web.Options{}, refold.Model(refoldtest.Model(turns...)))
	w.ctx = b.Context()
	p := browser.Open(b, desk)
	var next atomic.Int64
	round := func() float64 {
		begun := time.Now()
		var running sync.WaitGroup
		for range 16 {
			running.Go(func() {
				for range 20 {
					w.want(http.StatusOK, nil, "all", "POST", fmt.Sprintf("/v1/sessions/f%d/runs", next.Add(1)%200), `{"agent": "helper", "input": "hi"}`, "Prefer", "wait=60")
				}
			})
		}
		running.Wait()
		return 16 * 20 / time.Since(begun).Seconds()
	}
	round()
	var alone, streamed, shown []float64
	for b.Loop() {
		p.Do(chromedp.Navigate("about:blank"))
		alone = append(alone, round())
		live, err := http.DefaultClient.Do(w.request("all", "GET", "/v1/live", ""))
		if err != nil {
			b.Fatal(err)
		}
		var reading sync.WaitGroup
		reading.Go(func() { _, _ = io.Copy(io.Discard, live.Body) })
		streamed = append(streamed, round())
		live.Body.Close()
		reading.Wait()
		p.Do(chromedp.Navigate(w.url + "/#token=all"))
		ready(p)
		shown = append(shown, round())
	}
	measured(b, "runs/s-alone", 0.5, alone)
	measured(b, "runs/s-streamed", 0.5, streamed)
	measured(b, "runs/s-shown", 0.5, shown)
}
