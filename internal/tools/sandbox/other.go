//go:build !linux

package sandbox

import (
	"errors"
	"os/exec"
)

// Child does nothing: it is for Linux.
func Child() {}

type cgroups struct{}

func findCgroups() (*cgroups, error) { return nil, errors.ErrUnsupported }

type way struct {
	works bool
	user  bool
	means string
}

func forbidTracing() {}

func unable() string { return "this system is not Linux" }

func ways() []way { return nil }

func (b *Box) try(way, trial) (End, error) { return End{}, errors.ErrUnsupported }

// Confined is a confined command, which exists only on Linux.
type Confined struct{ *exec.Cmd }

// Command returns a command that does not start. New returns no Box here.
func (b *Box) Command([]string, string, []string, ...string) *Confined {
	return &Confined{Cmd: &exec.Cmd{Err: errors.ErrUnsupported}}
}

// Stop does nothing.
func (c *Confined) Stop() {}

// KillsDescendants reports false.
func (c *Confined) KillsDescendants() bool { return false }

// End returns an error.
func (c *Confined) End() (End, error) { return End{}, errors.ErrUnsupported }

// Text is never called.
func (e End) Text() string { return "" }
