//go:build peers

package web_test

// What: pages of histories that no server played agree with the fold of these.
//
// How: a history is played from a scenario's text, becomes an archive, and is served as
// `refold inspect --file` serves one: the server folds its events, and the page draws what
// the server answers.

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/refold/refold"
	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/session/scenario"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/archive/archivetest"
	"github.com/refold/refold/internal/browser"
	"github.com/refold/refold/internal/prove/provetest"
	"github.com/refold/refold/internal/source"
	"github.com/refold/refold/web"
)

// playedOut is a history, and what the fold makes of it.
type playedOut struct {
	scenario.History
	views []session.View // after each event
}

// fold folds a history.
func fold(t *testing.T, h scenario.History) playedOut {
	t.Helper()
	install, err := session.ParseInstall(h.Install)
	if err != nil {
		t.Fatal(err)
	}
	s := session.New(install, h.Events[0].Session)
	all := playedOut{History: h}
	for _, e := range h.Events {
		_, _ = s.Evolve(e)
		all.views = append(all.views, s.View())
	}
	return all
}

// inFile is the log of an archive.
type inFile struct{ c *client.Client }

// Open implements refold.Source.
func (f inFile) Open(context.Context, source.Options) (*source.Opened, error) {
	return &source.Opened{Client: f.c, Close: func() {}}, nil
}

// serveHistory serves a history, and returns the address of its session.
func serveHistory(t testing.TB, h scenario.History) (url string) {
	t.Helper()
	return serveArchive(t, archivetest.Write(t, h))
}

// serveArchive serves the pages of an archive, and returns that of its session.
func serveArchive(t testing.TB, path string) (url string) {
	t.Helper()
	c, sid, err := client.OpenArchive(path)
	if err != nil {
		t.Fatal(err)
	}
	rt, err := refold.Open(t.Context(), inFile{c})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rt.Close() })
	return newServer(t, web.Handler(rt, web.Options{Auth: auth, Limits: web.Limits{PerSecond: 1_000_000}})) + "/s/" + sid
}

// The timeline of 1,000 events has a tenth of the bytes that one of 10,000 may have.
func TestTimelineIsWithinItsBudget(t *testing.T) {
	t.Parallel()
	h := busy(t, 250)
	url, sid, _ := strings.Cut(serveHistory(t, h), "/s/")
	w := &world{t: t, ctx: t.Context(), url: url}
	size := w.packed("/v1/sessions/" + sid + "/timeline")
	if t.Logf("%d events: %d bytes with gzip", len(h.Events), size); len(h.Events) < 1000 || size > 15_000 {
		t.Errorf("the timeline of %d events has %d bytes with gzip, at most 15,000 are allowed", len(h.Events), size)
	}
}

// UI-12: of every tool and turn of the scenarios of steps, the page says what the view of
// that turn says, which is what refold why prints.
func TestPageSaysWhyOfAllSteps(t *testing.T) {
	t.Parallel()
	p := browser.Open(t, desk)
	turns := 0
	for _, pattern := range []string{"41_step_rules.txt", "42_step_hook.txt", "68_steps_controlled.txt"} {
		for file, all := range provetest.Histories(t, "../actors/session/testdata/scenarios/"+pattern) {
			for _, h := range all {
				turns += saysWhy(t, p, filepath.Base(file), fold(t, h))
			}
		}
	}
	if turns < 20 {
		t.Errorf("%d turns, which are too few: are the scenarios still there?", turns)
	}
}

// saysWhy compares the page of each turn of a history with the fold, and returns how many
// there are.
func saysWhy(t *testing.T, p *browser.Page, name string, h playedOut) int {
	t.Helper()
	decided, undecided := map[string][]session.ViewTool{}, map[string]string{} // by turn
	for i := range h.views {
		v := &h.views[i]
		if v.Turn == nil {
			continue
		}
		switch turn, _, _ := strings.Cut(v.Turn.Effect, "a"); {
		case len(v.Tools) == 0 && v.Turn.Step != nil:
			undecided[turn] = v.Turn.Step.Detail
		case decided[turn] == nil:
			decided[turn] = v.Tools
			delete(undecided, turn)
		}
	}
	url := serveHistory(t, h.History)
	p.Do(chromedp.Navigate(url + "?tab=tools#token=all"))
	defer p.Do(chromedp.Navigate("about:blank")) // before its server ends
	ready(p)
	show := func(turn string) {
		p.Eventually(fmt.Sprintf(`(() => {
			const of = [...document.querySelectorAll(".strip button")].find((e) => e.textContent === %q);
			if (of?.ariaPressed === "true") return true;
			of?.click();
			return false;
		})()`, turn))
	}
	for turn, tools := range decided {
		show(turn)
		p.Eventually(fmt.Sprintf(`document.querySelectorAll(".tool").length === %d`, len(tools)))
		var got [][3]string // name, place, why
		text := browser.Value[string](p, `JSON.stringify([...document.querySelectorAll(".tool")].map((e) => [e.querySelector("b").textContent, e.querySelector(".place").textContent, e.children[1].textContent]))`)
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatal(err)
		}
		for _, tool := range tools {
			place, why := "", tool.Why
			if tool.Offered {
				place = strconv.Itoa(tool.Place)
			}
			if why == "offered" {
				why = ""
			}
			if !slices.ContainsFunc(got, func(of [3]string) bool {
				return of[0] == tool.ToolName && of[1] == place && strings.Contains(of[2], why)
			}) {
				t.Errorf("%s, turn %s: the page says %q, and the fold that %s is at place %q, %s", name, turn, got, tool.ToolName, place, why)
			}
		}
	}
	for turn, why := range undecided {
		show(turn)
		p.Eventually(has("#undecided", why))
	}
	return len(decided)
}

// bigBatch is a run whose one batch has 64 calls in nine groups. A call of the eighth is
// denied, one of the last passes its deadline, and one is settled by the bridge that took
// it over. The run is paused meanwhile, for a week.
func bigBatch(t *testing.T) scenario.History {
	t.Helper()
	tool := func(name, more string) string {
		return `{"tool_id":"shop.` + name + `","tool_name":"` + name + `","args_schema":{"type":"object"},"executor":{"kind":"effect","target":"shop"}` + more + `}`
	}
	steps := []string{
		`install {"v":1,"rules":1,"config":{"provider":"openai","model":"m1"},"tools":[` + tool("look", `,"parallel_safe":true,"access":"read","retry_safe":true`) + "," + tool("pay", "") + "," + tool("send", `,"approval":"always"`) + "]}",
		`run "look at all"`, `clock +1s`,
	}
	looks := strings.Repeat(" look{}", 12)
	steps = append(steps, "settle r1t1 calls"+looks+" pay{}"+looks+" pay{}"+looks+" pay{}"+looks+" send{}"+looks, "clock +2s", `deny r1t1c51 reason="no"`)
	for i := range 64 {
		switch i {
		case 51, 60: // the one that is denied, and the one that nobody settles
		case 5:
			steps = append(steps, "clock +3s", `event tool {"type":"ToolCallSettled","by":"second","data":{"effect":"r1t1c5","status":"succeeded","output":{"text":"seen"}}}`)
		default:
			steps = append(steps, "clock +3s", fmt.Sprintf(`settle r1t1c%d ok "seen"`, i))
		}
	}
	steps = append(steps, "pause", "clock +10m", "settle w1", "clock +168h", "resume", "clock +2s", `settle r1t2 text "done"`)
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

// drawn is a bar of the timeline.
type drawn struct {
	Place, Kind, Class string
	Left, Right        float64 // of the track's width
	Least              float64 // the width that a bar has at least
}

// bars returns all bars of a timeline, which is scrolled through.
func bars(t *testing.T, p *browser.Page) map[string]drawn {
	t.Helper()
	text := browser.Value[string](p, `(async () => {
		const all = {}, rows = document.querySelector(".rows");
		for (let at = 0; at <= rows.scrollHeight; at += 200) {
			rows.scrollTop = at;
			await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
			for (const line of rows.querySelectorAll(".line")) {
				const bar = line.querySelector(".bar:not(.ghost)"), track = line.querySelector(".track").getBoundingClientRect(), box = bar.getBoundingClientRect();
				all[line.dataset.refoldPlace] = { Place: line.dataset.refoldPlace, Kind: line.dataset.refoldKind, Class: bar.className, Left: (box.left - track.left) / track.width, Right: (box.right - track.left) / track.width, Least: 3 / track.width };
			}
		}
		return JSON.stringify(all);
	})()`)
	var all map[string]drawn
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// UI-13: the bars of a history agree with its events, and its week without work is a break.
func TestPageTimelineAgreesWithEvents(t *testing.T) {
	t.Parallel()
	h := fold(t, bigBatch(t))
	asked, ended := map[string]int64{}, map[string]int64{} // calls: times of the events that opened and ended them
	groups := 0
	for i := range h.views {
		open := map[string]bool{}
		for _, e := range h.views[i].Open {
			open[e.Effect] = true
			if e.Class == session.ClassTool && asked[e.Effect] == 0 {
				asked[e.Effect] = h.Events[i].Time
			}
		}
		for effect := range asked {
			if !open[effect] && ended[effect] == 0 {
				ended[effect] = h.Events[i].Time
			}
		}
		if b := h.views[i].Batch; b != nil {
			groups = max(groups, len(b.Groups))
		}
	}
	if len(asked) != 63 || len(ended) != 63 || groups != 9 {
		t.Fatalf("%d calls were asked, %d ended, in %d groups; want 63 of them, and one that was denied, in 9", len(asked), len(ended), groups)
	}
	p := browser.Open(t, desk)
	p.Do(chromedp.Navigate(serveHistory(t, h.History) + "?tab=timeline&run=-1#token=all"))
	defer p.Do(chromedp.Navigate("about:blank"))
	ready(p)
	p.Eventually(`document.querySelectorAll(".line").length > 20`)
	all := bars(t, p)
	// A bar that is known measures the others: its call passed its deadline before the break.
	of := all["r1t1c60"]
	scale := (of.Right - of.Left) / float64(ended["r1t1c60"]-asked["r1t1c60"])
	agrees := func(place string, begin, end int64) {
		b, left := all[place], of.Left+scale*float64(begin-asked["r1t1c60"])
		right := max(left+scale*float64(end-begin), left+b.Least)
		if math.Abs(b.Left-left) > 0.001 || math.Abs(b.Right-right) > 0.002 {
			t.Errorf("%s: got %+v, want a bar from %.4f to %.4f: its events are at %d and %d ms", place, b, left, right, begin, end)
		}
	}
	spans := map[string][2]int64{}
	for call := range asked {
		agrees(call, asked[call], ended[call])
		number, _ := strconv.Atoi(strings.TrimPrefix(call, "r1t1c"))
		group := fmt.Sprintf("r1t1g%d", number/13*2+number%13/12)
		span, known := spans[group]
		if !known || asked[call] < span[0] {
			span[0] = asked[call]
		}
		spans[group] = [2]int64{span[0], max(span[1], ended[call])}
	}
	for group, span := range spans {
		agrees(group, span[0], span[1])
	}
	batch, denied := h.Events[1].Time, h.Events[2].Time
	agrees("r1t1c51p", batch, denied)
	agrees("r1t1a1", h.Events[0].Time, batch)
	if len(spans) != 8 || all["r1t1c51"].Place != "" || !strings.Contains(of.Class, "overdue") || len(all) != 63+8+1+2+2+1+1 {
		t.Errorf("got %d bars, of %d groups, want those of 63 calls, 8 groups, an approval, 2 attempts, 2 turns, a run and a pause; %+v is overdue", len(all), len(spans), of)
	}
	const week = 7 * 24 * 3_600_000
	if gaps := browser.Value[string](p, `[...document.querySelectorAll(".gap")].map((e) => e.dataset.refoldGap).join()`); gaps != fmt.Sprint(week) {
		t.Errorf("got breaks of %s ms, want one of %d", gaps, week)
	}
	if pause := all["r1p67"]; pause.Left > of.Right || pause.Right < all["r1t2a1"].Left {
		t.Errorf("got %+v, want a pause across the break", pause)
	}
}
