package cli

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/refold/refold/cmd/settings"
)

// statusMax is the greatest width of a status line. On a narrow terminal it is
// shorter: a line that wraps can't be rewritten.
const statusMax = 72

// display writes streamed text to standard output and messages to standard
// error. If both go to the same file, a message gets its own line, and the text
// continues after it. A terminal also has a status line, which is rewritten and
// leaves nothing behind. It is safe for concurrent use. As a Writer it takes
// messages, whole lines at a time.
type display struct {
	out, err io.Writer
	shared   bool // both go to the same file
	rewrites bool // standard error is a terminal
	columns  int  // of that terminal; 0: not a terminal

	mu     sync.Mutex
	within bool   // the text is within an unfinished line
	broken bool   // a message ended that line
	status string // the visible status line; "": none
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

// text writes streamed text, which need not end with a line feed.
func (s *display) text(text string) {
	if text == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	fmt.Fprint(s.out, text)
	s.within, s.broken = !strings.HasSuffix(text, "\n"), false
}

// endLine ends the unfinished line of the text.
func (s *display) endLine() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	if s.within && !s.broken {
		fmt.Fprintln(s.out)
	}
	s.within = false
}

// isWithin reports whether the text's unfinished line is the last one shown.
func (s *display) isWithin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shared && s.within && !s.broken
}

// Write writes a message to standard error.
func (s *display) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	s.breakLine()
	return s.err.Write(p)
}

// breakLine makes the next output begin on a new line.
func (s *display) breakLine() {
	if s.shared && s.within && !s.broken {
		fmt.Fprintln(s.err)
		s.broken = true
	}
}

// show rewrites the status line; an empty text clears it.
func (s *display) show(status string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	room := statusMax
	if s.columns > 0 {
		room = min(room, s.columns-1)
	}
	status = settings.Fit(status, room)
	if !s.rewrites || status == s.status {
		return
	}
	s.clear()
	if status == "" {
		return
	}
	s.breakLine()
	fmt.Fprint(s.err, status)
	s.status = status
}

// clear clears the status line.
func (s *display) clear() {
	if s.status != "" {
		fmt.Fprint(settings.Raw(s.err), "\r\x1b[K")
		s.status = ""
	}
}
