//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package devserver

import "os"

// flock locks nothing: this system has no flock.
func flock(*os.File) error { return errNoLocks }
