//go:build peers

package web_test

// What pages say of why something is as it is, and of what is long.

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/refold/refold"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/browser"
	"github.com/refold/refold/refoldtest"
	"github.com/refold/refold/web"
)

// saysAndCalls is a model that says something beside its calls.
func saysAndCalls(text string, calls ...executor.AnswerCall) refoldtest.Turn {
	return func(r executor.Request) (executor.Answer, error) {
		answer, err := refoldtest.Calls(calls...)(r)
		answer.Text = text
		return answer, err
	}
}

// The inbox says which rule asked, what the model said before, and what stands beside the
// call; the batch says the same; and a call that is decided elsewhere says what became of it.
func TestPageSaysWhyACallWaits(t *testing.T) {
	t.Parallel()
	look := refold.Func("docs.look", func(_ context.Context, in search) (string, error) { return in.Query, nil }, refold.RetrySafe(), refold.ReadOnly())
	w := serve(t, web.Options{}, refold.Tools(shop(), look), refold.Model(refoldtest.Model(
		saysAndCalls("I buy tea, since you asked.", refoldtest.To("shop_buy", order{"tea"}), refoldtest.To("docs_look", search{"price"})), refoldtest.Say("I have it."))))
	w.want(http.StatusAccepted, nil, "all", "POST", "/v1/sessions/s/runs", `{"agent": "helper", "input": "Buy tea."}`)
	var list web.ApprovalList
	for len(list.Approvals) == 0 { // w.ctx bounds it
		w.want(http.StatusOK, &list, "all", "GET", "/v1/approvals", "")
	}
	p := w.open(desk, "all", "/approvals")
	p.Eventually(has(".context", "I buy tea, since you asked.") + ` && ` + has(".context", "the tool itself: always") + ` && ` + has(".context .tag", "docs_look"))
	second := w.open(desk, "all", "/s/s?tab=batch")
	second.Eventually(has(`[data-refold-call="r1t1c0"]`, "asked by the tool itself: always") + ` && ` + has(".job .conflict", "runs alone"))
	w.want(http.StatusOK, nil, "all", "POST", "/v1/sessions/s/approvals/r1t1c0", `{"decision": "deny", "args_hash": "`+list.Approvals[0].ArgsHash+`", "reason": "too dear"}`)
	p.Eventually(has(".approval .state", "denied by ada") + ` && getComputedStyle(document.querySelector(".approval h2")).textDecorationLine === "line-through"`)
}

// UI-13, by the module that draws: a batch of 64 calls in 9 groups, with a denial, a
// deadline, a call of unknown outcome, and a pause of a week, which is a break.
func TestPageTimelineBreaksAWeek(t *testing.T) {
	t.Parallel()
	w := bought(t)
	p := w.open(desk, "acme", "/")
	const week = 7 * 24 * 3_600_000
	text := browser.Value[string](p, fmt.Sprintf(`import(document.querySelector("script[type=module]").src.replace("app.js", "timeline.js")).then(({ scaleOf, treeOf }) => {
		const spans = [{ place: "r1", kind: "run", begin: 0, end: %[1]d + 10_000 }, { place: "r1t1", parent: "r1", kind: "turn", begin: 0, end: 9000 }, { place: "r1t1a1", parent: "r1t1", kind: "attempt", begin: 0, end: 900 }];
		for (let i = 0; i < 64; i++) spans.push({ place: "r1t1c" + i, parent: "r1t1", kind: "call", begin: 1000 + (i %% 9) * 800, end: 1000 + (i %% 9) * 800 + 700, failed: i < 3 });
		spans.push({ place: "r1p9", parent: "r1", kind: "pause", begin: 9000, end: 9000 + %[1]d }, { place: "r1t2a1", parent: "r1", kind: "attempt", begin: 9000 + %[1]d, end: 10_000 + %[1]d });
		const scale = scaleOf(spans, 0);
		const rows = treeOf(spans);
		const orders = spans.every((a) => spans.every((b) => a.begin >= b.begin || scale.at(a.begin) <= scale.at(b.begin)));
		const back = [500, 4000, 8000].every((at) => Math.abs(scale.timeAt(scale.at(at)) - at) < 20);
		const part = scaleOf(spans, 0, [1000, 5000]);
		return JSON.stringify({ rows: rows.length, gaps: scale.gaps, orders, back, working: scale.at(9000), part: [part.at(1000), part.at(5000), part.gaps.length] });
	})`, week))
	var got struct {
		Rows    int
		Gaps    [][2]int64
		Orders  bool
		Back    bool
		Working float64
		Part    [3]float64
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	if got.Rows != 69 || !got.Orders || !got.Back || got.Part != [3]float64{0, 1, 0} {
		t.Errorf("got %+v, want each bar once, in order, and a range from end to end", got)
	}
	if len(got.Gaps) != 1 || got.Gaps[0][1]-got.Gaps[0][0] < week-1000 || got.Working < 0.5 {
		t.Errorf("got %+v, want the week as one break, and room for the work", got)
	}
}

// A range of the timeline is dragged, kept in the address, and left again.
func TestPageTimelineRange(t *testing.T) {
	t.Parallel()
	w := bought(t)
	p := w.open(desk, "acme", "/s/s?tab=timeline&run=-1")
	p.Eventually(`document.querySelectorAll(".line").length > 4`)
	var box struct{ X, Y, Width float64 }
	text := browser.Value[string](p, `(() => { const { x, y, width } = document.querySelector(".overview").getBoundingClientRect(); return JSON.stringify({ x, y, width }); })()`)
	if err := json.Unmarshal([]byte(text), &box); err != nil {
		t.Fatal(err)
	}
	browser.Value[bool](p, fmt.Sprintf(`(() => {
		const of = document.querySelector(".overview");
		of.setPointerCapture = () => {};
		for (const [type, x] of [["pointerdown", %g], ["pointermove", %g], ["pointerup", %[2]g]]) of.dispatchEvent(new PointerEvent(type, { bubbles: true, pointerId: 1, clientX: x, clientY: %g }));
		return true;
	})()`, box.X+1, box.X+box.Width/3, box.Y+5))
	p.Eventually(`/range=\d+-\d+/.test(location.search) && ` + has("#span", "bars"))
	press(p, ".card-head .btn")
	p.Eventually(`!location.search.includes("range")`)
}

// UI-19: a session that is stopped is shown, verified with its difference, and released.
func TestPageReleases(t *testing.T) {
	t.Parallel()
	w := serve(t, web.Options{}, refold.Model(refoldtest.Model(slices.Repeat([]refoldtest.Turn{refoldtest.Say("Well.")}, 3)...)))
	w.want(http.StatusOK, nil, "all", "POST", "/v1/sessions/s/runs", `{"agent": "helper", "input": "hi"}`, "Prefer", "wait=60")
	w.quarantine("s")
	p := w.open(desk, "all", "/system")
	press(p, `[data-refold-release="s"]`)
	p.Eventually(has("dialog", "a test"))
	press(p, "dialog .foot .btn")
	p.Eventually(`!document.querySelector("dialog, [data-refold-release]")`)
	w.want(http.StatusOK, nil, "all", "POST", "/v1/sessions/s/runs", `{"agent": "helper", "input": "Again."}`, "Prefer", "wait=60")
}

// A conversation of any length: its end is shown first, and each earlier part on request.
func TestPageConversationIsPaged(t *testing.T) {
	t.Parallel()
	look := refold.Func("docs.look", func(_ context.Context, in search) (string, error) { return strings.Repeat(in.Query, 2000), nil }, refold.RetrySafe())
	turns := []refoldtest.Turn{}
	for i := range 90 {
		turns = append(turns, saysAndCalls(fmt.Sprintf("Look %d.", i), refoldtest.To("docs_look", search{fmt.Sprintf("part %d ", i)})))
	}
	w := serve(t, web.Options{}, refold.Tools(look), refold.Model(refoldtest.Model(append(turns, refoldtest.Say("All is said."))...)))
	w.want(http.StatusOK, nil, "all", "POST", "/v1/sessions/s/runs", `{"agent": "helper", "input": "Look at all."}`, "Prefer", "wait=60")
	p := w.open(desk, "all", "/s/s")
	p.Eventually(has(".said", "All is said.") + ` && !` + has(".said", "Look 0.") + ` && document.querySelectorAll(".talk > *").length < 170`)
	press(p, "#earlier")
	p.Eventually(has(".said", "Look 0.") + ` && !` + has(".said", "All is said.") + ` && document.querySelector("#earlier").disabled`)
	press(p, "#later")
	p.Eventually(has(".said", "All is said."))
	// A long result is shown in part, and more of it on request.
	// Each step is repeated, since the list may be drawn anew meanwhile.
	p.Eventually(`([...document.querySelectorAll("details.call")].at(-1).open = true) && ` + has(".call[open]", "4 KiB of 16 KiB"))
	p.Eventually(`(() => {
		const call = [...document.querySelectorAll("details.call")].at(-1);
		[...call.querySelectorAll(".btn")].find((e) => e.textContent === "More of it")?.click();
		return [...call.querySelectorAll("pre")].some((e) => e.textContent.length > 15000);
	})()`)
	file := w.want(http.StatusOK, nil, "all", "GET", "/v1/sessions/s/events/2/text", "")
	if kind, as, sniff := file.header.Get("Content-Type"), file.header.Get("Content-Disposition"), file.header.Get("X-Content-Type-Options"); kind != "text/plain; charset=utf-8" || !strings.HasPrefix(as, "attachment") || sniff != "nosniff" {
		t.Errorf("an event as text is %q, %q, %q", kind, as, sniff)
	}
}

// UI-17: a run is started, followed, and its call approved, with the keyboard alone.
func TestPageJourneyByKeyboard(t *testing.T) {
	t.Parallel()
	ran := make(chan string, 1)
	w, _ := waiting(t, func(item string) { ran <- item })
	p := w.open(desk, "all", "/")
	keys := func(all ...string) {
		for _, key := range all {
			p.Do(chromedp.KeyEvent(key))
		}
	}
	// Start: the palette opens the form, whose first field after the input is reached by Tab.
	p.Eventually(`document.querySelector("tr.go")`)
	keys(".")
	p.Eventually(`document.activeElement.matches("dialog [role=combobox]")`)
	keys("s", "t", "a", "r", "t", "\r")
	p.Eventually(`document.activeElement.matches("dialog textarea")`)
	keys("h", "i", "\t", "\r")
	p.Eventually(`location.pathname.startsWith("/s/s-") && document.querySelector(".title")`)
	// Approve: the call that waits, from its page.
	keys("g", "a")
	p.Eventually(`location.pathname === "/approvals" && document.querySelector(".approval .btn.main:not(:disabled)")`)
	enter(p, ".approval .btn.main")
	if item := <-ran; item != "tea" {
		t.Errorf("what ran is %q, want what was shown", item)
	}
	// Follow: the list says how the run ends, and the session's page goes along with it.
	keys("g", "s")
	p.Eventually(`document.querySelector("tr.go .state")?.textContent === "completed"`)
	keys("j")
	p.Eventually(`document.activeElement.matches(".rowlink")`)
	keys("\r")
	p.Eventually(`document.querySelector(".title .state")?.textContent === "completed" && document.querySelector(".cursor .where").textContent`)
	keys("[")
	p.Eventually(has(".past", "Nothing is asked."))
	keys("l")
	p.Eventually(`!document.querySelector(".past") && !location.search.includes("at=")`)
}
