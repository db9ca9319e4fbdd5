package main

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/refold/refold/client"
)

// startedAgain is printed where a turn begins anew: what stands above it is
// void.
const startedAgain = "(started again)"

// live prints the words of one run's models as they come. A turn that begins
// again, on another bridge or in another attempt, begins on a line of its own.
type live struct {
	mu   sync.Mutex
	to   *display
	run  uint32 // 0: of all runs
	over bool   // nothing is printed any more

	turn [2]uint32       // that is printed
	text strings.Builder // of it
	last string          // the whole text of the turn that was done last
}

// show prints one thing that a viewer shows.
func (l *live) show(s client.Shown) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over || l.run != 0 && s.Run != l.run {
		return
	}
	if turn := [2]uint32{s.Run, s.Turn}; turn != l.turn {
		l.line()
		l.turn = turn
	}
	switch s.Kind {
	case client.ShownText:
		l.to.text(s.Text)
		l.text.WriteString(s.Text)
	case client.ShownAgain:
		l.line()
		l.to.text(startedAgain + "\n")
	case client.ShownDone:
		l.last = l.text.String()
	}
}

// line ends the line that is begun, and what was printed of a turn.
func (l *live) line() {
	l.to.endLine()
	l.text.Reset()
}

// aside calls fn between two lines.
func (l *live) aside(fn func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.line()
	fn()
}

// stop prints nothing more.
func (l *live) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	l.line()
}

// end prints the run's answer, if that was not printed last, and nothing more.
func (l *live) end(answer string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	l.line()
	if answer == l.last || answer == "" {
		return
	}
	l.to.text(answer)
	l.to.endLine()
}

// viewing is a viewer whose words are printed meanwhile.
type viewing struct {
	words  *live
	viewer *client.Viewer
	cancel context.CancelFunc
	done   chan struct{}
}

// view begins to listen; nothing is printed before show.
func view(ctx context.Context, c *client.Client, sid string, words *live) (*viewing, error) {
	viewer, err := c.Viewer(ctx, sid)
	return &viewing{words: words, viewer: viewer}, err
}

// show prints from an event of the log on. failed gets why it can't, if it can't.
func (v *viewing) show(ctx context.Context, from uint64, failed func(error)) {
	ctx, v.cancel = context.WithCancel(ctx)
	v.done = make(chan struct{})
	go func() {
		defer close(v.done)
		for s, err := range v.viewer.Shown(ctx, from) {
			switch {
			case errors.Is(err, context.Canceled):
			case err != nil:
				failed(err)
			default:
				v.words.show(s)
			}
		}
	}()
}

// close ends it.
func (v *viewing) close() {
	if v.cancel != nil {
		v.cancel()
		<-v.done
	}
	v.viewer.Close()
}
