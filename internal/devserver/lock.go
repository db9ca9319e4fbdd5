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

// lockFile is the file in the directory that is locked.
const lockFile = "lock"

// holderBytesMax is how much of the lock file is read.
const holderBytesMax = 16 << 10

// errLocked says that another has the lock.
var errLocked = errors.New("locked")

// errNoLocks says that this system, or this file system, locks no files.
var errNoLocks = errors.New("the system does not lock files here")

// DirLock keeps a directory to one server. It ends with its process, however
// that ends. The file stays, and means nothing while it is not locked.
type DirLock struct {
	file    *os.File
	holder  holder
	shared  error // why the directory is not kept to one server; nil: it is
	release sync.Once
}

// holder is the process that has the lock, as the file records it.
type holder struct {
	PID     int       `json:"pid"`
	Command string    `json:"command"`
	Since   time.Time `json:"since"`
	URL     string    `json:"url,omitempty"` // empty: it is not ready yet
}

// Lock locks a directory, which is made if it doesn't exist. If another
// process, or this one, holds the lock, the error names it and says what to do.
//
// A system without flock (Windows, for one) locks nothing: then this succeeds, and
// Start says so in its log.
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
	if err := l.tell(""); err != nil {
		l.Release()
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	return l, nil
}

// tell writes the holder of the lock and the URL at which it serves.
func (l *DirLock) tell(url string) error {
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

// Release gives the directory back. More than once is as once; nil is fine.
func (l *DirLock) Release() {
	if l != nil {
		l.release.Do(func() { _ = l.file.Close() }) // nothing that was written matters any more
	}
}

// holderOf describes the holder of a locked file, and what can be done.
func holderOf(file *os.File) string {
	text, err := io.ReadAll(io.NewSectionReader(file, 0, holderBytesMax))
	var h holder
	if err != nil || json.Unmarshal(text, &h) != nil || h.PID == 0 { // it has just taken it
		return "by another process: use that server"
	}
	who := fmt.Sprintf("by process %d (%s) since %s: ", h.PID, h.Command, h.Since.Local().Format(time.DateTime))
	if h.URL == "" {
		return who + "use that server when it is ready"
	}
	return who + "use that server, at " + h.URL
}
