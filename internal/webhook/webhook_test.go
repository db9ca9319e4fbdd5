package webhook

// FD-10, FD-12: what receivers get, from one server and from several.

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/meter"
)

// A receiver that is down for a while, slow, and then refuses the notices of one session:
// each session's notices come in order, and the sessions don't wait for each other.
func TestNoticesComeInOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var down atomic.Int32
	refused, slow := make(chan struct{}), make(chan struct{})
	w.answers(func(out http.ResponseWriter, sid string, n uint64) {
		switch {
		case down.Add(1) <= 5:
			out.WriteHeader(http.StatusServiceUnavailable)
		case sid == "b" && n == 2:
			select {
			case <-refused:
			default:
				out.WriteHeader(http.StatusInternalServerError)
			}
		case sid == "c" && n == 1:
			<-slow
		}
	})
	registry := meter.New()
	stop, _ := w.run(Options{Meters: Register(registry)})
	for n := range uint64(5) {
		for _, sid := range []string{"a", "b", "c"} {
			w.publish(sid, n+1)
		}
	}
	got := w.until(6)
	if !slices.Equal(firsts(got, "a"), upTo(5)) || !slices.Equal(firsts(got, "b"), upTo(1)) || len(firsts(got, "c")) > 0 {
		t.Errorf("while b is refused and c is slow: got %v, want all of a and the first of b", got)
	}
	close(slow)
	close(refused)
	got = w.until(15)
	for _, sid := range []string{"a", "b", "c"} {
		if order := firsts(got, sid); !slices.Equal(order, upTo(5)) {
			t.Errorf("session %s: got %v, want 1 to 5", sid, order)
		}
	}
	if len(got) != 15 {
		t.Errorf("got %d notices, want each once", len(got))
	}
	w.wantIDs(got)
	stop()
	for _, m := range registry.Collect() {
		for _, p := range m.Points {
			if m.Desc.Name == "refold.webhook.tries" && (p.Labels[1] == "delivered" && p.Value != 15 || p.Labels[1] == "failed" && p.Value < 5) {
				t.Errorf("%s %v: %v", m.Desc.Name, p.Labels, p.Value)
			}
		}
	}
}

// Several servers: each notice comes once. One of them is killed while the receiver has
// not answered: another one goes on, with the same ids and in order.
func TestAnotherServerGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, kill := w.run(Options{})
	w.publish("a", 1)
	w.until(1)
	stop, _ := w.run(Options{})
	for n := uint64(2); n <= 20; n++ {
		w.publish("a", n)
		w.publish("b", n-1)
	}
	got := w.until(39)
	if len(got) != 39 || !slices.Equal(firsts(got, "a"), upTo(20)) || !slices.Equal(firsts(got, "b"), upTo(19)) {
		t.Errorf("two servers: got %v, want each once, in order", got)
	}
	asked, answer := make(chan struct{}), make(chan struct{})
	var once sync.Once
	w.answers(func(out http.ResponseWriter, sid string, n uint64) {
		once.Do(func() {
			close(asked)
			<-answer
			out.WriteHeader(http.StatusInternalServerError) // nobody hears it
		})
	})
	w.publish("a", 21)
	<-asked
	kill()
	w.publish("a", 22)
	close(answer)
	w.untilAll("a", 22)
	// One that ends in good order gives back what it has not sent.
	w.answers(func(out http.ResponseWriter, _ string, _ uint64) { out.WriteHeader(http.StatusTeapot) })
	w.publish("a", 23)
	w.publish("a", 24)
	stop()
	w.answers(nil)
	w.run(Options{})
	w.wantIDs(w.untilAll("a", 24))
}

// A notice that is not delivered within a day is a dead letter, and the next one follows.
func TestUndeliveredNoticesAreDeadLetters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var late atomic.Int64
	tried := make(chan struct{}, 1)
	w.answers(func(out http.ResponseWriter, _ string, n uint64) {
		if n == 1 {
			out.Header().Set("Location", "/elsewhere")
			out.WriteHeader(http.StatusTemporaryRedirect) // and a redirect is not followed
			select {
			case tried <- struct{}{}:
			default:
			}
		}
	})
	w.run(Options{Now: func() time.Time { return time.Now().Add(time.Duration(late.Load())) }})
	w.publish("a", 1)
	w.publish("a", 2)
	<-tried
	<-tried // it was repeated
	if got := w.dead(); len(got) > 0 {
		t.Errorf("before a day has passed: %+v", got)
	}
	late.Store(int64(giveUp))
	got := w.until(1)
	if !slices.Equal(firsts(got, "a"), []uint64{2}) || len(got) != 1 {
		t.Errorf("got %v, want the second notice", got)
	}
	dead := w.dead()
	if len(dead) != 1 || dead[0].Session != "a" || !strings.HasPrefix(dead[0].ID, "a.1.") || !strings.Contains(dead[0].Failure, "307") ||
		!strings.Contains(string(dead[0].Body), `"text":"<é>"`) {
		t.Errorf("got %+v, want the first notice, as it was sent", dead)
	}
}

func (w *world) dead() (all []journal.DeadLetter) {
	w.t.Helper()
	for d, err := range w.bus.DeadLetters(w.ctx, "crm") {
		bustest.OK(w.t, err)
		all = append(all, d)
	}
	return all
}

// A webhook with a scope gets the sessions of the scope alone, with their ids without it.
func TestScopeIsStripped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hook.Scope, w.hook.Sessions = "acme-", "order-"
	w.run(Options{})
	for i, sid := range []string{"acme-order-1", "acme-chat-1", "other-order-1", "order-1", "acme-order-2"} {
		w.publish(sid, uint64(i+1))
	}
	got := w.until(2)
	slices.SortFunc(got, func(a, b received) int { return strings.Compare(a.session, b.session) })
	if len(got) != 2 || got[0].session != "order-1" || got[0].n != 1 || got[1].session != "order-2" {
		t.Errorf("got %+v, want order-1 and order-2 of acme", got)
	}
	w.wantIDs(got)
}

// A receiver whose answer has no end, or endless headers, holds nothing up.
func TestAttackEndlessAnswerOfAReceiver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, c := range map[string]struct {
		write     func(out http.ResponseWriter, r *http.Request)
		delivered bool
	}{
		"body": {func(out http.ResponseWriter, r *http.Request) {
			out.WriteHeader(http.StatusOK)
			for r.Context().Err() == nil {
				if _, err := io.WriteString(out, strings.Repeat("x", 1<<16)); err != nil {
					return
				}
			}
		}, true},
		"headers": {func(out http.ResponseWriter, _ *http.Request) { out.Header().Set("X", strings.Repeat("x", 1<<20)) }, false},
	} {
		receiver := httptest.NewServer(http.HandlerFunc(c.write))
		hook := w.hookTo(receiver.URL)
		client := newClient(true)
		err := hook.send(w.ctx, client, notice{"id", []byte("{}")}, time.Now())
		if (err == nil) != c.delivered {
			t.Errorf("endless %s: got %v", name, err)
		}
		client.CloseIdleConnections()
		receiver.CloseClientConnections()
		receiver.Close()
	}
}

// A webhook to an address of this machine or of a private network is refused when it is
// dialled, whatever its name; also after a redirect, which is not followed.
func TestAttackWebhookIntoAPrivateNetwork(t *testing.T) {
	t.Parallel()
	for address, refused := range map[string]bool{
		"127.0.0.1:80": true, "[::1]:80": true, "10.1.2.3:80": true, "172.16.0.1:80": true, "192.168.1.1:80": true, "169.254.169.254:80": true,
		"[fe80::1%eth0]:80": true, "[fd00::1]:80": true, "[::ffff:127.0.0.1]:80": true, "[::ffff:a9fe:a9fe]:80": true, "0.0.0.0:80": true, "[::]:80": true,
		"100.64.0.1:80": true, "224.0.0.1:80": true, "255.255.255.255:80": true, "[64:ff9b::7f00:1]:80": true, "[2002:7f00:1::]:80": true, "[ff02::1]:80": true,
		"93.184.216.34:443": false, "[2606:2800:220:1::1]:443": false,
	} {
		if err := refusePrivate("tcp", address, nil); (err != nil) != refused {
			t.Errorf("%s: got %v, want refused %t", address, err, refused)
		}
	}
	reached := atomic.Bool{}
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Store(true) }))
	t.Cleanup(receiver.Close)
	w := newWorld(t)
	for _, url := range []string{receiver.URL, strings.Replace(receiver.URL, "127.0.0.1", "localhost", 1)} {
		hook, client := w.hookTo(url), newClient(false)
		if err := hook.send(context.Background(), client, notice{"id", []byte("{}")}, time.Now()); err == nil || !strings.Contains(err.Error(), "allow_private: true permits it") {
			t.Errorf("%s: got %v", url, err)
		}
		client.CloseIdleConnections()
	}
	redirect := httptest.NewServer(http.RedirectHandler(receiver.URL, http.StatusFound))
	t.Cleanup(redirect.Close)
	hook, client := w.hookTo(redirect.URL), newClient(true)
	if err := hook.send(context.Background(), client, notice{"id", []byte("{}")}, time.Now()); err == nil || !strings.Contains(err.Error(), "redirects are not followed") {
		t.Errorf("redirect: got %v", err)
	}
	client.CloseIdleConnections()
	if reached.Load() {
		t.Error("the receiver was reached")
	}
}

func TestBackoffDoublesUpTo15Minutes(t *testing.T) {
	t.Parallel()
	for failures, most := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 5: 16 * time.Second, 11: backoffMax, 1000: backoffMax} {
		if got := backoff(failures); got > most || got < most*4/5 {
			t.Errorf("after %d failures: %v, want up to %v", failures, got, most)
		}
	}
}
