//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package devserver

import (
	"errors"
	"os"
	"syscall"
)

// flock locks a file until it is closed or the process ends. Child processes don't
// inherit the lock: Go closes its files in them.
func flock(file *os.File) error {
	for {
		switch err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return errLocked
		case errors.Is(err, errors.ErrUnsupported), errors.Is(err, syscall.ENOLCK): // of the file system
			return errors.Join(errNoLocks, err)
		default:
			return err
		}
	}
}
