package webhook

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"go.uber.org/goleak"

	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a server with the streams, and a receiver.
type world struct {
	t    *testing.T
	ctx  context.Context
	node *bustest.Node
	bus  *bus.Bus
	hook Hook

	mu     sync.Mutex
	answer func(w http.ResponseWriter, session string, n uint64) // nil: 204
	got    []received
	told   chan struct{}
}

// received is a request that the receiver has answered 2xx.
type received struct {
	id, session string
	n           uint64
}

var secret = base64.StdEncoding.EncodeToString([]byte("0123456789012345678901234567890123456789"))

// newWorld starts a receiver and the streams. The webhook crm sends RunFinished.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, ctx: testbus.Context(t), node: bustest.Server(t), told: make(chan struct{}, 1)}
	w.bus = testbus.Connect(t, w.node, "")
	conf := testbus.Conf(t, "")
	bustest.OK(t, w.bus.Provision(w.ctx, conf, 1))
	_, err := w.bus.EnsureWebhook(w.ctx, conf, "crm")
	bustest.OK(t, err)
	receiver := httptest.NewServer(http.HandlerFunc(w.receive))
	t.Cleanup(receiver.Close)
	w.hook = w.hookTo(receiver.URL)
	return w
}

func (w *world) hookTo(url string) Hook {
	w.t.Helper()
	r := row{Name: "crm", URL: url, Secret: "whsec_" + secret, Events: []string{"RunFinished"}, AllowPrivate: true}
	h, _, err := r.hook("")
	bustest.OK(w.t, err)
	return h
}

// receive is the receiver: it verifies what it gets with the reference library.
func (w *world) receive(out http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	verifier, bad := standardwebhooks.NewWebhook("whsec_" + secret)
	if err != nil || bad != nil || verifier.VerifyIgnoringTimestamp(body, r.Header) != nil || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
		w.t.Errorf("got %s %v %s, which does not verify", r.Method, r.Header, body)
	}
	var n noticeJSON
	if err := json.Unmarshal(body, &n); err != nil {
		w.t.Errorf("%s: %v", body, err)
	}
	w.mu.Lock()
	answer := w.answer
	w.mu.Unlock()
	recorder := httptest.NewRecorder()
	recorder.Code = http.StatusNoContent
	if answer != nil {
		answer(recorder, n.Session, n.N)
	}
	for name, values := range recorder.Header() {
		out.Header()[name] = values
	}
	out.WriteHeader(recorder.Code)
	if recorder.Code/100 != 2 {
		return
	}
	w.mu.Lock()
	w.got = append(w.got, received{r.Header.Get("webhook-id"), n.Session, n.N})
	w.mu.Unlock()
	select {
	case w.told <- struct{}{}:
	default:
	}
}

func (w *world) answers(f func(w http.ResponseWriter, session string, n uint64)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer = f
}

// publish publishes the nth notice of a session.
func (w *world) publish(sid string, n uint64) {
	w.t.Helper()
	line := fmt.Sprintf(`{"v":1,"n":%d,"type":"RunFinished","session":%q,"seq":%d,"at":1,"data":{"run":1,"text":"<é>"}}`, n, sid, n)
	other := fmt.Sprintf(`{"v":1,"n":%d,"type":"RunStarted","session":%q,"seq":%d,"at":1,"data":{}}`, n+1000, sid, n)
	bustest.OK(w.t, w.bus.Notify(w.ctx, sid, n, []byte(line+"\n"+other)))
}

// run runs webhooks on a connection of their own. kill cuts it.
func (w *world) run(o Options, hooks ...Hook) (stop, kill func()) {
	w.t.Helper()
	if len(hooks) == 0 {
		hooks = []Hook{w.hook}
	}
	if o.Backoff == nil {
		o.Backoff = func(int) time.Duration { return time.Millisecond }
	}
	b := testbus.Connect(w.t, w.node, "")
	ctx, cancel := context.WithCancel(w.ctx)
	done := make(chan error, 1)
	go func() { done <- Run(ctx, b, hooks, o) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := testbus.Within(w.t, done); err != nil {
			w.t.Errorf("run: %v", err)
		}
	})
	w.t.Cleanup(stop)
	return stop, b.Close
}

// until waits until the receiver has got so many notices, and returns them.
func (w *world) until(n int) []received {
	w.t.Helper()
	for {
		w.mu.Lock()
		got := slices.Clone(w.got)
		w.mu.Unlock()
		if len(got) >= n {
			return got
		}
		select {
		case <-w.told:
		case <-w.ctx.Done():
			w.t.Fatalf("the receiver got %d notices, want %d: %v", len(got), n, got)
		}
	}
}

// untilAll waits until the receiver has got the notices from 1 to n of a session, and wants
// them in order. It returns all that it has got.
func (w *world) untilAll(sid string, n uint64) (got []received) {
	w.t.Helper()
	for at := 0; len(firsts(got, sid)) < int(n); at = len(got) + 1 {
		got = w.until(at)
	}
	if order := firsts(got, sid); !slices.Equal(order, upTo(n)) {
		w.t.Errorf("session %s: got %v, want 1 to %d", sid, order, n)
	}
	return got
}

// firsts returns the numbers of a session's notices, in the order of their first arrival.
func firsts(all []received, sid string) (ns []uint64) {
	for _, r := range all {
		if r.session == sid && !slices.Contains(ns, r.n) {
			ns = append(ns, r.n)
		}
	}
	return ns
}

// upTo returns the numbers from 1 on.
func upTo(n uint64) (all []uint64) {
	for i := uint64(1); i <= n; i++ {
		all = append(all, i)
	}
	return all
}

// wantIDs wants that each notice has one id, and each id one notice.
func (w *world) wantIDs(all []received) {
	w.t.Helper()
	ids := map[string]received{}
	for _, r := range all {
		if !strings.HasPrefix(r.id, fmt.Sprintf("%s.%d.", r.session, r.n)) || ids[r.id] != (received{}) && ids[r.id] != r {
			w.t.Errorf("got %+v, and %+v with this id", r, ids[r.id])
		}
		ids[r.id] = r
	}
}
