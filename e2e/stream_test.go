package e2e_test

// A bridge that is killed (SIGKILL) while its model's answer streams. The
// provider is the test's server, which counts requests. A settled turn is paid
// once; another is requested once more, and its followers see it start again.

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
)

// speaker is a provider that speaks chat completions.
type speaker struct {
	t     *testing.T
	url   string
	asked chan *speech // each request, once
}

// speech is one answer.
type speech struct {
	t      *testing.T
	pieces chan string // closed when it is whole
	gone   <-chan struct{}
}

func newSpeaker(t *testing.T) *speaker {
	t.Helper()
	p := &speaker{t: t, asked: make(chan *speech, 16)}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := &speech{t: t, pieces: make(chan string), gone: r.Context().Done()}
		p.asked <- s
		w.Header().Set("Content-Type", "text/event-stream")
		chunk := func(delta object, finish any) {
			text := jsonText(t, object{
				"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
				"choices": list{object{"index": 0, "delta": delta, "finish_reason": finish}},
			})
			fmt.Fprintf(w, "data: %s\n\n", text)
			_ = http.NewResponseController(w).Flush() // who is gone hears nothing
		}
		chunk(object{"role": "assistant", "content": ""}, nil)
		for {
			select {
			case piece, more := <-s.pieces:
				if !more {
					chunk(object{}, "stop")
					fmt.Fprint(w, "data: [DONE]\n\n")
					return
				}
				chunk(object{"content": piece}, nil)
			case <-s.gone:
				return
			}
		}
	}))
	t.Cleanup(srv.Close)
	p.url = srv.URL
	return p
}

// next returns the next request.
func (p *speaker) next() *speech {
	p.t.Helper()
	select {
	case s := <-p.asked:
		return s
	case <-time.After(endWithin):
		p.t.Fatal("the provider is not asked")
		return nil
	}
}

// say says pieces of the answer.
func (s *speech) say(pieces ...string) {
	s.t.Helper()
	for _, piece := range pieces {
		select {
		case s.pieces <- piece:
		case <-s.gone:
			s.t.Fatalf("nobody hears %q", piece)
		}
	}
}

// seen is what a viewer has shown, one line a turn.
type seen struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *seen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// watched starts a viewer of a session, from an event on; 0 is from now on.
func watched(t *testing.T, url, sid string, from uint64) *seen {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	c, err := client.Connect(ctx, client.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	v, err := c.Viewer(ctx, sid)
	if err != nil {
		t.Fatal(err)
	}
	s := &seen{}
	var watching sync.WaitGroup
	watching.Go(func() {
		for shown, err := range v.Shown(ctx, from) {
			if errors.Is(err, context.Canceled) {
				return
			}
			if err != nil {
				t.Error(err)
				return
			}
			s.mu.Lock()
			switch shown.Kind {
			case client.ShownText:
				s.text.WriteString(shown.Text)
			default:
				fmt.Fprintf(&s.text, "[%s]", shown.Kind)
			}
			s.mu.Unlock()
		}
	})
	t.Cleanup(func() {
		cancel()
		watching.Wait()
		v.Close()
		c.Close()
	})
	return s
}

// speaking starts a system whose provider is p, and asks it for a run, which a
// viewer sees from its beginning on.
func speaking(t *testing.T, p *speaker) (s *system, bridge *daemon, see *seen) {
	t.Helper()
	s = startSystem(t, nil)
	bridge = startDaemon(t, "bridge", "--nats", s.url, "--model", "local=openai-chat:"+p.url+"/v1")
	s.idle(s.names.EffectsStream(), "llm-local")
	see = watched(t, s.url, "s1", 1) // however late it begins, it shows all
	s.run(session.DoorCtl, "s1", "what is here?", object{"provider": "local", "model": "m"})
	return s, bridge, see
}

func TestBridgeKilledWhileItsModelSpeaks(t *testing.T) {
	t.Parallel()
	p := newSpeaker(t)
	s, bridge, see := speaking(t, p)
	first := p.next()
	first.say("Two ", "of ")
	until(t, time.Minute, "the first words", func() bool { return see.String() == "Two of " })
	late := watched(t, s.url, "s1", 0) // joins amid the turn
	bridge.kill()
	<-first.gone
	bridge.start()
	second := p.next()
	second.say("Three")
	until(t, time.Minute, "a clean beginning", func() bool { return see.String() == "Two of [again]Three" })
	second.say(" files.")
	close(second.pieces)
	v := s.ended("s1", 1)
	if v.Last.Lifecycle != session.Completed {
		t.Errorf("the run ended %s %s", v.Last.Lifecycle, v.Last.Code)
	}
	until(t, time.Minute, "the end", func() bool {
		return see.String() == "Two of [again]Three files.[done][end]" && late.String() == "Three files.[done][end]"
	})
	if n := len(p.asked); n != 0 {
		t.Errorf("the provider was asked %d times more", n)
	}
	if got := s.attempts("s1"); got != "r1t1" {
		t.Errorf("asked: %s, want one effect", got)
	}
	verifyAll(t, s.url)
}

func TestBridgeKilledWhenItsModelHasSpoken(t *testing.T) {
	t.Parallel()
	p := newSpeaker(t)
	s, bridge, see := speaking(t, p)
	var once sync.Once
	killed := make(chan struct{})
	// The server has the settlement when it sends it on; the bridge may not know.
	if _, err := s.nc.Subscribe("refold.llm.s1", func(*nats.Msg) {
		once.Do(func() {
			bridge.kill()
			close(killed)
		})
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.nc.Flush(); err != nil {
		t.Fatal(err)
	}
	only := p.next()
	only.say("Two ", "files.")
	close(only.pieces)
	<-killed
	bridge.start()
	if v := s.ended("s1", 1); v.Last.Lifecycle != session.Completed {
		t.Errorf("the run ended %s %s", v.Last.Lifecycle, v.Last.Code)
	}
	until(t, time.Minute, "the end", func() bool { return see.String() == "Two files.[done][end]" })
	s.idle(s.names.EffectsStream(), "llm-local") // it has looked at what the dead one had
	if n := len(p.asked); n != 0 {
		t.Errorf("the provider was asked %d times more", n)
	}
	if n := len(logOf(t, s.nc, session.DoorLLM, "s1")); n != 1 {
		t.Errorf("settled %d times, want once", n)
	}
	verifyAll(t, s.url)
}
