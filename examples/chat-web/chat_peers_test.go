//go:build peers

package main

// FD-03: the page of the example, with versions 7 and 6 of the AI SDK, in Chromium. make
// check-web builds it.

import (
	"context"
	"flag"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/refold/refold"
	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/browser"
	"github.com/refold/refold/refoldtest"
)

var rewrite = flag.Bool("rewrite", false, "write the pictures of the page; then look at them")

// versions are the folders of the page, by version of package ai.
var versions = map[string]string{"7": "dist", "6": "six/dist"}

// site is a server with the page.
type site struct {
	*browser.Page
	t      *testing.T
	rt     *refold.Runtime
	server *httptest.Server
}

// open serves the page of a version, and opens it in a new session.
func open(t *testing.T, version, id string, model refold.ModelRef, size browser.Size) *site {
	t.Helper()
	if _, err := os.Stat(filepath.Join(versions[version], "main.js")); err != nil {
		t.Fatalf("%v: make check-web builds the page", err)
	}
	rt := refoldtest.Open(t)
	handler, err := serve(rt, model, versions[version])
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	s := &site{browser.Open(t, size), t, rt, server}
	s.Do(chromedp.Navigate(server.URL+"/#"+id), chromedp.WaitVisible(chromedp.CSS("form")))
	return s
}

// each runs a test for each version.
func each(t *testing.T, test func(t *testing.T, version string)) {
	for version := range versions {
		t.Run("version "+version, func(t *testing.T) {
			t.Parallel()
			test(t, version)
		})
	}
}

func (s *site) click(selector string) { s.Do(chromedp.Click(chromedp.CSS(selector))) }

func (s *site) send(text string) {
	s.t.Helper()
	s.Do(chromedp.SendKeys(chromedp.CSS("input[name=text]"), text))
	s.click(".send")
}

// says waits until the page has a text, as a person sees it.
func (s *site) says(text string) {
	s.t.Helper()
	s.Eventually("document.body.innerText.includes(" + quote(text) + ")")
}

func (s *site) status(is string) {
	s.t.Helper()
	s.Eventually("document.querySelector('.status').dataset.status == " + quote(is))
}

func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", "\\'") + "'" }

// conversation returns the text of the messages.
func (s *site) conversation() string {
	s.t.Helper()
	return browser.Value[string](s.Page, "document.querySelector('main').innerText")
}

func (s *site) reload() {
	s.t.Helper()
	s.Do(chromedp.Reload(), chromedp.WaitVisible(chromedp.CSS("form")))
}

// Text streams, a tool runs, a person decides in the page, and a reload shows the same.
func TestPeersTripIsBooked(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, version string) {
		s := open(t, version, "trip", desk(), browser.Wide)
		s.click(".empty button")
		s.says("Shall I book it?")
		s.Do(chromedp.WaitVisible(chromedp.CSS(".approve")))
		s.status("ready")
		s.Matches("screenshot.png", *rewrite && version == "7")
		asked := s.conversation()
		s.reload()
		s.Do(chromedp.WaitVisible(chromedp.CSS(".approve")))
		if got := s.conversation(); got != asked {
			t.Errorf("after a reload the page says\n%s\nbefore\n%s", got, asked)
		}
		s.click(".approve")
		s.says("Have a good trip!")
		s.says("NO-4711")
		s.status("ready")
		booked := s.conversation()
		s.reload()
		s.says("Have a good trip!")
		if got := s.conversation(); got != booked {
			t.Errorf("after a reload the page says\n%s\nbefore\n%s", got, booked)
		}
		s.send("Book me a trip to Stavanger")
		s.Do(chromedp.WaitVisible(chromedp.CSS(".deny")))
		s.status("ready")
		s.click(".deny")
		s.says("I have booked nothing.")
		s.Eventually("document.querySelector('[data-state=output-denied]')")

		// Somebody else decides first: the page shows what they decided.
		s.send("Book me a trip to Trondheim")
		s.Do(chromedp.WaitVisible(chromedp.CSS(".approve")))
		s.status("ready")
		s.deny("trip")
		s.click(".approve")
		s.TakeFault("409")
		s.Eventually("document.querySelectorAll('[data-state=output-denied]').length == 2")
		s.Eventually("document.body.innerText.split('I have booked nothing.').length == 3")
		s.status("ready")
	})
}

// deny denies the call of a session that waits, as another program does.
func (s *site) deny(id string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	waiting, err := s.rt.Session(id).Approvals(ctx)
	for err == nil && len(waiting) == 0 { // the view follows the log; ctx bounds it
		waiting, err = s.rt.Session(id).Approvals(ctx)
	}
	if err == nil {
		err = s.rt.Session(id).Deny(ctx, waiting[0])
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// A file of the page is shown to the model, and is there after a reload.
func TestPeersFile(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, version string) {
		s := open(t, version, "file", desk(), browser.Narrow)
		s.Do(chromedp.SetUploadFiles(chromedp.CSS("input[type=file]"), []string{absolute(t, "testdata/fjord.png")}, chromedp.NodeReady))
		s.says("fjord.png")
		s.send("This is where I want to go.")
		s.says("I have your picture.")
		s.status("ready")
		s.reload()
		s.says("I have your picture.")
		s.Eventually("document.querySelector('img.file')?.naturalWidth > 0")
		s.Matches("testdata/narrow.png", *rewrite && version == "7")
	})
}

func absolute(t *testing.T, file string) string {
	t.Helper()
	path, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// led is a model that does what the test says: it writes a text, breaks off so that its
// turn begins again, or ends it.
type led chan string

func (m led) Generate(ctx context.Context, _ executor.Request, delta func(string)) (executor.Answer, error) {
	var all strings.Builder
	for {
		select {
		case <-ctx.Done():
			return executor.Answer{}, ctx.Err()
		case say := <-m:
			switch say {
			case "again":
				return executor.Answer{}, &executor.Error{Code: "broken_off", Detail: "the connection is lost", Retryable: true}
			case "end":
				return executor.Answer{Text: all.String()}, nil
			}
			delta(say)
			all.WriteString(say)
		}
	}
}

// say gives the model its next word, and fails the test if no turn takes it.
func (m led) say(t *testing.T, word string) {
	t.Helper()
	select {
	case m <- word:
	case <-time.After(time.Minute):
		t.Fatalf("no turn of the model took %q within a minute", word)
	}
}

func (m led) ref() refold.ModelRef {
	return refold.ModelRef{Provider: "led", Model: "led", Open: func() (executor.Model, error) { return m, nil }}
}

// A page that is reloaded in the middle of an answer goes on with it; stop disconnects, and
// the endpoint cancels.
func TestPeersReloadAndStop(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, version string) {
		m := led(make(chan string))
		s := open(t, version, "resume", m.ref(), browser.Wide)
		s.send("Tell me about Bergen.")
		m.say(t, "Seven mountains, ")
		s.says("Seven mountains,")
		s.status("streaming")
		s.reload()
		s.says("Seven mountains,")
		s.status("streaming")
		m.say(t, "and rain.")
		s.says("Seven mountains, and rain.")
		s.server.CloseClientConnections()
		s.TakeFault("net::ERR_INCOMPLETE_CHUNKED_ENCODING")
		m.say(t, " And fish.")
		s.says("Seven mountains, and rain. And fish.")
		m.say(t, "end")
		s.status("ready")

		s.send("And about Oslo?")
		m.say(t, "A fjord, ")
		s.says("A fjord,")
		s.click(".stop")
		s.says("You stopped this answer.")
		s.status("ready")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		view, err := s.rt.Session("resume").View(ctx)
		if err != nil || view.Lifecycle != session.Cancelled {
			t.Errorf("after stop the run is %s (%v), want cancelled", view.Lifecycle, err)
		}
		s.send("Never mind.")
		m.say(t, "As you like.")
		m.say(t, "end")
		s.says("As you like.")
		s.status("ready")
	})
}

// The turn begins again in the middle of a text: the page shows the new one alone.
func TestPeersTurnBeginsAgain(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, version string) {
		m := led(make(chan string))
		s := open(t, version, "again", m.ref(), browser.Wide)
		s.send("Tell me about Bergen.")
		m.say(t, "Seven hills")
		s.says("Seven hills")
		m.say(t, "again")
		m.say(t, "Seven mountains")
		s.says("Seven mountains")
		m.say(t, ", and rain.")
		m.say(t, "end")
		s.says("Seven mountains, and rain.")
		s.status("ready")
		if got := s.conversation(); strings.Contains(got, "hills") || strings.Count(got, "Seven") != 1 {
			t.Errorf("the page says\n%s", got)
		}
	})
}
