package host

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
)

// write is the change of one path.
type write struct {
	path    string // resolved
	remove  bool   // remove the file; otherwise it gets the content
	content string
	existed bool // whether there was a file, to undo the write; only set for several writes
	before  string
	mode    fs.FileMode // 0: that of the present file, else 0644

	temp string // the new content, in the file's directory
}

// commit makes all writes or, as far as possible, none. First it writes all new
// content to temporary files in the same directories. Then it renames them one
// by one; if a rename fails, it undoes the earlier ones. Only a crash between
// two renames leaves a part.
func (p *workdir) commit(ctx context.Context, writes []write) (err error) {
	s := &stage{dir: p}
	defer func() {
		if err != nil {
			s.clear(writes)
		}
	}()
	for i := range writes {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !writes[i].remove {
			if err := s.put(&writes[i]); err != nil {
				return err
			}
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	for i := range writes {
		if writes[i].remove {
			writes[i].mode, _ = p.mode(writes[i].path) // for undo
		}
		if err := p.swap(writes[i]); err != nil {
			return p.undo(writes[:i], err)
		}
	}
	for _, w := range writes {
		// Makes the new name survive a loss of power, like the content. It is
		// no failure if a directory can't be synced (some file systems).
		if d, err := p.root.Open(path.Dir(w.path)); err == nil {
			_ = d.Sync()
			d.Close()
		}
	}
	return nil
}

// stage is the temporary files and directories of a commit.
type stage struct {
	dir  *workdir
	dirs []string // created for it
}

// put writes the new content to a temporary file in the same directory, with
// the mode of the present file.
func (s *stage) put(w *write) (err error) {
	if err := s.mkdirs(path.Dir(w.path)); err != nil {
		return err
	}
	mode, exact := w.mode, w.mode != 0
	if !exact {
		mode, exact = s.dir.mode(w.path)
	}
	w.temp = path.Join(path.Dir(w.path), ".refold-"+rand.Text()+".tmp")
	f, err := s.dir.root.OpenFile(w.temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		w.temp = ""
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if exact {
		if err := f.Chmod(mode); err != nil { // the umask has removed bits
			return err
		}
	}
	if _, err := f.WriteString(w.content); err != nil {
		return err
	}
	return f.Sync()
}

// mode returns the permissions of the file at a path, or those of a new file.
func (p *workdir) mode(rel string) (mode fs.FileMode, exists bool) {
	if fi, err := p.root.Lstat(rel); err == nil {
		return fi.Mode().Perm(), true
	}
	return 0o644, false
}

// mkdirs creates a directory and its parents, and records the new ones.
func (s *stage) mkdirs(dir string) error {
	if dir == "." {
		return nil
	}
	_, err := s.dir.root.Lstat(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return err // if it is not a directory, creating the file fails
	}
	if err := s.mkdirs(path.Dir(dir)); err != nil {
		return err
	}
	if err := s.dir.root.Mkdir(dir, 0o755); err != nil {
		if errors.Is(err, fs.ErrExist) { // another process was faster
			return nil
		}
		return err
	}
	s.dirs = append(s.dirs, dir)
	return nil
}

// clear removes the temporary files and new directories. What can't be removed
// is left: no other file is affected.
func (s *stage) clear(writes []write) {
	for _, w := range writes {
		if w.temp != "" {
			_ = s.dir.root.Remove(w.temp)
		}
	}
	for _, dir := range slices.Backward(s.dirs) {
		_ = s.dir.root.Remove(dir) // fails unless it is empty
	}
}

// swap renames the new file to its path, or removes the path.
func (p *workdir) swap(w write) error {
	if w.remove {
		return p.root.Remove(w.path)
	}
	return p.root.Rename(w.temp, w.path)
}

func (p *workdir) undo(done []write, cause error) error {
	for _, w := range slices.Backward(done) {
		back := write{path: w.path, remove: !w.existed, content: w.before, mode: w.mode}
		s := &stage{dir: p}
		var err error
		if !back.remove {
			err = s.put(&back)
		}
		if err == nil {
			err = p.swap(back)
		}
		if err != nil {
			s.clear([]write{back})
			return refuse(CodePatchPartial, "writing failed (%v), and so did undoing it for %s (%v); read the files again before going on", cause, w.path, err)
		}
	}
	if len(done) > 0 {
		return fmt.Errorf("%w (what had been written was changed back)", cause)
	}
	return cause
}
