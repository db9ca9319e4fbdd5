package cli

// The cause of a session's wait is reported once, and its end once, however
// often views have it. The watcher gets views with the test's clock.

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/natsio"
)

// watching is a watcher of the session s1 that is shown what the test says.
type watching struct {
	*watcher
	out   strings.Builder
	now   time.Time // the server's
	view  session.View
	fault error
}

func newWatching() *watching {
	w := &watching{now: time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)}
	shown := newDisplay(streams{out: io.Discard, err: &w.out})
	w.watcher = newWatcher(shown, func(context.Context, string) (session.View, error) { return w.view, w.fault }, func() time.Time { return w.now }, lookSoon)
	w.watcher.now = func() time.Time { return w.now.Add(11 * time.Minute) } // this machine's clock is off
	w.note(client.Notice{Type: session.NoticeRunStarted, Session: "s1"})
	return w
}

// looks returns what a look tells, a time after the last one.
func (w *watching) looks(t *testing.T, after time.Duration) string {
	t.Helper()
	w.out.Reset()
	w.now = w.now.Add(after)
	w.heard("s1")
	w.look(t.Context())
	return w.out.String()
}

// tells checks what a look tells, a time after the last one.
func (w *watching) tells(t *testing.T, what string, after time.Duration, want string) {
	t.Helper()
	if got := w.looks(t, after); got != want {
		t.Errorf("%s: it tells\n%s\nwant\n%s", what, got, want)
	}
}

// A limit that is near when following begins is reported once. Notices tell of later ones.
func TestNearLimitIsReportedOnce(t *testing.T) {
	t.Parallel()
	w := newWatching()
	w.view.Warnings = []session.Warning{{Limit: session.LimitItems, Used: 9123, Max: session.ItemsMax}}
	w.tells(t, "at first", time.Second,
		"the transcript of s1 has 9123 of at most 10000 items, and then every run fails: add a context to the config of its runs, or continue in a new session\n")
	w.tells(t, "again", time.Second, "")
	w.view.Warnings = append(w.view.Warnings, session.Warning{Limit: session.LimitItemBytes, Used: 600_000, Max: session.TranscriptBytesMax})
	w.tells(t, "another", time.Second, "")
}

func TestUnservedToolIsReportedOnce(t *testing.T) {
	t.Parallel()
	w := newWatching()
	open := []session.ViewEffect{{Effect: "r1t1c0", Class: session.ClassTool, Target: "mail"}, {Effect: "r1t1c1", Class: session.ClassTool, Target: "host"}}
	for _, step := range []struct {
		unserved []string
		fault    error
		want     string
	}{
		{nil, nil, ""},
		{[]string{"tool/host", "tool/mail"}, nil, "unserved: s1 waits for tool/host (r1t1c1): start refold bridge serve --tools host --workdir DIR\n" +
			"unserved: s1 waits for tool/mail (r1t1c0): start refold bridge serve --tools mail=TOOLS, or a program that serves it with package bridge\n"},
		{[]string{"tool/host", "tool/mail"}, nil, ""},
		{nil, fmt.Errorf("view: %w", natsio.ErrNoView), ""},
		{nil, fmt.Errorf("view: %w", natsio.ErrNoView), "no session-actor answers: sessions wait until one runs; start one: refold actor serve\n"},
		{nil, natsio.ErrNoView, ""},
		{[]string{"tool/mail"}, nil, "a session-actor answers again\nno longer unserved: tool/host of s1\n"},
	} {
		w.view, w.fault = session.View{Open: open, Unserved: step.unserved}, step.fault
		if got := w.looks(t, lookSoon); got != step.want {
			t.Errorf("%q, %v: it tells\n%s\nwant\n%s", step.unserved, step.fault, got, step.want)
		}
	}
	w.note(client.Notice{Type: session.NoticeRunFinished, Session: "s1"})
	w.view.Unserved = []string{"tool/host"}
	w.tells(t, "after the run's end", lookSoon, "")
}

func TestTroubleIsReportedOnceAndItsEnd(t *testing.T) {
	t.Parallel()
	w := newWatching()
	since := w.now.UnixMilli()
	down := func(code string, next time.Duration) []session.Trouble {
		return []session.Trouble{{Target: "llm/p", Code: code, Detail: "p answered 503", Since: since, Next: w.now.Add(next).UnixMilli(), Effects: []string{"r1t1"}}}
	}
	w.view.Open = []session.ViewEffect{{Effect: "r1t1", Class: session.ClassLLM, Target: "p"}}
	w.view.Troubles = down("overloaded", 4*time.Second)
	w.tells(t, "a look", time.Second, "retrying: s1 waits for llm/p (r1t1): overloaded: p answered 503; since 10:00:00Z, next try in 3s\n")
	w.view.Troubles = down("overloaded", 9*time.Second)
	w.tells(t, "the next try failed in the same way", time.Second, "")
	w.view.Troubles = down("network", 0)
	w.tells(t, "it fails otherwise", time.Second, "retrying: s1 waits for llm/p (r1t1): network: p answered 503; since 10:00:00Z, the next try has started\n")
	w.out.Reset()
	w.speaks("s1")
	if got, want := w.out.String(), "over: llm/p of s1 (network), after 3s\n"; got != want {
		t.Errorf("it answers: it tells %q, want %q", got, want)
	}
	w.tells(t, "a view of before", time.Second, "")
	since = w.now.UnixMilli()
	w.view.Troubles = down("network", time.Second)
	if got := w.looks(t, 0); !strings.HasPrefix(got, "retrying: ") {
		t.Errorf("it fails anew: it tells %q", got)
	}
	w.view.Unserved = []string{"llm/p"}
	if got := w.looks(t, 0); !strings.HasPrefix(got, "unserved: ") || strings.Contains(got, "over: ") {
		t.Errorf("its bridge is gone: it tells %q", got)
	}
	w.view.Unserved = nil
	w.looks(t, 0)
	w.view.Troubles = nil
	w.tells(t, "no view has it any more", 2*time.Second, "over: llm/p of s1 (network), after 2s\n")
}

func TestOtherTroubles(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		trouble session.Trouble
		want    string
	}{
		{session.Trouble{Code: session.TroubleLacks, Detail: "no key: set K"}, "lacks: s1 waits for llm/p: no key: set K\n"},
		{session.Trouble{Code: session.TroubleSilent, Detail: "it is not heard", Effects: []string{"r1t1"}}, "bridge gone: s1 waits for llm/p (r1t1): it is not heard\n"},
		{session.Trouble{Code: "auth", Detail: "check the key"}, "failing: s1 waits for llm/p: auth: check the key\n"},
	} {
		w := newWatching()
		c.trouble.Target = "llm/p"
		w.view.Troubles = []session.Trouble{c.trouble}
		if got := w.looks(t, 0); got != c.want {
			t.Errorf("%+v: it tells %q, want %q", c.trouble, got, c.want)
		}
	}
}

// TestSilentModelIsReportedOnceInAPipe: a model that sends text, or whose
// trouble was reported, is not reported as silent.
func TestSilentModelIsReportedOnceInAPipe(t *testing.T) {
	t.Parallel()
	w := newWatching()
	w.hears = true
	at := func(effect string) {
		w.view = session.View{Open: []session.ViewEffect{{Effect: effect, Class: session.ClassLLM, Target: "openai"}}}
	}
	tells := func(after time.Duration, want string) { w.tells(t, after.String()+" later", after, want) }
	at("r1t1")
	tells(0, "")
	tells(silentModelFrom-1, "")
	tells(1, "waiting: s1 waits for llm/openai (r1t1): no text for 10s\n")
	tells(time.Minute, "")
	w.speaks("s1")
	tells(time.Minute, "")

	at("r1t2")
	tells(0, "")
	tells(silentModelFrom-1, "")
	w.speaks("s1")
	tells(1, "")
	tells(silentModelFrom-2, "")
	w.view.Unserved = []string{"llm/openai"}
	w.looks(t, 1)
	tells(time.Minute, "")

	at("r1t3")
	w.hears = false
	w.looks(t, 0)
	tells(time.Minute, "")
}

// TestSlowCallIsReportedOnceInAPipe: a call that no bridge carries out is not
// reported as running.
func TestSlowCallIsReportedOnceInAPipe(t *testing.T) {
	t.Parallel()
	w := newWatching()
	w.view = session.View{
		Open:  []session.ViewEffect{{Effect: "r1t1c0", Class: session.ClassTool, Target: "host"}, {Effect: "r1t1c1", Class: session.ClassTool, Target: "mail"}},
		Batch: &session.ViewBatch{Calls: []session.ViewCall{{Effect: "r1t1c0", ToolName: "shell", Status: session.CallOpen}, {Effect: "r1t1c1", ToolName: "send", Status: session.CallOpen}}},
	}
	w.view.Unserved = []string{"tool/mail"}
	w.looks(t, 0)
	w.tells(t, "within a second", slowToolFrom-1, "")
	w.tells(t, "a look", 1, "running: shell (r1t1c0), for more than a second\n")
	w.tells(t, "again", time.Minute, "")
}

// A view costs a session-actor several reads.
func TestViewsOfAnUnchangedRunAreRequestedLessOften(t *testing.T) {
	t.Parallel()
	w := newWatching()
	views := 0
	w.watcher.view = func(context.Context, string) (session.View, error) {
		views++
		return session.View{Batch: &session.ViewBatch{Calls: []session.ViewCall{{Effect: "r1t1c0", ToolName: "build", Status: session.CallOpen}}}}, nil
	}
	var told strings.Builder
	ticks := func(n int) {
		for range n {
			w.now = w.now.Add(lookSoon)
			w.out.Reset()
			w.look(t.Context())
			told.WriteString(w.out.String())
		}
	}
	ticks(28) // 14 s
	if want := 4; views != want {
		t.Errorf("%d views were requested in 14 s, want %d", views, want)
	}
	if want := "running: build (r1t1c0), for more than a second\n"; told.String() != want {
		t.Errorf("it tells\n%s\nwant\n%s", told.String(), want)
	}
	w.heard("s1")
	if ticks(1); views != 5 {
		t.Errorf("%d views were requested after a call's result, want 5", views)
	}
}
