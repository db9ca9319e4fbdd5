package cli

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/refold/refold/client"
)

// startedAgain is printed where a turn starts again: the text above it is void.
const startedAgain = "(started again)"

// live prints the text of a run's models as it streams. A turn that starts again,
// on another bridge or in another attempt, starts on a new line.
type live struct {
	mu   sync.Mutex
	to   *display
	run  uint32 // 0: all runs
	over bool   // nothing is printed any more

	open bool     // the printed turn has more text to come
	held []func() // lines about calls, which wait for its end

	turn [2]uint32       // the printed turn
	text strings.Builder // its text
	last string          // the whole text of the turn that ended last
}

// show prints one event of a viewer.
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
		l.open = true
		l.to.text(s.Text)
		l.text.WriteString(s.Text)
	case client.ShownAgain:
		l.line()
		l.to.text(startedAgain + "\n")
	case client.ShownDone:
		l.last = l.text.String()
	}
	if s.Kind != client.ShownText && s.Kind != client.ShownAgain {
		l.release()
	}
}

// line ends the unfinished line, and forgets the printed text of a turn.
func (l *live) line() {
	l.to.endLine()
	l.text.Reset()
}

// aside calls fn between two lines. A line about a call waits for the end of the
// text that is being printed.
func (l *live) aside(ofCall bool, fn func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ofCall && l.open && !l.over {
		l.held = append(l.held, fn)
		return
	}
	l.line()
	fn()
}

// release prints the lines that waited for the end of a turn's text.
func (l *live) release() {
	held := l.held
	l.open, l.held = false, nil
	for _, fn := range held {
		l.line()
		fn()
	}
}

// lost is called when no more text will come.
func (l *live) lost() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.release()
}

// stop ends all printing.
func (l *live) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	l.release()
	l.line()
}

// end prints the run's answer, unless it was printed last, and ends all printing.
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

// viewing is a viewer whose text is printed in the background.
type viewing struct {
	words  *live
	viewer *client.Viewer
	cancel context.CancelFunc
	done   chan struct{}
}

// view subscribes; nothing is printed before show.
func view(ctx context.Context, c *client.Client, sid string, words *live) (*viewing, error) {
	viewer, err := c.Viewer(ctx, sid)
	return &viewing{words: words, viewer: viewer}, err
}

// show prints events of the log from a sequence on. If it can't, it calls failed.
func (v *viewing) show(ctx context.Context, from uint64, failed func(error)) {
	ctx, v.cancel = context.WithCancel(ctx)
	v.done = make(chan struct{})
	go func() {
		defer close(v.done)
		for s, err := range v.viewer.Shown(ctx, from) {
			switch {
			case errors.Is(err, context.Canceled):
			case err != nil:
				v.words.lost()
				failed(err)
			default:
				v.words.show(s)
			}
		}
	}()
}

// close ends the viewer.
func (v *viewing) close() {
	if v.cancel != nil {
		v.cancel()
		<-v.done
	}
	v.viewer.Close()
}
