package main

import (
	"bytes"
	"io"
	"log"
)

// quieten keeps lines of Google's library out of the standard logger, which is this
// program's alone. It logs every stream that breaks off, and the bridge reports
// that itself, with the session and the effect.
func quieten(l *log.Logger, to io.Writer) {
	l.SetFlags(log.LstdFlags | log.Llongfile) // a line says whose it is
	l.SetOutput(quiet{to})
}

// quiet is a writer of log lines without those of Google's library.
type quiet struct{ to io.Writer }

func (q quiet) Write(line []byte) (int, error) {
	file, _, _ := bytes.Cut(line, []byte(".go:"))
	if bytes.Contains(file, []byte("google.golang.org/genai@")) || bytes.Contains(file, []byte("google.golang.org/genai/")) {
		return len(line), nil
	}
	return q.to.Write(line)
}
