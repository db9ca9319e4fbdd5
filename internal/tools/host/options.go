package host

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/refold/refold/internal/tools/sandbox"
)

// Options configure a Host. The zero value is usable.
type Options struct {
	// WorkDir, if not empty, is the working directory of every session, instead
	// of one directory per session under the host's root. It must exist. All
	// sessions then share its files.
	WorkDir string

	// Route names this host in the host sessions that it opens. If it is a
	// target below that of the tools, such as host-w1, their later calls go to
	// it (bridge.Fleet); otherwise it is for people. Any host with the same
	// root serves the session.
	Route string

	// OutputBytes limits what a result shows of a file or of a process's
	// output. 0: 64 KiB.
	OutputBytes int

	// OutputMax is how much a command may write before it is stopped, shown or
	// not. 0: 256 MiB.
	OutputMax int64

	// Sandbox confines commands. nil: they may do what this process's user may.
	Sandbox *sandbox.Box

	// NoShell, if not empty, is why this host runs no commands. A model that
	// calls the shell gets this text.
	NoShell string

	// ExecTimeout is the timeout of a command without timeout_ms. 0: 60 s.
	// ExecTimeoutMax is the greatest timeout_ms. 0: 10 min.
	ExecTimeout    time.Duration
	ExecTimeoutMax time.Duration

	// IdleTTL expires a host session that no call has used for that long. The
	// next call is refused, and the session's status becomes expired; its files
	// stay. 0: never.
	IdleTTL time.Duration

	// Keep is how long the files of a host session stay after it ended; then
	// Sweep removes them. It has no effect with WorkDir. 0: for ever.
	Keep time.Duration

	// Environ is the environment ("NAME=value") from which commands get the
	// variables in EnvironAllow: names, or prefixes followed by *. Environ nil:
	// this process's. EnvironAllow nil: a list of harmless ones (PATH, HOME, LANG,
	// TMPDIR, those of the Go toolchain …). EnvironAdd is passed on unchanged; from
	// addresses in the others, the part before the @ is removed.
	Environ      []string
	EnvironAllow []string
	EnvironAdd   []string
}

// Validate reports every problem of the options.
func (o Options) Validate() error {
	var errs []error
	if o.OutputBytes < 0 || o.OutputBytes > 0 && o.OutputBytes < 1024 {
		errs = append(errs, fmt.Errorf("output cap of %d bytes: choose at least 1024, or 0 for %d", o.OutputBytes, outputBytesDefault))
	}
	if o.OutputMax < 0 || o.OutputMax > 0 && o.OutputMax < 1024 {
		errs = append(errs, fmt.Errorf("output of %d bytes at most: choose at least 1024, or 0 for %d", o.OutputMax, outputMaxDefault))
	}
	if len(o.Route) > routeBytesMax {
		errs = append(errs, fmt.Errorf("route of %d bytes: choose a name of at most %d", len(o.Route), routeBytesMax))
	}
	if o.ExecTimeout < 0 || o.ExecTimeoutMax < 0 || o.IdleTTL < 0 {
		errs = append(errs, errors.New("a negative duration: choose a positive one, or 0 for the default"))
	}
	if o.Keep != 0 && o.Keep < keepLeast {
		errs = append(errs, fmt.Errorf("files are kept for %v: at least %v, or 0 for ever", o.Keep, keepLeast))
	}
	if d := o.withDefaults(); d.ExecTimeout > d.ExecTimeoutMax {
		errs = append(errs, fmt.Errorf("the default timeout of a command, %v, is over the greatest, %v", d.ExecTimeout, d.ExecTimeoutMax))
	}
	for _, v := range o.EnvironAdd {
		if name, _, ok := strings.Cut(v, "="); !ok || name == "" {
			errs = append(errs, fmt.Errorf("environment variable %q: write NAME=value", v))
		}
	}
	if o.WorkDir != "" {
		if fi, err := os.Stat(o.WorkDir); err != nil {
			errs = append(errs, fmt.Errorf("working directory: %w", err))
		} else if !fi.IsDir() {
			errs = append(errs, fmt.Errorf("working directory %s is not a directory", o.WorkDir))
		}
	}
	return errors.Join(errs...)
}

func (o Options) withDefaults() Options {
	o.OutputBytes = cmp.Or(o.OutputBytes, outputBytesDefault)
	o.OutputMax = cmp.Or(o.OutputMax, outputMaxDefault)
	o.ExecTimeoutMax = cmp.Or(o.ExecTimeoutMax, execTimeoutLimit)
	o.ExecTimeout = cmp.Or(o.ExecTimeout, min(execTimeoutDefault, o.ExecTimeoutMax))
	if o.Environ == nil {
		o.Environ = os.Environ()
	}
	if o.EnvironAllow == nil {
		o.EnvironAllow = environDefault
	}
	return o
}

// environ returns the environment of a command that runs in dir.
func (o Options) environ(dir string) []string {
	env := []string{"PATH=/usr/local/bin:/usr/bin:/bin"}
	for _, v := range o.Environ {
		if name, value, ok := strings.Cut(v, "="); ok && allowed(name, o.EnvironAllow) {
			env = append(env, name+"="+userinfo.ReplaceAllString(value, "://"))
		}
	}
	// The last value of a name counts.
	return append(append(env, o.EnvironAdd...), "PWD="+filepath.Clean(dir))
}

// userinfo matches a user and password in an address, as GOPROXY may have them.
var userinfo = regexp.MustCompile(`://[^/?#\s,|]*@`)

func allowed(name string, list []string) bool {
	return slices.ContainsFunc(list, func(a string) bool {
		prefix, ok := strings.CutSuffix(a, "*")
		return name == a || ok && strings.HasPrefix(name, prefix)
	})
}
