package settings

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// environFile names the descriptor of the restarted program's environment.
const environFile = "REFOLD_ENVIRON_FD"

// shownVariables stay in /proc/PID/environ, where every process of the same
// user can read them. The Go runtime reads some of them before main, and the
// others identify the process to a person.
var shownVariables = []string{
	"GOCOVERDIR", "GODEBUG", "GOGC", "GOMAXPROCS", "GOMEMLIMIT", "GORACE", "GOTRACEBACK", "HOME", "LD_LIBRARY_PATH", "PATH", "TMPDIR", "USER",
}

// userinfo is the user and password of an address, which --nats may contain.
var userinfo = regexp.MustCompile(`://[^/?#\s,]*@`)

// HideEnvironment removes the environment of this process, and passwords in its
// arguments, from /proc, where a shell that the process starts could read them.
// It executes the program again, once, with both in a file in memory, and
// restores them from there. Call it first in a main that serves a shell, never
// in a test. If it returns an error, nothing has changed.
func HideEnvironment() error {
	if fd := os.Getenv(environFile); fd != "" {
		return restoreEnvironment(fd)
	}
	shown := slices.DeleteFunc(os.Environ(), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return !slices.Contains(shownVariables, name)
	})
	args := slices.Clone(os.Args)
	for i, arg := range args {
		args[i] = userinfo.ReplaceAllString(arg, "://")
	}
	if len(shown) == len(os.Environ()) && slices.Equal(args, os.Args) {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("hide the environment: %w", err)
	}
	fd, err := unix.MemfdCreate("environment", 0) // inherited: no MFD_CLOEXEC
	if err != nil {
		return fmt.Errorf("hide the environment: %w", err)
	}
	f := os.NewFile(uintptr(fd), "environment")
	defer f.Close()
	if _, err = f.WriteString(strings.Join(os.Environ(), "\x00") + argsFollow + strings.Join(os.Args, "\x00")); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err == nil {
		err = syscall.Exec(self, args, append(shown, environFile+"="+strconv.Itoa(fd)))
	}
	return fmt.Errorf("hide the environment: %w", err)
}

// argsFollow separates the variables from the arguments: neither contains a
// zero byte, and no variable is empty.
const argsFollow = "\x00\x00"

// restoreEnvironment sets the variables and arguments that the descriptor holds.
func restoreEnvironment(descriptor string) error {
	fd, err := strconv.Atoi(descriptor)
	if err != nil || fd < 3 {
		return fmt.Errorf("%s=%s: is not a file descriptor; unset it", environFile, descriptor)
	}
	f := os.NewFile(uintptr(fd), "environment")
	text, err := io.ReadAll(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("%s=%s: %w; unset it", environFile, descriptor, err)
	}
	if err := os.Unsetenv(environFile); err != nil {
		return err
	}
	variables, args, ok := strings.Cut(string(text), argsFollow)
	if !ok {
		return fmt.Errorf("%s=%s: holds no arguments; unset it", environFile, descriptor)
	}
	os.Args = strings.Split(args, "\x00")
	for pair := range strings.SplitSeq(variables, "\x00") {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			continue
		}
		if err := os.Setenv(name, value); err != nil {
			return fmt.Errorf("set %s again: %w", name, err)
		}
	}
	return nil
}
