package main

import (
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/refold/refold/client"
)

// earlyMax is how many deltas are held until it is known of which run they are.
const earlyMax = 1024

// live prints the model's words of one run as they come. What it can't print
// as it came (a missed delta) the end makes good from the log. A second start
// of a turn, on another bridge, begins on a line of its own, and the first one
// is heard no more.
type live struct {
	mu    sync.Mutex
	out   io.Writer
	run   uint32         // 0: not known yet
	early []client.Delta // that came before it was known
	over  bool           // nothing is printed any more

	effect  string          // of the last delta
	left    map[string]bool // effects that another one followed: an attempt that failed says no more
	start   string
	next    uint64 // delta that is due
	printed strings.Builder
	broken  bool // what is printed of it isn't what was said
}

// delta takes one delta.
func (l *live) delta(d client.Delta) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.over:
	case l.run != 0:
		l.print(d)
	case len(l.early) < earlyMax:
		l.early = append(l.early, d)
	}
}

// of tells which run it is. Other runs of the session are not printed.
func (l *live) of(run uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.run = run
	for _, d := range l.early {
		l.print(d)
	}
	l.early = nil
}

// ours reports whether an effect is of the run.
func (l *live) ours(effect string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.HasPrefix(effect, fmt.Sprintf("r%dt", l.run))
}

// print prints a delta, if it is of the run and its turn comes. The lock is
// held.
func (l *live) print(d client.Delta) {
	if !strings.HasPrefix(d.Effect, fmt.Sprintf("r%dt", l.run)) {
		return
	}
	if l.left[d.Effect] || d.Effect == l.effect && d.Start < l.start {
		return // starts are ULIDs: this one was taken over
	}
	if l.left == nil {
		l.left = map[string]bool{}
	}
	if d.Effect != l.effect && l.effect != "" {
		l.left[l.effect] = true
	}
	if d.Effect != l.effect || d.Start != l.start {
		l.line()
		l.effect, l.start, l.next, l.broken = d.Effect, d.Start, 0, false
	}
	if d.N != l.next {
		l.broken = true
	}
	l.next = d.N + 1
	if !l.broken {
		fmt.Fprint(l.out, d.Text)
		l.printed.WriteString(d.Text)
	}
}

// line ends the line that is begun, and what was printed of a turn.
func (l *live) line() {
	if text := l.printed.String(); text != "" && !strings.HasSuffix(text, "\n") {
		fmt.Fprintln(l.out)
	}
	l.printed.Reset()
}

// stop prints nothing more.
func (l *live) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	l.line()
}

// end prints what the log has of the answer, if that was not printed yet, and
// nothing more.
func (l *live) end(answer string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	printed := l.printed.String() == answer
	l.line()
	if printed || answer == "" {
		return
	}
	fmt.Fprint(l.out, answer)
	if !strings.HasSuffix(answer, "\n") {
		fmt.Fprintln(l.out)
	}
}
