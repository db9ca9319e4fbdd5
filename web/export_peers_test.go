//go:build peers

package web_test

// What: an exported file opens offline in Chromium from file://, shows the session with
// its cursor, and proves it; without the program it says so. It asks nobody for anything.
//
// How: the file is written by Export into the test's directory. The browser reaches no
// server that could help.

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/browser"
	"github.com/refold/refold/web"
)

// exported writes the session acme-s to a file, and opens it.
func (w *world) exported(size browser.Size, o web.ExportOptions) (*browser.Page, *web.Exported, string) {
	w.t.Helper()
	name := filepath.Join(w.t.TempDir(), "s.html")
	file, err := os.Create(name)
	if err != nil {
		w.t.Fatal(err)
	}
	defer file.Close()
	wrote, err := web.Export(w.ctx, w.rt, "acme-s", file, o)
	if err != nil {
		w.t.Fatal(err)
	}
	p := browser.Open(w.t, size)
	p.Do(chromedp.Navigate("file://" + name))
	ready(p)
	return p, wrote, name
}

func TestExportedPageOpensOffline(t *testing.T) {
	t.Parallel()
	w := bought(t)
	events, hashes := w.states()
	p, wrote, _ := w.exported(desk, web.ExportOptions{By: "refold test", Program: program(t)})
	if wrote.Events != len(events) || wrote.States != len(events) || !wrote.Proves {
		t.Errorf("got %+v, want all %d events with their states", wrote, len(events))
	}
	p.Eventually(has(".said", "I have it.") + ` && ` + has("#about", "by refold test"))
	if browser.Value[bool](p, `document.querySelector(".composer, .actions, .nav") !== null`) {
		t.Error("the page offers what it can't do")
	}
	for i := len(events) - 2; i >= 0; i-- {
		press(p, `[aria-label="Previous event"]`)
		if i == len(events)-2 {
			press(p, `[role=tab][id$="-state"]`)
		}
		p.Eventually(fmt.Sprintf(`location.search.includes("at=%d") && %s`, events[i].Seq, has(".tree", hashes[i])))
	}
	w.comparesOffline(p, events)
	press(p, `[aria-label="Previous event"]`)
	press(p, `[role=tab][id$="-events"]`)
	p.Eventually(has(".opened h2", fmt.Sprintf("at %d", events[len(events)-2].Seq)))
	press(p, ".opened .btn:not(:disabled):last-child")
	for _, tab := range []string{"timeline", "tools", "batch", "effects"} {
		press(p, fmt.Sprintf(`[role=tab][id$="-%s"]`, tab))
		p.Eventually(`!document.querySelector(".skeleton") && !document.querySelector("[role=tabpanel] .note.bad")`)
	}
	text := proven(p)
	for _, want := range []string{"Equal.", fmt.Sprintf("%d hashes are the same", len(events)), "commit 0123456789ab"} {
		if !strings.Contains(text, want) {
			t.Errorf("the panel lacks %q: %s", want, text)
		}
	}
	if browser.Value[string](p, `fetch("http://127.0.0.1:1/").then(() => "sent", () => "refused")`) != "refused" {
		t.Error("the page may send requests")
	}
	p.TakeFault("127.0.0.1:1")
}

// comparesOffline checks that the page says of each two events what the server says.
func (w *world) comparesOffline(p *browser.Page, events []session.Event) {
	w.t.Helper()
	press(p, `[role=group][aria-label="Which form"] button:nth-of-type(3)`) // Compare, and the cursor is at the first event
	press(p, ".empty .btn")
	for i, e := range events {
		var want web.ChangeList
		w.want(http.StatusOK, &want, "acme", "GET", fmt.Sprintf("/v1/sessions/s/diff?a=%d&b=%d", events[0].Seq, e.Seq), "")
		if i > 0 {
			press(p, `[aria-label="Next event"]`)
		}
		p.Eventually(has("[role=tabpanel] .grow .num:last-child", fmt.Sprint(e.Seq)))
		var rows [][3]string
		for _, c := range want.Changes {
			if c.Old == "" {
				c.Old = "–"
			}
			if c.New == "" {
				c.New = "removed"
			}
			rows = append(rows, [3]string{c.Path, c.Old, c.New})
		}
		text, err := json.Marshal(append([][3]string{}, rows...))
		if err != nil {
			w.t.Fatal(err)
		}
		p.Eventually(fmt.Sprintf(`JSON.stringify([...document.querySelectorAll(".changes tbody tr")].map((r) => [...r.cells].map((c) => c.textContent))) === JSON.stringify(%s)`, text))
	}
}

// A file without the program says so, and one that has not all states says which it has.
func TestExportedPageWithoutProgram(t *testing.T) {
	t.Parallel()
	w := bought(t)
	p, wrote, name := w.exported(phone, web.ExportOptions{StateBytes: 1, Program: []byte{}})
	if wrote.States != 1 || wrote.Proves {
		t.Errorf("got %+v, want one state and no program", wrote)
	}
	p.Eventually(has(".note", "the states after the latest 1 of"))
	press(p, "[data-refold-prove]")
	p.Eventually(has("#proof", "--html --wasm FILE"))
	if browser.Value[bool](p, `document.documentElement.scrollWidth > innerWidth`) {
		t.Error("the page scrolls sideways")
	}
	press(p, `[aria-label="Previous event"]`)
	p.Eventually(has(".note.bad", "This file does not have it"))
	text, err := os.ReadFile(name)
	if err != nil || strings.Contains(string(text), "wasm-unsafe-eval") {
		t.Errorf("a page without the program may compile one (%v)", err)
	}
}
