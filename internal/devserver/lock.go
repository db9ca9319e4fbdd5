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
		err = fmt.Errorf("%s is in use %s, or choose another --dir", dir, holderOf(file))
		return nil, errors.Join(err, file.Close())
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

// holderOf describes the holder of a locked file, and says what to do.
func holderOf(file *os.File) string {
	text, err := io.ReadAll(io.NewSectionReader(file, 0, holderBytesMax))
	var h holder
	if err != nil || json.Unmarshal(text, &h) != nil || h.PID == 0 { // it has just locked the file
		return "by another process: use that server"
	}
	who := fmt.Sprintf("by process %d (%s) since %s: ", h.PID, h.Command, h.Since.Local().Format(time.DateTime))
	if h.URL == "" {
		return who + "use that server when it is ready"
	}
	return who + "use that server, at " + h.URL
}
