package sandbox

import (
	"errors"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// NewBy is New with one of the ways to start children, as New does it where the
// better ones are not allowed.
func NewBy(c Config, means string) (*Box, Report, error) {
	c = c.withDefaults()
	b := &Box{config: c}
	for _, w := range ways() {
		if w.means == means {
			trials, clean, err := newTrial()
			if err != nil {
				return nil, Report{}, err
			}
			defer clean()
			end, err := b.try(w, trials)
			if err != nil {
				return nil, Report{}, err
			}
			b.way = w
			b.judge(*end.Found)
			b.tryCgroups(trials)
			return b, b.report, nil
		}
	}
	return nil, Report{}, errors.New("no such way: " + means)
}

// Report returns what New reports.
func (b *Box) Report() Report { return b.report }

// Means says how the box starts children.
func (b *Box) Means() string { return b.way.means }

// Means are all ways to start children, the best first.
func Means() (all []string) {
	for _, w := range ways() {
		all = append(all, w.means)
	}
	return all
}

// SystemPaths returns what every command may read.
func SystemPaths() []string { return slices.Concat(systemRead, systemFiles, systemDevices) }

// RefuseNamespaces makes this thread, and what it executes, unable to create
// namespaces, as container runtimes do.
func RefuseNamespaces() error {
	const spaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC
	var f filter
	f.decide(abi{
		absent: []uint32{unix.SYS_CLONE3},
		masked: []masked{{unix.SYS_CLONE, []mask{{0, spaces}}}, {unix.SYS_UNSHARE, []mask{{0, spaces}}}},
	}, true)
	p := unix.SockFprog{Len: uint16(len(f)), Filter: &f[0]}
	return errors.Join(
		unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
		unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&p)), 0, 0),
	)
}
