package client_test

// A hundred viewers of one session, on real connections that the server cuts,
// with lost, doubled and late deltas, and models that start twice. Each viewer
// stops and begins again at random, by seed.

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/oklog/ulid/v2"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/natsio"
)

const (
	viewers     = 100
	connections = 20 // that they share
	viewedRuns  = 3
)

// turnSaid holds the texts of a turn's starts.
type turnSaid struct {
	run, turn uint32
	starts    []string // what each start says
	final     string
	calls     bool // the turn calls a tool, and another turn follows
}

func (s turnSaid) effect() string { return fmt.Sprintf("r%dt%d", s.run, s.turn) }

// toSay draws the texts, by seed.
func toSay(rng *rand.Rand) (all []turnSaid) {
	words := strings.Fields("two of the files über \n\n - aa aa aa aa 🙂 were renamed, and nobody knows aa aa why")
	for run := range uint32(viewedRuns) {
		turns := 1 + rng.Uint32N(3)
		for turn := range turns {
			s := turnSaid{run: run + 1, turn: turn + 1, calls: turn+1 < turns}
			for range 1 + rng.IntN(3) {
				var text strings.Builder
				for range rng.IntN(40) {
					text.WriteString(words[rng.IntN(len(words))] + " ")
				}
				s.starts = append(s.starts, text.String())
			}
			s.final = s.starts[len(s.starts)-1]
			if rng.IntN(5) == 0 {
				s.final = s.starts[0] // whoever took over was too late
			}
			all = append(all, s)
		}
	}
	return all
}

// playing is the bridge and all viewers.
type playing struct {
	*world
	said    map[[2]uint32]turnSaid
	first   uint64        // sequence of the first request
	over    chan struct{} // closed when everything is in the log
	started chan struct{} // gets one for each life of a viewer
}

// speak plays the bridge: it streams and settles every turn.
func (p *playing) speak(rng *rand.Rand, all []turnSaid) {
	defer close(p.over)
	for _, s := range all {
		if s.turn == 1 && s.run > 1 {
			p.ask("s1", "go on")
		}
		p.stored("s1", s.effect())
		var last []string // of the start before, which goes on for a while
		for i, text := range s.starts {
			start := ulid.MustNew(uint64(s.run)*1000+uint64(s.turn)*10+uint64(i), nil).String()
			n := 0
			var own []string
			for piece := range strings.SplitAfterSeq(text, " ") {
				if piece == "" {
					continue
				}
				own = append(own, fmt.Sprintf(`{"effect":%q,"start":%q,"n":%d,"text":%q}`, s.effect(), start, n, piece))
				n++
			}
			for j, payload := range own {
				p.live(payload)
				if len(last) > 0 && rng.IntN(3) == 0 {
					p.live(last[rng.IntN(len(last))])
				}
				if j%32 == 31 {
					p.cut(rng)
				}
			}
			last = own
		}
		if s.calls {
			p.say(session.DoorLLM, "s1", session.TypeToolCallsObserved, map[string]any{
				"effect": s.effect(), "text": map[string]any{"text": s.final + "."}, "calls": []any{map[string]any{"tool_name": "nope", "arguments": "{}"}},
			})
			continue
		}
		p.say(session.DoorLLM, "s1", session.TypeGenerationSettled, map[string]any{
			"effect": s.effect(), "status": "ok", "text": map[string]any{"text": s.final + "."},
		})
	}
}

func (p *playing) live(payload string) {
	p.t.Helper()
	if err := p.bus.PublishLive("s1", []byte(payload)); err != nil {
		p.t.Error(err)
	}
}

// cut has the server close one of the viewers' connections.
func (p *playing) cut(rng *rand.Rand) {
	all, err := p.node.Raw().Connz(nil)
	if err != nil {
		p.t.Error(err)
		return
	}
	var ids []uint64
	for _, c := range all.Conns {
		if c.Name == "viewers" {
			ids = append(ids, c.Cid)
		}
	}
	if len(ids) > 0 {
		_ = p.node.Raw().DisconnectClientByID(ids[rng.IntN(len(ids))]) // it may be gone already
	}
}

// lossy loses, doubles and delays deltas.
func lossy(rng *rand.Rand) func(client.Delta, func(client.Delta)) {
	var late []client.Delta
	return func(d client.Delta, hear func(client.Delta)) {
		switch rng.IntN(25) {
		case 0:
			return
		case 1:
			hear(d)
			hear(d)
		case 2:
			late = append(late, d)
			return
		default:
			hear(d)
		}
		if len(late) > 0 && rng.IntN(4) == 0 {
			hear(late[0])
			late = late[1:]
		}
	}
}

// watcher checks one viewer.
type watcher struct {
	p    *playing
	text string // of the turn that is shown
	turn [2]uint32
	done map[[2]uint32]string
}

// see checks one step; it returns false at the end of the last run.
func (w *watcher) see(s client.Shown) (more bool, err error) {
	turn := [2]uint32{s.Run, s.Turn}
	if s.Kind == client.ShownEnd {
		return s.Run < viewedRuns, nil
	}
	said, known := w.p.said[turn]
	if !known {
		return false, fmt.Errorf("%+v is shown, of a turn that there is not", s)
	}
	if turn != w.turn {
		w.turn, w.text = turn, ""
	}
	switch s.Kind {
	case client.ShownText:
		w.text += s.Text
		for _, text := range said.starts {
			if strings.HasPrefix(text+".", w.text) {
				return true, nil
			}
		}
		return false, fmt.Errorf("%s: %q is shown, and said was %q", said.effect(), w.text, said.starts)
	case client.ShownAgain:
		if w.text == "" || len(said.starts) == 1 {
			return false, fmt.Errorf("%s begins again after %q", said.effect(), w.text)
		}
		w.text = ""
	case client.ShownDone:
		if _, twice := w.done[turn]; twice || w.text != said.final+"." {
			return false, fmt.Errorf("%s: %q is shown in the end, want %q", said.effect(), w.text, said.final)
		}
		w.done[turn] = w.text
	case client.ShownFailed:
		return false, fmt.Errorf("%s failed: %+v", said.effect(), s)
	}
	return true, nil
}

// connect makes a connection that the test may close.
func (p *playing) connect() (*client.Client, error) {
	c, err := client.Connect(p.ctx, client.Options{URL: p.node.URL(), Name: "viewers"})
	if err == nil {
		p.t.Cleanup(c.Close)
	}
	return c, err
}

// watch is one viewer: it reads, stops, reads again, or is replaced by another
// one, until it has seen the end.
func (p *playing) watch(c *client.Client, rng *rand.Rand) (lives int, err error) {
	for {
		from := uint64(0)
		select {
		case <-p.over:
			from = p.first
		default:
			if rng.IntN(2) == 0 {
				from = p.first
			}
		}
		v, err := c.ViewerThrough(p.ctx, "s1", lossy(rand.New(rand.NewPCG(rng.Uint64(), 0))))
		if errors.Is(err, natsio.ErrClosed) { // the server cut it off for good
			c, err = p.connect()
			if err == nil {
				continue
			}
		}
		if err != nil {
			return lives, err
		}
		w := &watcher{p: p, done: map[[2]uint32]string{}}
		for stays := true; stays; {
			lives++
			ended, err := p.look(w, v.Shown, from, rng)
			if errors.Is(err, natsio.ErrClosed) {
				break
			}
			if ended || err != nil {
				v.Close()
				if err == nil && from == p.first && len(w.done) != len(p.said) {
					err = fmt.Errorf("%d turns are shown in the end, want %d", len(w.done), len(p.said))
				}
				return lives, err
			}
			stays = rng.IntN(3) > 0
			select {
			case <-p.over:
				stays = stays && from != 0 // else it may wait for what has been
			default:
			}
		}
		v.Close()
	}
}

func (p *playing) look(
	w *watcher, shown func(context.Context, uint64) iter.Seq2[client.Shown, error], from uint64, rng *rand.Rand,
) (ended bool, err error) {
	ctx, cancel := context.WithCancel(p.ctx)
	defer cancel()
	if from == 0 {
		go func() {
			select {
			case <-p.over:
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	left := 1 + rng.IntN(120)
	select {
	case p.started <- struct{}{}:
	default:
	}
	for s, err := range shown(ctx, from) {
		if errors.Is(err, context.Canceled) && p.ctx.Err() == nil {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		more, err := w.see(s)
		if err != nil || !more {
			return !more, err
		}
		if left--; left == 0 {
			return false, nil
		}
	}
	return false, nil
}

func TestHundredViewersShowTheLogsText(t *testing.T) {
	t.Parallel()
	const seed = 7
	p := &playing{world: newWorld(t).host(), said: map[[2]uint32]turnSaid{}, over: make(chan struct{}), started: make(chan struct{}, viewers)}
	all := toSay(rand.New(rand.NewPCG(seed, 0)))
	for _, s := range all {
		p.said[[2]uint32{s.run, s.turn}] = s
	}
	p.first = p.ask("s1", "begin")
	var conns [connections]*client.Client
	for i := range conns {
		var err error
		conns[i], err = p.connect()
		bustest.OK(t, err)
	}
	var watching sync.WaitGroup
	var lives [viewers]int
	var errs [viewers]error
	for i := range viewers {
		watching.Go(func() { lives[i], errs[i] = p.watch(conns[i%connections], rand.New(rand.NewPCG(seed, uint64(i)+1))) })
	}
	for range viewers / 2 {
		<-p.started // the others join late
	}
	p.speak(rand.New(rand.NewPCG(seed, 1<<32)), all)
	watching.Wait()
	total := 0
	for i, err := range errs {
		total += lives[i]
		if err != nil {
			t.Errorf("viewer %d: %v", i, err)
		}
	}
	if total < 2*viewers {
		t.Errorf("%d viewers had %d lives: nobody reconnects", viewers, total)
	}
}
