//go:build peers

package web_test

// What: pages prove sessions in Chromium: the program of cmd/prove folds the same events to
// the same hashes as the server, and what is altered in transit is found at its event.
//
// How: the program is built for the test. A handler in front of the server's alters a byte
// of an answer, or answers for sessions that no server played: the scenarios of the fold.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/refold/refold"
	"github.com/refold/refold/internal/browser"
	"github.com/refold/refold/internal/inside"
	"github.com/refold/refold/internal/prove"
	"github.com/refold/refold/internal/prove/provetest"
	"github.com/refold/refold/refoldtest"
	"github.com/refold/refold/web"
)

// buildProgram builds the program once.
var buildProgram = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "refold-prove-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "prove.wasm")
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X main.commit=0123456789ab", "-o", file, "../cmd/prove")
	build.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	return os.ReadFile(file)
})

func program(t testing.TB) []byte {
	t.Helper()
	file, err := buildProgram()
	if err != nil {
		t.Fatalf("build cmd/prove: %v", err)
	}
	return file
}

// front answers some requests itself.
func (w *world) front(answers func(http.ResponseWriter, *http.Request, http.Handler) bool) string {
	server := web.Handler(w.rt, web.Options{Auth: auth, Program: program(w.t), Limits: web.Limits{PerSecond: 1_000_000}})
	return newServer(w.t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if !answers(rw, r, server) {
			server.ServeHTTP(rw, r)
		}
	}))
}

// proven presses Prove, and returns what the panel says.
func proven(p *browser.Page) string {
	press(p, "[data-refold-prove]")
	p.Eventually(`document.querySelector("[data-refold-proof], #proof [role=alert]")`)
	return browser.Value[string](p, `document.querySelector("#proof").innerText`)
}

// UI-05: a session is equal, and the panel says what was compared and by which program; its
// snapshot and its effects are among it.
func TestPageProves(t *testing.T) {
	t.Parallel()
	w := bought(t)
	w.url = w.handler(web.Options{Program: program(t)})
	p := w.open(desk, "acme", "/s/s")
	text := proven(p)
	events, hashes := w.states()
	for _, want := range []string{"Equal.", fmt.Sprintf("%d of %d, each in the chain", len(events), len(events)), hashes[len(hashes)-1][:8], "stored with the bytes", "commit 0123456789ab, go1."} {
		if !strings.Contains(text, want) {
			t.Errorf("the panel lacks %q: %s", want, text)
		}
	}
	if strings.Contains(text, "\n0 stored with") {
		t.Errorf("no effect was compared: %s", text)
	}
	// The worker's answer alone may compile; the page and the other assets may not.
	compile := `WebAssembly.compile(Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0)).then(() => true, () => false)`
	if browser.Value[bool](p, compile) {
		t.Error("the page may compile WebAssembly")
	}
	at := browser.Value[string](p, `document.querySelector("script[type=module]").src.replace("app.js", "")`)
	for file, may := range map[string]bool{"worker.js": true, "app.js": false, "prove_worker.js": false} {
		if got := w.do("", "GET", at+file, "").header.Get("Content-Security-Policy"); strings.Contains(got, "wasm-unsafe-eval") != may || may && strings.Contains(got, "connect-src") {
			t.Errorf("%s has the policy %q", file, got)
		}
	}
}

// UI-05: one byte of an event is altered in transit: the page names that event, and opens
// it at the cursor.
func TestPageNamesTheAlteredEvent(t *testing.T) {
	t.Parallel()
	w := bought(t)
	events, _ := w.states()
	target := events[len(events)/2]
	url := w.front(func(rw http.ResponseWriter, r *http.Request, server http.Handler) bool {
		if !strings.HasSuffix(r.URL.Path, "/log") {
			return false
		}
		got := httptest.NewRecorder()
		server.ServeHTTP(got, r)
		page := got.Body.Bytes()
		at := bytes.Index(page, target.Payload)
		if at < 0 {
			t.Error("the page lacks the event")
			return false
		}
		page[at+len(target.Payload)/2] ^= 1
		_, _ = rw.Write(page)
		return true
	})
	p := browser.Open(t, desk)
	p.Do(chromedp.Navigate(url + "/s/s#token=acme"))
	ready(p)
	text := proven(p)
	if want := fmt.Sprintf("event number %d is not the one", len(events)/2+1); !strings.Contains(text, want) {
		t.Errorf("the panel lacks %q: %s", want, text)
	}
	p.Eventually(fmt.Sprintf(`location.search.includes("at=%d") && location.search.includes("tab=events") && %s`, target.Seq, has(".opened h2", fmt.Sprintf("at %d", target.Seq))))
	if !browser.Value[bool](p, fmt.Sprintf(`document.querySelector('[data-refold-difference="%d"]') !== null`, target.Seq)) {
		t.Errorf("the difference is not about event %d: %s", target.Seq, text)
	}
}

// played answers for sessions whose histories are those of the scenarios.
func played(said map[string]*provetest.Told) func(http.ResponseWriter, *http.Request, http.Handler) bool {
	return func(rw http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		rest, _ := strings.CutPrefix(r.URL.Path, "/v1/sessions/")
		sid, what, _ := strings.Cut(rest, "/")
		told := said[sid]
		if told == nil {
			return false
		}
		switch what {
		case "proof":
			text, err := json.Marshal(told.Claims)
			if err != nil {
				return false
			}
			_, _ = rw.Write(text)
		case "install":
			_, _ = rw.Write(told.Install)
		case "log":
			_, _ = rw.Write(told.Pages[0])
		}
		return true
	}
}

// UI-05: the histories of all scenarios are equal in the browser, state by state, effect by
// effect.
func TestPageProvesAllScenarios(t *testing.T) {
	t.Parallel()
	said := map[string]*provetest.Told{}
	var names []string
	for file, all := range provetest.Histories(t, "../actors/session/testdata/scenarios/*.txt") {
		for i, h := range all {
			name := fmt.Sprintf("%s-%d", strings.TrimSuffix(filepath.Base(file), ".txt"), i)
			names, said[name] = append(names, name), provetest.Tell(t, h, 1_000_000)
		}
	}
	slices.Sort(names)
	w := serve(t, web.Options{}, refold.Model(refoldtest.Model(refoldtest.Say("hello"))))
	p := browser.Open(t, desk)
	p.Do(chromedp.Navigate(w.front(played(said)) + "/#token=all"))
	ready(p)
	for part := range slices.Chunk(names, 40) { // an evaluation takes at most a minute
		list, err := json.Marshal(part)
		if err != nil {
			t.Fatal(err)
		}
		text := browser.Value[string](p, `import(document.querySelector("script[type=module]").src.replace("app.js", "prove.js")).then(async ({ prove }) => {
			const all = {};
			for (const sid of `+string(list)+`) all[sid] = await prove(sid).then((r) => r.report, (e) => ({ differences: [{ text: e.message }] }));
			return JSON.stringify(all);
		})`)
		var reports map[string]*prove.Report
		if err := json.Unmarshal([]byte(text), &reports); err != nil || len(reports) != len(part) {
			t.Fatalf("got %s (%v)", text, err)
		}
		for sid, r := range reports {
			want := &said[sid].Claims
			if len(r.Differences) > 0 || r.Events != want.Events || r.States != want.Events || r.Hash != want.Hash.String() || r.Chain != want.Chain.String() || r.EffectsSame != len(want.Effects) {
				t.Errorf("%s: got %+v, want all %d events and %d effects to be equal", sid, r, want.Events, len(want.Effects))
			}
		}
	}
}

// long returns a world with a session of more than 10,000 events.
func long(t testing.TB) (w *world, events int) {
	t.Helper()
	w = serve(t, web.Options{Program: program(t)}, refold.Model(refoldtest.Model(refoldtest.Say("hello"))))
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
	var list web.EventList
	w.want(http.StatusOK, &list, "all", "GET", "/v1/sessions/s/events?limit=1", "")
	return w, list.Total
}

// UI-05: 10,000 events, in several pages.
func TestPageProvesTenThousandEvents(t *testing.T) {
	t.Parallel()
	w, events := long(t)
	p := w.open(desk, "all", "/s/s")
	p.Eventually(`document.querySelector("[data-refold-prove]")`)
	text := strings.ReplaceAll(proven(p), "\u202f", "")
	if events < 10_000 || !strings.Contains(text, "Equal.") || !strings.Contains(text, fmt.Sprintf("%d of %d, each", events, events)) || !strings.Contains(text, fmt.Sprintf("%d hashes are the same", (events-1)/web.CheckpointEach+2)) {
		t.Errorf("%d events: %s", events, text)
	}
}

// A server without the program says how to get one, and verifies in its place.
func TestPageWithoutProgram(t *testing.T) {
	t.Parallel()
	w := bought(t)
	url := w.handler(web.Options{Program: []byte{}})
	p := browser.Open(t, phone)
	p.Do(chromedp.Navigate(url + "/s/s#token=acme"))
	ready(p)
	press(p, "[data-refold-prove]")
	p.Eventually(has("#proof", "make wasm") + ` && ` + has("#proof", "--wasm FILE"))
	press(p, "#proof .card-body .btn")
	p.Eventually(has("#proof", "Equal. The server folded"))
}

// BenchmarkProve measures what a person waits for: from the press of the button to the
// panel's last word, for 10,000 events, with the program started anew each time.
//
//	go test -tags peers -run '^$' -bench Prove -benchtime 5x ./web
func BenchmarkProve(b *testing.B) {
	w, events := long(b)
	p := w.open(desk, "all", "/s/s")
	for b.Loop() {
		p.Do(chromedp.Navigate("about:blank"), chromedp.Navigate(w.url+"/s/s#token=all"))
		ready(p)
		if text := proven(p); !strings.Contains(text, "Equal.") {
			b.Fatal(text)
		}
		b.Logf("%d events: %s", events, browser.Value[string](p, `[...document.querySelectorAll("#proof dd")].at(-1).innerText`))
	}
}
