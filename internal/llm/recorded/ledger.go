package recorded

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/refold/refold/bridge/executor"
)

// Entry is one execution of a call. Fields are in the file's order.
type Entry struct {
	Session        string          `json:"session"`
	Effect         string          `json:"effect"`
	Tool           string          `json:"tool"`
	Arguments      json.RawMessage `json:"arguments"` // a JSON object
	IdempotencyKey string          `json:"idempotency_key"`
	Start          string          `json:"start"` // ULID of this start of the effect
	RetrySafe      bool            `json:"retry_safe"`
}

// Ledger is a file with one line for each execution. Several processes may
// append to one file, and several goroutines to one Ledger.
type Ledger struct {
	mu   sync.Mutex
	file *os.File
}

// OpenLedger opens a ledger for appending, and creates it if needed. The caller
// closes it.
func OpenLedger(path string) (*Ledger, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open ledger: %w", err)
	}
	// The name of a file is durable once its directory is synced.
	if err := syncDir(filepath.Dir(path)); err != nil {
		file.Close()
		return nil, fmt.Errorf("open ledger: %w", err)
	}
	return &Ledger{file: file}, nil
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}

// Note appends the execution of a call.
func (l *Ledger) Note(call executor.Call) error {
	return l.Append(Entry{
		Session: call.Session, Effect: call.Effect, Tool: call.ToolName, Arguments: orEmptyObject(call.Arguments),
		IdempotencyKey: call.IdempotencyKey, Start: call.Start, RetrySafe: call.RetrySafe,
	})
}

// Append writes an entry, and returns nil once it is on disk. After an error
// the file may or may not contain the entry.
func (l *Ledger) Append(e Entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("ledger: %s of %s: %w", e.Effect, e.Session, err)
	}
	// One write makes one line, even if others append or the process is killed.
	l.mu.Lock()
	_, err = l.file.Write(append(line, '\n'))
	l.mu.Unlock()
	if err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	if err := l.file.Sync(); err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	return nil
}

// Close closes the file.
func (l *Ledger) Close() error { return l.file.Close() }

// ReadLedger returns the entries of a ledger in the order of the file. A last
// line cut off by a loss of power is an error: it may have been an execution.
func ReadLedger(path string) ([]Entry, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read ledger: %w", err)
	}
	defer file.Close()
	var entries []Entry
	lines := bufio.NewReader(io.LimitReader(file, fileBytesMax))
	for number := 1; ; number++ {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(line) == 0 {
			return entries, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read ledger: line %d: %w", number, err)
		}
		var e Entry
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("read ledger: line %d: %w", number, err)
		}
		entries = append(entries, e)
	}
}
