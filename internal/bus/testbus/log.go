package testbus

import (
	"bytes"
	"strings"
	"sync"
)

// Log is a log that a test reads while other goroutines write it.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// Lines returns the lines with a message.
func (l *Log) Lines(message string) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		if strings.Contains(line, "msg="+message) {
			found = append(found, line)
		}
	}
	return found
}
