package bench

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

const (
	pageSize  = 4096
	keepEvery = 15 * time.Second // a round of all files
)

// keepFiles reads a byte of each page of the files under a directory, over and
// over, until its context ends: so the system keeps in memory what it has of them,
// as it does anyway where nobody else wants that memory. A system that pages out what
// nobody has touched for a minute has none of a log that slept for two, and who
// loads from it then measures its disk. A round takes keepEvery, of which a page
// takes less than a microsecond.
func keepFiles(ctx context.Context, dir string) error {
	for {
		files, err := filesUnder(dir)
		if err != nil {
			return err
		}
		for _, name := range files {
			if _, err := touch(name); err != nil {
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

// touch reads a byte of each page of a file, if that is still there, and tells of
// how many.
func touch(name string) (pages int64, err error) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var b [1]byte
	for ; ; pages++ {
		if _, err := f.ReadAt(b[:], pages*pageSize); errors.Is(err, io.EOF) {
			return pages, nil
		} else if err != nil {
			return pages, err
		}
	}
}
