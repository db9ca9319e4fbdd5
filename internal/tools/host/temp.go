package host

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// A command in the sandbox has a temporary directory in its working directory: a
// file can't be renamed from one mount to another, and the working directory is a
// mount of its own there. Walks of file tools pass over it (walk.go), and git
// ignores it.

// makeTemp creates a temporary directory. A working directory that its commands
// made read-only has none: they must be able to undo that.
func (p *workdir) makeTemp() (rel string, err error) {
	rel = tempPrefix + strings.ToLower(rand.Text()[:10])
	if err := p.root.Mkdir(rel, 0o700); err != nil {
		if errors.Is(err, fs.ErrPermission) {
			return ".", nil
		}
		return "", err
	}
	return rel, p.root.WriteFile(path.Join(rel, ".gitignore"), []byte("*\n"), 0o600)
}

// removeTemp removes a temporary directory. Sweep removes what is left.
func (p *workdir) removeTemp(rel string) {
	if rel != "." {
		_ = removeAll(p.root, rel)
	}
}

// removeAll removes a directory, even if a command took all rights away from
// directories in it.
func removeAll(root *os.Root, rel string) error {
	err := root.RemoveAll(rel)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	_ = fs.WalkDir(root.FS(), rel, func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = root.Chmod(name, 0o700) // before it is read
		}
		return nil
	})
	return root.RemoveAll(rel)
}

// removeTemps removes temporary directories that commands of a host that was
// killed left in the working directories of host sessions. Other hosts may use
// young ones, so it looks for them once an hour.
func (h *Host) removeTemps(records []os.DirEntry, log *slog.Logger) {
	last, now := h.temps.Load(), time.Now()
	if now.Sub(time.Unix(0, last)) < leftoverAge || !h.temps.CompareAndSwap(last, now.UnixNano()) {
		return
	}
	seen := map[string]bool{}
	for _, e := range records {
		id, isRecord := strings.CutSuffix(e.Name(), ".json")
		rec, err := h.record(id)
		if !isRecord || err != nil || seen[rec.WorkDir] {
			continue
		}
		seen[rec.WorkDir] = true
		p, err := openWorkdir(h.base, filepath.FromSlash(rec.WorkDir))
		if err != nil {
			continue // it is gone, or its next call tells
		}
		if err := p.removeTemps(leftoverAge + h.opts.ExecTimeoutMax); err != nil {
			log.Warn("temporary_directory_not_removed", "session", rec.Session, "host_session", rec.ID, "error", err.Error())
		}
		p.close()
	}
}

// removeTemps removes the temporary directories that have not changed for some
// time.
func (p *workdir) removeTemps(age time.Duration) error {
	dir, err := p.root.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	var all []error
	for {
		entries, err := dir.ReadDir(readAtOnce)
		for _, e := range entries {
			if !strings.HasPrefix(e.Name(), tempPrefix) {
				continue
			}
			if fi, err := e.Info(); err == nil && time.Since(fi.ModTime()) > age {
				all = append(all, removeAll(p.root, e.Name()))
			}
		}
		if err != nil { // the end, too
			return errors.Join(all...)
		}
	}
}
