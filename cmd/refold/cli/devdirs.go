package cli

import (
	"fmt"
	"path/filepath"
	"strings"
)

// checkWorkdir refuses a --workdir that holds --dir: commands would reach the keys
// and the log of every session.
func (d devCommand) checkWorkdir() error {
	if d.Workdir == "" || !within(realPath(d.Workdir), realPath(d.Dir)) {
		return nil
	}
	text := fmt.Sprintf("dev: --dir %s lies in --workdir %s, where commands run: they would reach all keys and the log", d.Dir, d.Workdir)
	if parent := filepath.Dir(d.Workdir); parent != d.Workdir {
		text += fmt.Sprintf("; keep the files elsewhere, as in --dir %s", filepath.Join(parent, filepath.Base(d.Workdir)+"-refold"))
	}
	return &statusError{statusUsage, text}
}

// within reports whether path is dir or lies in it.
func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// realPath returns a path without the links in its existing part.
func realPath(path string) string {
	if resolved, err := filepath.EvalSymlinks(path); err == nil || path == filepath.Dir(path) {
		return resolved
	}
	return filepath.Join(realPath(filepath.Dir(path)), filepath.Base(path))
}
