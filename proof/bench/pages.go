package bench

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const (
	pageSize  = 4096
	keepEvery = 15 * time.Second // a round of all files
)

// keepFiles has the system keep in memory what it has of the files under a
// directory until its context ends, as it does anyway where nobody else wants
// that memory: it locks them, and where it may not (RLIMIT_MEMLOCK) reads a
// byte of each page over and over, a round in keepEvery. A system that pages
// out memory untouched for a minute has dropped a log that slept for two. A
// load from it would then measure the disk. Such a system drops some touched
// pages too.
func keepFiles(ctx context.Context, dir string) error {
	k := keeper{}
	defer k.release()
	for {
		files, err := filesUnder(dir)
		if err != nil {
			return err
		}
		for _, name := range files {
			if err := k.keep(name); err != nil {
				return err
			}
			if err := pass(ctx, keepEvery/time.Duration(len(files))); err != nil {
				return nil
			}
		}
		if len(files) == 0 {
			return nil
		}
	}
}

// keeper is the files that are locked, by name: where they are mapped.
type keeper map[string][]byte

// keep locks a file, as far as it goes now, else touches it. One that is not there
// any more is none.
func (k keeper) keep(name string) error {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() == int64(len(k[name])) {
		return err
	}
	mapped, err := lock(f, int(info.Size()))
	if err != nil {
		_, err = touch(f)
		return err
	}
	k.drop(name)
	k[name] = mapped
	return nil
}

// lock maps a file and locks what it maps.
func lock(f *os.File, size int) ([]byte, error) {
	mapped, err := syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	if err := syscall.Mlock(mapped); err != nil {
		return nil, errors.Join(err, syscall.Munmap(mapped))
	}
	return mapped, nil
}

func (k keeper) drop(name string) {
	if mapped := k[name]; mapped != nil {
		_ = syscall.Munmap(mapped) // which unlocks it
		delete(k, name)
	}
}

func (k keeper) release() {
	for name := range k {
		k.drop(name)
	}
}

// filesUnder lists the regular files under a directory whose files come and go.
func filesUnder(dir string) (files []string, err error) {
	err = filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case e.Type().IsRegular():
			files = append(files, name)
		}
		return nil
	})
	return files, err
}

// touch reads a byte of each page of a file, and tells of how many.
func touch(f io.ReaderAt) (pages int64, err error) {
	var b [1]byte
	for ; ; pages++ {
		if _, err := f.ReadAt(b[:], pages*pageSize); errors.Is(err, io.EOF) {
			return pages, nil
		} else if err != nil {
			return pages, err
		}
	}
}
