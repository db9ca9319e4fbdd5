package devserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

const lockFile = "lock"

const holderBytesMax = 16 << 10

var errLocked = errors.New("locked")

// errNoLocks says that this system, or this file system, does not lock files.
var errNoLocks = errors.New("the system does not lock files here")

// DirLock reserves a directory for one server. The system releases it when the
// process ends. The file stays, and has no meaning while it is not locked.
type DirLock struct {
	file    *os.File
	holder  holder
	shared  error // why the directory is not reserved; nil: it is
	release sync.Once
}

// holder is the process that has the lock, as the file records it.
type holder struct {
	PID     int       `json:"pid"`
	Command string    `json:"command"`
	Since   time.Time `json:"since"`
	URL     string    `json:"url,omitempty"` // empty: the server is not ready yet
}

// Lock locks a directory, which it creates if it doesn't exist. If another
// process, or this one, holds the lock, the error names it and says what to do.
//
// On a system without flock, such as Windows, Lock locks nothing and succeeds,
// and Start logs that.
func Lock(dir string) (*DirLock, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	l := &DirLock{file: file, holder: holder{PID: os.Getpid(), Command: strings.Join(os.Args, " "), Since: time.Now().UTC().Truncate(time.Second)}}
	switch err = flock(file); {
	case errors.Is(err, errNoLocks):
		l.shared = err
	case errors.Is(err, errLocked):
		return nil, errors.Join(&InUseError{Dir: dir, holder: holderOf(file)}, file.Close())
	case err != nil:
		return nil, errors.Join(fmt.Errorf("lock %s: %w", dir, err), file.Close())
	}
	if err := l.writeHolder(""); err != nil {
		l.Release()
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	return l, nil
}

func (l *DirLock) writeHolder(url string) error {
	l.holder.URL = url
	text, err := json.Marshal(l.holder)
	if err != nil {
		return err
	}
	return errors.Join(l.file.Truncate(0), write(l.file, text))
}

func write(file *os.File, text []byte) error {
	_, err := file.WriteAt(append(text, '\n'), 0)
	return err
}

// Release releases the directory. It may be called more than once, and on nil.
func (l *DirLock) Release() {
	if l != nil {
		l.release.Do(func() { _ = l.file.Close() }) // the content no longer matters
	}
}

// holderOf returns the holder of a locked file; the zero value if it has only just
// locked it.
func holderOf(file *os.File) (h holder) {
	text, err := io.ReadAll(io.NewSectionReader(file, 0, holderBytesMax))
	if err != nil || json.Unmarshal(text, &h) != nil {
		return holder{}
	}
	return h
}

// InUseError says that another server has the directory, and what to do.
type InUseError struct {
	Dir    string
	holder holder
}

// PID returns the process of that server; 0 if it is not known yet.
func (e *InUseError) PID() int { return e.holder.PID }

func (e *InUseError) Error() string {
	who := "by another process: use that server"
	if h := &e.holder; h.PID != 0 {
		who = fmt.Sprintf("by process %d (%s) since %s: use that server", h.PID, h.Command, h.Since.Local().Format(time.DateTime))
		if h.URL == "" {
			who += " when it is ready"
		} else {
			who += ", at " + h.URL
		}
	}
	return fmt.Sprintf("%s is in use %s, or choose another --dir", e.Dir, who)
}
