package cli

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/refold/refold/client"
	"github.com/refold/refold/cmd/settings"
)

// statusMax is the greatest width of a status line. On a narrow terminal it is
// shorter: a line that wraps can't be rewritten.
const statusMax = 72

// startedAgain is printed where a turn starts again: the text above it is void.
const startedAgain = "(started again)"

// display writes models' text to standard output as it streams, and messages to
// standard error. If both go to the same file, a message gets its own line, and the
// text continues after it. A turn that starts again, on another bridge or in another
// attempt, starts on a new line. A terminal also has a status line, which is
// rewritten and leaves nothing behind. It is safe for concurrent use. As a Writer it
// takes messages, whole lines at a time.
type display struct {
	out, err io.Writer
	shared   bool // both go to the same file
	rewrites bool // standard error is a terminal
	columns  int  // of that terminal; 0: not a terminal

	mu     sync.Mutex
	within bool   // the text is within an unfinished line
	broken bool   // a message ended that line
	status string // the visible status line; "": none

	over bool            // no text is printed any more
	open bool            // the printed turn has more text to come
	held []func()        // lines about calls, which wait for its end
	turn [2]uint32       // the printed turn: its run and number
	said strings.Builder // its text
	last string          // the whole text of the turn that ended last
}

func newDisplay(s streams) *display {
	return &display{
		out: s.out, err: s.err, shared: isSame(s.out, s.err),
		rewrites: isTerminal(s.err) && cmp.Or(os.Getenv("TERM"), "dumb") != "dumb",
		columns:  settings.ScreenOf(s.err).Columns,
	}
}

// statOf returns the file information of the file below a reader or writer.
func statOf(stream any) (os.FileInfo, bool) {
	if w, ok := stream.(io.Writer); ok {
		stream = settings.Raw(w)
	}
	f, ok := stream.(interface{ Stat() (os.FileInfo, error) })
	if !ok {
		return nil, false
	}
	info, err := f.Stat()
	return info, err == nil
}

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool {
	info, ok := statOf(stream)
	return ok && info.Mode()&os.ModeCharDevice != 0
}

func isSame(a, b io.Writer) bool {
	one, ok := statOf(a)
	other, also := statOf(b)
	return ok && also && os.SameFile(one, other)
}

// shown prints one step of a model's text.
func (d *display) shown(s client.Shown) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over {
		return
	}
	if turn := [2]uint32{s.Run, s.Turn}; turn != d.turn {
		d.endLine()
		d.turn = turn
	}
	switch s.Kind {
	case client.ShownText:
		d.open = true
		d.text(s.Text)
		d.said.WriteString(s.Text)
		return
	case client.ShownAgain:
		d.endLine()
		d.text(startedAgain + "\n")
		return
	case client.ShownDone:
		d.last = d.said.String()
	}
	d.release()
}

// text writes text that need not end with a line feed.
func (d *display) text(text string) {
	if text == "" {
		return
	}
	d.clear()
	fmt.Fprint(d.out, text)
	d.within, d.broken = !strings.HasSuffix(text, "\n"), false
}

// endLine ends the unfinished line, and forgets the printed text of a turn.
func (d *display) endLine() {
	d.clear()
	if d.within && !d.broken {
		fmt.Fprintln(d.out)
	}
	d.within = false
	d.said.Reset()
}

// aside calls fn between two lines. A line about a call waits for the end of the
// text that is being printed.
func (d *display) aside(ofCall bool, fn func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if ofCall && d.open && !d.over {
		d.held = append(d.held, fn)
		return
	}
	d.endLine()
	fn()
}

// release prints the lines that waited for the end of a turn's text.
func (d *display) release() {
	held := d.held
	d.open, d.held = false, nil
	for _, fn := range held {
		d.endLine()
		fn()
	}
}

// end ends all printing of text. It prints the run's answer, unless that is empty
// or was printed last.
func (d *display) end(answer string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.over = true
	d.release()
	d.endLine()
	if answer != d.last {
		d.text(answer)
		d.endLine()
	}
}

// isWithin reports whether the text's unfinished line is the last one shown.
func (d *display) isWithin() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.shared && d.within && !d.broken
}

// Write writes a message to standard error.
func (d *display) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.clear()
	d.breakLine()
	return d.err.Write(p)
}

// breakLine makes the next output begin on a new line.
func (d *display) breakLine() {
	if d.shared && d.within && !d.broken {
		fmt.Fprintln(d.err)
		d.broken = true
	}
}

// show rewrites the status line; an empty text clears it.
func (d *display) show(status string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	room := statusMax
	if d.columns > 0 {
		room = min(room, d.columns-1)
	}
	status = settings.Fit(status, room)
	if !d.rewrites || status == d.status {
		return
	}
	d.clear()
	if status == "" {
		return
	}
	d.breakLine()
	fmt.Fprint(d.err, status)
	d.status = status
}

// clear clears the status line.
func (d *display) clear() {
	if d.status != "" {
		fmt.Fprint(settings.Raw(d.err), "\r\x1b[K")
		d.status = ""
	}
}
