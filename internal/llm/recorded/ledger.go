package recorded

import (
	"bufio"
	"bytes"
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
	file, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open ledger: %w", err)
	}
	if err := endLine(file); err != nil {
		file.Close()
		return nil, fmt.Errorf("open ledger: %w", err)
	}
	// The name of a file is durable once its directory is synced.
	if err := syncDir(filepath.Dir(path)); err != nil {
		file.Close()
		return nil, fmt.Errorf("open ledger: %w", err)
	}
	return &Ledger{file: file}, nil
}

// endLine ends a line that a killed process began. A line that another process is
// writing at this moment may get an empty line after it.
func endLine(file *os.File) error {
	info, err := file.Stat()
	if err != nil || info.Size() == 0 {
		return err
	}
	last := make([]byte, 1)
	if _, err := file.ReadAt(last, info.Size()-1); err != nil {
		return err
	}
	if last[0] != '\n' {
		_, err = file.Write([]byte("\n"))
	}
	return err
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
	// One write makes one line, even if others append. A kill in the middle of it
	// leaves the line's beginning: Linux ends a write at the end of a page then.
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

// ReadLedger returns the entries of a ledger in the order of the file. A line that
// a kill or a loss of power cut off counts as an execution, since it may have been
// one; its entry has only what the line tells. It is an error if that is not the
// name of an effect.
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
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("read ledger: line %d: %w", number, err)
		}
		if text := bytes.TrimSpace(line); len(text) > 0 {
			entry, wrong := readEntry(text)
			if wrong != nil {
				return nil, fmt.Errorf("read ledger: line %d: %w", number, wrong)
			}
			entries = append(entries, entry)
		}
		if err != nil {
			return entries, nil
		}
	}
}

// readEntry reads a line of a ledger, also one that was cut off.
func readEntry(line []byte) (Entry, error) {
	var e Entry
	if !json.Valid(line) {
		var err error
		if line, err = tornFields(line); err != nil {
			return e, err
		}
	}
	if err := json.Unmarshal(line, &e); err != nil {
		return e, err
	}
	if e.IdempotencyKey == "" {
		e.IdempotencyKey = e.Session + "." + e.Effect
	}
	return e, nil
}

// tornFields returns the object of the fields before the place where a line was cut
// off.
func tornFields(line []byte) ([]byte, error) {
	fields, read := map[string]json.RawMessage{}, json.NewDecoder(bytes.NewReader(line))
	_, err := read.Token()
	for err == nil {
		var name json.Token
		var value json.RawMessage
		if name, err = read.Token(); err == nil {
			err = read.Decode(&value)
		}
		if text, isText := name.(string); err == nil && isText {
			fields[text] = value
		}
	}
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	if fields["session"] == nil || fields["effect"] == nil {
		return nil, errors.New("it was cut off before the name of its effect")
	}
	return json.Marshal(fields)
}
