package prompt

// Tools are rendered once for a provider and a toolset, also by concurrent
// requests.

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/codec"
)

// renderer counts how often it renders.
type renderer struct{ count atomic.Int64 }

func (r *renderer) render(tools []executor.Tool) ([]byte, error) {
	r.count.Add(1)
	return json.Marshal(tools)
}

// turnOf returns a generation of a provider with these tools, whose
// descriptors it stores.
func turnOf(l *fakeLog, provider string, seq uint64, tools ...string) session.Generation {
	g := generation("r1t1", session.Item{Role: session.RoleUser, Seq: seq})
	g.Provider = provider
	for _, name := range tools {
		g.Tools = append(g.Tools, l.put(`{"args_schema":{"type":"object"},"description":"d","tool_name":"`+name+`"}`).Hash)
	}
	g.Toolset = codec.Sum([]byte(strings.Join(tools, " ")))
	return g
}

func TestToolsAreRenderedOnce(t *testing.T) {
	t.Parallel()
	l := newLog()
	seq := l.say(t, session.DoorIn, "s1", session.TypeRunRequested, session.RunRequested{Input: *text("hi")})
	r := New(l)
	var count renderer
	ask := func(g session.Generation, form, want string) {
		t.Helper()
		request, fault, err := r.Request(t.Context(), &g)
		if err != nil || fault != nil {
			t.Fatal(fault, err)
		}
		if request.Toolset != g.Toolset.String() {
			t.Errorf("toolset: got %s, want %s", request.Toolset, g.Toolset)
		}
		got, err := request.RenderTools(form, count.render)
		if err != nil || !strings.Contains(string(got), want) {
			t.Errorf("got %s, %v; want %s", got, err, want)
		}
	}
	// Two toolsets, the second with an alternate of a tool of the first.
	for range 100 {
		ask(turnOf(l, "p", seq, "stat", "grep"), "x", `"Name":"grep"`)
		ask(turnOf(l, "p", seq, "stat", "grep_all"), "x", `"Name":"grep_all"`)
	}
	if got := count.count.Load(); got != 2 {
		t.Errorf("2 toolsets in 100 turns each: rendered %d times", got)
	}
	if got := r.rendered.cache.counts(); got.Hits != 198 || got.Misses != 2 || got.Entries != 2 || got.Bytes < 2*renderedFixedBytes {
		t.Errorf("rendered: got %+v", got)
	}
	if got := r.tools.counts(); got.Hits != 397 || got.Misses != 3 || got.Entries != 3 || got.Bytes < 3*128 {
		t.Errorf("descriptors: got %+v", got)
	}
	if got := r.events.counts(); got.Hits != 199 || got.Misses != 1 || got.Entries != 1 {
		t.Errorf("events: got %+v", got)
	}

	// Neither another provider nor another form shares it.
	ask(turnOf(l, "q", seq, "stat", "grep"), "x", `"Name":"grep"`)
	ask(turnOf(l, "p", seq, "stat", "grep"), "y", `"Name":"grep"`)
	if got := count.count.Load(); got != 4 {
		t.Errorf("another provider, and another form: rendered %d times, want 2 more", got-2)
	}

	// Where nobody says that tools are the same, they are rendered.
	bare := turnOf(l, "p", seq, "stat")
	bare.Toolset = codec.Hash{}
	ask(bare, "x", "stat")
	ask(bare, "x", "stat")
	if _, err := (executor.Request{}).RenderTools("x", count.render); err != nil || count.count.Load() != 7 {
		t.Errorf("without a toolset: rendered %d times (%v), want 3 more", count.count.Load()-4, err)
	}
}

// Turns that define the same tools and offer others share a rendering of the
// definitions.
func TestDefinedIsRenderedOnce(t *testing.T) {
	t.Parallel()
	l := newLog()
	seq := l.say(t, session.DoorIn, "s1", session.TypeRunRequested, session.RunRequested{Input: *text("hi")})
	r := New(l)
	var count renderer
	defined := turnOf(l, "p", seq, "stat", "grep").Tools
	for _, offered := range []string{"stat", "grep", "stat"} {
		g := turnOf(l, "p", seq, offered)
		g.Defined = defined
		request, fault, err := r.Request(t.Context(), &g)
		if err != nil || fault != nil {
			t.Fatal(fault, err)
		}
		got, err := request.RenderDefined("x", count.render)
		if err != nil || !strings.Contains(string(got), `"Name":"stat"`) || !strings.Contains(string(got), `"Name":"grep"`) {
			t.Errorf("%s is offered: got %s, %v", offered, got, err)
		}
		if exact, err := request.RenderTools("x", count.render); err != nil || strings.Count(string(exact), `"Name"`) != 1 {
			t.Errorf("%s is offered: got %s, %v", offered, exact, err)
		}
	}
	if got := count.count.Load(); got != 3 {
		t.Errorf("rendered %d times, want the definitions once and two toolsets", got)
	}
	plain := turnOf(l, "p", seq, "stat")
	request, fault, err := r.Request(t.Context(), &plain)
	if err != nil || fault != nil {
		t.Fatal(fault, err)
	}
	if _, err := request.RenderDefined("x", count.render); err != nil || count.count.Load() != 3 {
		t.Errorf("without definitions of its own: rendered %d times (%v)", count.count.Load()-3, err)
	}
}

func TestRenderingsAreBounded(t *testing.T) {
	t.Parallel()
	const bytesMax = 8 << 10
	r := &renderings{cache: NewCache[renderKey, []byte](bytesMax)}
	var rendered int
	ask := func(n, size int) {
		t.Helper()
		got, err := r.get(renderKey{"p", "x", codec.Sum([]byte{byte(n)})}, func() ([]byte, error) {
			rendered++
			return make([]byte, size), nil
		})
		if err != nil || len(got) != size {
			t.Errorf("got %d bytes, %v", len(got), err)
		}
	}
	for n := range 100 {
		ask(n, 1000)
		ask(0, 1000) // is used, and stays
		if got := r.cache.counts(); got.Bytes > bytesMax {
			t.Errorf("%d bytes are kept", got.Bytes)
		}
	}
	if got := r.cache.counts(); rendered != 100 || got.Entries != 6 {
		t.Errorf("rendered %d times, kept %d; want 100 and 6", rendered, got.Entries)
	}
	ask(200, bytesMax)
	ask(200, bytesMax)
	if got := r.cache.counts(); rendered != 102 || got.Entries != 6 {
		t.Errorf("what is too large: rendered %d times, kept %d; want 102 and 6", rendered, got.Entries)
	}
}

// If the rendering fails or panics, another turn renders.
func TestConcurrentTurnsShareOneRendering(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		first  func() ([]byte, error)
		counts string // rendered, answered, misses
	}{
		{"is good", func() ([]byte, error) { return []byte("good"), nil }, "1 50 1"},
		{"fails", func() ([]byte, error) { return nil, errors.New("no") }, "2 49 2"},
		{"panics", func() ([]byte, error) { panic("no") }, "2 49 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := &renderings{cache: NewCache[renderKey, []byte](1 << 20)}
			var rendered, answered atomic.Int64
			begun, release := make(chan struct{}), make(chan struct{})
			var turns sync.WaitGroup
			ask := func() {
				defer func() { _ = recover() }()
				got, err := r.get(renderKey{"p", "x", codec.Sum(nil)}, func() ([]byte, error) {
					if rendered.Add(1) == 1 {
						close(begun)
						<-release
						return c.first()
					}
					return []byte("good"), nil
				})
				if err == nil && string(got) == "good" {
					answered.Add(1)
				}
			}
			turns.Go(ask)
			<-begun
			for range 49 {
				turns.Go(ask)
			}
			close(release)
			turns.Wait()
			s := r.cache.counts()
			if got := fmt.Sprint(rendered.Load(), answered.Load(), s.Misses); got != c.counts || s.Hits+s.Misses != 50 {
				t.Errorf("got %s and %d hits, want %s", got, s.Hits, c.counts)
			}
		})
	}
}
