package mcp

// How a server is notified of a cancelled call.

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/refold/refold/bridge"
)

// A server with sessions gets a cancellation message.
func TestCancelIsSentToTheServer(t *testing.T) {
	t.Parallel()
	over(t, stateful, func(t *testing.T, w *world) {
		w.imports()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := make(chan bridge.Rehearsed, 1)
		go func() { done <- w.call(ctx, "hang", "", false) }()
		w.until("it hangs", func() bool { return countNotes(w.ledger, "hangs") == 1 })
		cancel()
		w.want(<-done, "outcome_unknown", "outcome_unknown", "")
		w.until("the server is told", func() bool { return countNotes(w.ledger, "cancelled") == 1 })
		w.want(w.call(t.Context(), "echo", `{"text": "a"}`, true), "succeeded", "", "a")

		w.want(w.idles(func() bool { return countNotes(w.ledger, "hangs") > 1 }), "outcome_unknown", "outcome_unknown", "neither an answer nor progress")
		w.until("the server is told", func() bool { return countNotes(w.ledger, "cancelled") > 1 })
	})
}

// idles calls what hangs, at a server that is given up soon. One that has not even
// been reached by then is given longer.
func (w *world) idles(reached func() bool) (r bridge.Rehearsed) {
	w.t.Helper()
	for idle := 50 * time.Millisecond; idle < time.Minute; idle *= 2 {
		s := w.config.Servers["peer"]
		s.Idle = idle
		w.config.Servers["peer"] = s
		w.open()
		if r = w.call(w.t.Context(), "hang", "", false); reached() || r.Code != "outcome_unknown" {
			break
		}
	}
	return r
}

// TestCancelEndsStatelessRequests: a server without sessions can't relate a
// cancellation message to a call. It notices the end of the request: every
// server does, and one that ties its calls to their requests ends the call.
func TestCancelEndsStatelessRequests(t *testing.T) {
	t.Parallel()
	for name, hears := range map[string]bool{"ends the call": true, "hears it": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			aborted := make(chan struct{}, 64)
			w := remoteWorld(t, &sdk.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: hears}, func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if strings.Contains(r.Header.Get("Mcp-Name"), "hang") {
						defer context.AfterFunc(r.Context(), func() { aborted <- struct{}{} })()
					}
					next.ServeHTTP(w, r)
				})
			})
			w.imports()
			stop := func(cancel func(), call func() bridge.Rehearsed, n int, shown string) {
				done := make(chan bridge.Rehearsed, 1)
				go func() { done <- call() }()
				w.until("it hangs", func() bool { return countNotes(w.ledger, "hangs") >= n })
				cancel()
				w.want(<-done, "outcome_unknown", "outcome_unknown", shown)
				<-aborted
				if hears {
					w.until("the call ends there", func() bool { return countNotes(w.ledger, "cancelled") >= n })
				}
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			stop(cancel, func() bridge.Rehearsed { return w.call(ctx, "hang", "", false) }, 1, "")
			w.want(w.call(t.Context(), "echo", `{"text": "a"}`, true), "succeeded", "", "a")
			stop(func() {}, func() bridge.Rehearsed {
				return w.idles(func() bool { return countNotes(w.ledger, "hangs") > 1 })
			}, 2, "neither an answer nor progress")
		})
	}
}
