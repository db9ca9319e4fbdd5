//go:build peers

package main

// FD-04: the page, with HttpAgent of @ag-ui/client, in Chromium. npm run build has made it.

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/refold/refold"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/browser"
	"github.com/refold/refold/refoldtest"
)

var rewrite = flag.Bool("rewrite", false, "write screenshot.png; then look at it")

// desktop is the page of a server, in a browser.
type desktop struct {
	*browser.Page
	t  *testing.T
	rt *refold.Runtime

	mu   sync.Mutex
	sent []sent
}

// sent is a request of the page.
type sent struct {
	ThreadID, RunID string
	Resume          []struct{ InterruptID string }
}

// open serves the page with a model, and opens it.
func open(t *testing.T, model refold.ModelRef) *desktop {
	t.Helper()
	if _, err := os.Stat("dist/page.js"); err != nil {
		t.Fatalf("%v: make check-web builds the page", err)
	}
	d := &desktop{t: t, rt: refoldtest.Open(t)}
	pages, err := handler(d.rt, model)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/v1/ag-ui/") {
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			var it sent
			_ = json.Unmarshal(body, &it)
			d.mu.Lock()
			d.sent = append(d.sent, it)
			d.mu.Unlock()
		}
		pages.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	d.Page = browser.Open(t, browser.Wide)
	d.Do(chromedp.Navigate(s.URL))
	d.idle()
	return d
}

// idle waits until the page shows the end of an answer.
func (d *desktop) idle() {
	d.t.Helper()
	d.Eventually(`document.documentElement.dataset.busy === "false"`)
}

// shows waits until a part of the page has a text.
func (d *desktop) shows(selector, text string) {
	d.t.Helper()
	d.Eventually(fmt.Sprintf(`[...document.querySelectorAll(%q)].some((e) => e.innerText.includes(%q))`, selector, text))
}

// texts returns the texts of parts of the page, each on a line.
func (d *desktop) texts(selector string) string {
	d.t.Helper()
	return browser.Value[string](d.Page, fmt.Sprintf(`[...document.querySelectorAll(%q)].map((e) => e.innerText).join("\n")`, selector))
}

// say writes a message and sends it.
func (d *desktop) say(text string) {
	d.t.Helper()
	d.Do(chromedp.SendKeys("#text", text), chromedp.Click("#send"))
}

// last returns the page's latest request.
func (d *desktop) last() sent {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.sent[len(d.sent)-1]
}

// The model calls the page's own tool.
func TestPeersChatPageTool(t *testing.T) {
	t.Parallel()
	d := open(t, demo(time.Millisecond))
	d.say("What time is it?")
	d.Eventually(`/It is \d\d:\d\d:\d\d where you are/.test(document.body.innerText)`)
	d.idle()
	if got := d.texts("#status"); got != "" {
		t.Errorf("the status is %q", got)
	}
}

// A tool is called, and a call that waits for a person is approved in the
// page.
func TestPeersChatApproval(t *testing.T) {
	t.Parallel()
	d := open(t, demo(10*time.Millisecond))
	d.shows("h2", "Where to?")
	d.Do(chromedp.Click("#suggestions button"))
	d.shows(".assistant", "Let me see")
	d.shows(`.call[data-state="succeeded"]`, "rain until noon")
	d.shows(".assistant", "Shall I book two tickets for 14:00?")
	d.idle()
	d.say("Yes, book two.")
	d.shows(`.call[data-state="waits"]`, "Fløibanen funicular")
	d.shows("#status", "waits for your decision")
	d.Matches("screenshot.png", *rewrite)
	d.Do(chromedp.Click(".decide .main"))
	d.shows(`.call[data-state="succeeded"]`, "Number 4711")
	d.shows(".assistant", "Have a good day in Bergen!")
	d.idle()
	if resume := d.last().Resume; len(resume) != 1 || !strings.HasPrefix(resume[0].InterruptID, "r2t1c0.") {
		t.Errorf("the page sent the answers %+v", resume)
	}
	before := d.texts("#messages > *")
	if strings.Count(before, "I will book that.") != 1 || strings.Count(before, "Yes, book two.") != 1 {
		t.Errorf("got\n%s", before)
	}
	d.Do(chromedp.Reload()) // the history is the log's
	d.shows(".assistant", "Have a good day in Bergen!")
	d.idle()
	if after := d.texts("#messages > *"); after != before {
		t.Errorf("after a reload: got\n%s\nwant\n%s", after, before)
	}
}

// A decision that comes too late says so, and a page that was reloaded is told what waits.
func TestPeersChatDecidedElsewhere(t *testing.T) {
	t.Parallel()
	d := open(t, demo(time.Millisecond))
	d.say("Book, please.")
	d.shows(`.call[data-state="waits"]`, "tickets")
	d.Do(chromedp.Reload())
	d.shows(`.call[data-state="waits"]`, "tickets")
	session := d.rt.Session(d.last().ThreadID)
	waiting, err := session.Approvals(t.Context())
	if err != nil || len(waiting) != 1 {
		t.Fatalf("got %+v (%v), want one call that waits", waiting, err)
	}
	if err := session.Deny(t.Context(), waiting[0], refold.Because("There are none left.")); err != nil {
		t.Fatal(err)
	}
	d.Do(chromedp.Click(".decide .main"))
	d.TakeFault("/v1/ag-ui/helper: 409")
	d.TakeFault("Agent execution failed")
	d.shows(`.call[data-state="denied"]`, "There are none left.")
	d.shows("#status.error", "does not wait")
	d.shows(".assistant", "Then I have booked nothing.")
}

// typist is a model that writes what it is told to. An attempt of a turn ends with ".",
// and fails with "!".
type typist struct {
	types chan string
	left  chan struct{} // receives when an attempt was cancelled
}

func (m typist) ref() refold.ModelRef {
	return refold.ModelRef{Provider: "typist", Model: "typist", Open: func() (executor.Model, error) { return m, nil }}
}

// Generate implements executor.Model.
func (m typist) Generate(ctx context.Context, _ executor.Request, delta func(string)) (executor.Answer, error) {
	all := ""
	for {
		select {
		case word := <-m.types:
			if word == "!" {
				return executor.Answer{}, &executor.Error{Code: "broke_off", Detail: "the connection broke", Retryable: true}
			}
			delta(word)
			if all += word; strings.HasSuffix(word, ".") {
				return executor.Answer{Text: all}, nil
			}
		case <-ctx.Done():
			m.left <- struct{}{}
			return executor.Answer{}, ctx.Err()
		}
	}
}

// Text streams. A page that is reloaded in an answer sends its request again, and gets the whole answer
// once. Stopping disconnects, and cancels the run. A turn that begins again is shown once.
func TestPeersChatReloadStopAndAgain(t *testing.T) {
	t.Parallel()
	m := typist{make(chan string), make(chan struct{}, 1)}
	d := open(t, m.ref())
	d.say("Hello?")
	m.types <- "Good "
	d.shows(".assistant", "Good") // the answer has not ended
	first := d.last()
	d.Do(chromedp.Reload())
	d.shows(".user", "Hello?")
	m.types <- "day."
	d.shows(".assistant", "Good day.")
	d.idle()
	if again := d.last(); again.RunID != first.RunID || again.ThreadID != first.ThreadID {
		t.Errorf("after the reload: got the request %+v, want %+v", again, first)
	}
	if got, want := d.texts("#messages > *"), "Hello?\nGood day."; got != want {
		t.Errorf("after the reload: got\n%s\nwant\n%s", got, want)
	}

	d.say("And now?")
	m.types <- "Now "
	d.shows(".assistant", "Now")
	d.Do(chromedp.Click("#stop"))
	d.idle()
	if _, err := d.rt.Session(first.ThreadID).Run(2).Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "cancelled") {
		t.Errorf("run 2: got %v, want that it was cancelled", err)
	}
	if got, want := d.texts("#messages > *"), "Hello?\nGood day.\nAnd now?"; got != want {
		t.Errorf("after stopping: got\n%s\nwant\n%s", got, want)
	}

	<-m.left
	d.say("Again?")
	m.types <- "Bad "
	d.shows(".assistant", "Bad")
	m.types <- "!"
	m.types <- "Better."
	d.shows(".assistant", "Better.")
	d.idle()
	if got, want := d.texts("#messages > *"), "Hello?\nGood day.\nAnd now?\nAgain?\nBetter."; got != want {
		t.Errorf("after a turn that began again: got\n%s\nwant\n%s", got, want)
	}
}

// A picture and a document are parts of a message, which the model is shown.
func TestPeersChatFiles(t *testing.T) {
	t.Parallel()
	d := open(t, demo(time.Millisecond))
	dir := t.TempDir()
	notes, picture := filepath.Join(dir, "notes.txt"), filepath.Join(dir, "page.png")
	for name, content := range map[string][]byte{notes: []byte("A window seat."), picture: d.Screenshot()} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d.Do(chromedp.SetUploadFiles("#attach", []string{notes, picture}))
	d.shows("#files", "notes.txt")
	d.say("For my trip.")
	d.shows(".assistant", "I have it: 1 in pictures")
	d.idle()
	d.Eventually(`document.querySelector(".user img").naturalWidth > 0`)
	d.Do(chromedp.Reload())
	d.shows(".user", "notes.txt")
	d.shows(".user", "page.png")
	d.shows(".user", "For my trip.")
	input, err := d.rt.Session(d.last().ThreadID).Transcript(t.Context())
	if err != nil || !strings.Contains(input.Markdown(), "A window seat.") {
		t.Errorf("the log has no notes (%v)", err)
	}
}

// The command of README.md: the whole program, but for npm.
func TestPeersChatProgram(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	said, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{"-listen", "127.0.0.1:0", "-dir", t.TempDir()}, out)
		_ = out.Close()
	}()
	line := make([]byte, 200)
	n, err := said.Read(line)
	at := regexp.MustCompile(`http://\S+`).FindString(string(line[:n]))
	if err != nil || at == "" {
		t.Fatalf("the program said %q (%v)", line[:n], err)
	}
	for path, want := range map[string]string{"/": "Bergen travel desk", "/style.css": ":root", "/page.js": "/v1/ag-ui/helper", "/openapi.json": "404"} {
		answer, err := http.Get(at + path) //nolint:noctx // the test has a deadline
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || !strings.Contains(string(body), want) {
			t.Errorf("%s: got %d bytes without %q (%v)", path, len(body), want, err)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("the program ended with %v", err)
	}
}
