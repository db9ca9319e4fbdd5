package worker

// Whatever a tool returns, its settlement or a blob holds it; and an effect
// delivered again while it runs starts once.

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
)

func TestSettlementHoldsWhatAToolReturns(t *testing.T) {
	t.Parallel()
	full := strings.Repeat("x", inlineBytesMax)
	for _, c := range []struct {
		name   string
		result executor.Result
		text   string // inline
		blobs  int
		shown  string // the beginning of what a model is shown
		has    string // and what is in it
	}{
		{name: "nothing", shown: ""},
		{name: "256 KiB", result: executor.Result{Output: full}, text: full, shown: "xxx"},
		{name: "a byte more", result: executor.Result{Output: full + "y"}, blobs: 1, shown: "xxx", has: "bytes are left out here; the whole is sha256-"},
		// Each of these bytes becomes three: what was small enough is not any more.
		{name: "no UTF-8", result: executor.Result{Output: "a\xffb\xc3"}, text: "a\uFFFDb\uFFFD", shown: "a\uFFFDb\uFFFD"},
		{name: "256 KiB of no UTF-8", result: executor.Result{Output: strings.Repeat("\xff\x00", inlineBytesMax/2)}, blobs: 1, shown: "\uFFFD\x00", has: "the whole is sha256-"},
		{name: "bytes", result: executor.Result{Files: []executor.File{{Data: []byte("\x00\xff\x01")}}}, blobs: 1, shown: "[application/octet-stream, 3 bytes, sha256-"},
		{name: "a file with a name", result: executor.Result{Files: []executor.File{{Name: "a.zip", MediaType: "application/zip", Data: []byte("PK\x03\x04")}}}, blobs: 1, shown: "[a.zip, application/zip, 4 bytes, sha256-"},
		{name: "a file with a long name", result: executor.Result{Files: []executor.File{{Name: strings.Repeat("ä", 65), Data: []byte("\x00\x01\x02")}}}, blobs: 1, shown: "[" + strings.Repeat("ä", 64) + ", application/octet-stream, 3 bytes, sha256-"},
		{name: "an image and words", result: executor.Result{Output: "A map.", Files: []executor.File{{MediaType: "image/png", Data: []byte{1, 2}}}}, blobs: 1, shown: "A map.\n[image/png, 2 bytes, sha256-"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(t *testing.T, w *world, q *queue) {
				b := startBridge(t, w, "me", q, Target{Class: session.ClassTool, Name: "host", Executor: executorFunc(func(context.Context, executor.Call) (executor.Result, error) { return c.result, nil })})
				q.ask(t, session.ClassTool, "host", "s1", "r1t1c0", toolCall("r1t1c0", false))
				synctest.Wait()
				s := body[session.ToolCallSettled](t, w.last(t))
				inline := ""
				if s.Output != nil {
					inline = s.Output.Text
				}
				if s.Status != string(session.CallSucceeded) || inline != c.text || len(w.blobs) != c.blobs {
					t.Errorf("settled %s with %d bytes inline and %d blobs, want %d and %d", s.Status, len(inline), len(w.blobs), len(c.text), c.blobs)
				}
				shown, err := b.reader.Result(t.Context(), &s)
				if err != nil || !strings.HasPrefix(shown, c.shown) || !strings.Contains(shown, c.has) || !utf8.ValidString(shown) {
					t.Errorf("shown %d bytes (%v), which begin %.60q; want %q, and %q in it", len(shown), err, shown, c.shown, c.has)
				}
				b.stop()
			})
		})
	}
}

// An effect delivered while it runs, and once more when it is settled, starts
// once and is settled once; its second delivery is answered too.
func TestEffectDeliveredWhileItRunsStartsOnce(t *testing.T) {
	t.Parallel()
	for _, safe := range []bool{true, false} {
		inWorld(t, func(t *testing.T, w *world, q *queue) {
			var starts ledger
			b := startBridge(t, w, "me", q, Target{Class: session.ClassTool, Name: "host", Executor: executorFunc(func(_ context.Context, c executor.Call) (executor.Result, error) {
				starts.add(c.Effect)
				<-time.After(10 * time.Second)
				return executor.Result{}, nil
			})})
			call := toolCall("r1t1c0", safe)
			ask := func() {
				q.ask(t, session.ClassTool, "host", "s1", "r1t1c0", call)
				synctest.Wait()
			}
			ask()
			ask()
			pass(11 * time.Second)
			ask()
			if got, settled := starts.all(), w.settlements(t); len(got) != 1 || len(settled) != 1 || settled[0] != "r1t1c0 succeeded" {
				t.Errorf("retry-safe %v: started %q, settled %q; want one of each", safe, got, settled)
			}
			if acked, returned := q.counts(); acked != 2 || returned != 0 { // the second delivery is the first one's, and is answered with it
				t.Errorf("retry-safe %v: acked %d, given back %d", safe, acked, returned)
			}
			b.stop()
		})
	}
}
