package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/refold/refold/bridge/executor"
)

// Codes of errors that a model sees. They are part of the tools' surface: names
// stay.
const (
	CodeInvalidArguments = "invalid_arguments" // the tool does not accept them
	CodeToolUnbound      = "tool_unbound"      // the host has no tool with that id
	CodeNoHostSession    = "no_host_session"   // none is open
	CodePathEscapes      = "path_escapes"      // the path leads out of the working directory
	CodeNotFound         = "not_found"         // no such file or directory
	CodeIsDirectory      = "is_directory"      // a directory where a file is needed
	CodeNotDirectory     = "not_directory"     // a file where a directory is needed
	CodeNotRegular       = "not_regular"       // a device, pipe, socket or link
	CodeBinaryFile       = "binary_file"       // not text
	CodeTooLarge         = "too_large"         // over a limit
	CodePermission       = "permission_denied" // the host's user has no permission
	CodeNoMatch          = "no_match"          // edit_file: the old text is not there
	CodeManyMatches      = "many_matches"      // edit_file: it is there more than once
	CodePatchFailed      = "patch_failed"      // apply_patch: nothing was changed
	CodePatchPartial     = "patch_partial"     // apply_patch: writing failed, and so did undoing it
	CodeTimeout          = "timeout"           // a command was stopped by its own timeout
	CodeResourceLimit    = "resource_limit"    // a command was stopped for its memory, its processes or its output
	CodeCancelled        = "cancelled"         // withdrawn before it had an effect
	CodeIO               = "io_error"          // an error of the file system
)

// errStopped is returned for a command that was stopped because its call was
// cancelled: its outcome is unknown.
var errStopped = errors.New("stopped half way")

func refuse(code, format string, args ...any) *executor.Error {
	return &executor.Error{Code: code, Detail: fmt.Sprintf(format, args...)}
}

// result turns the return values of a tool into its settlement.
func result(output string, err error) executor.Result {
	if err == nil {
		return executor.Result{Output: output}
	}
	if errors.Is(err, errStopped) {
		return executor.Result{Output: output, Unknown: true}
	}
	e := typed(err)
	if len(e.Detail) > detailMax {
		// The transcript keeps only short details; the model should see all of it.
		output = strings.TrimSuffix(e.Detail+"\n"+output, "\n")
		cut := *e
		cut.Detail = cutText(e.Detail, detailMax-len("…")) + "…"
		e = &cut
	}
	return executor.Result{Output: output, Error: e}
}

// typed returns err with a code.
func typed(err error) *executor.Error {
	var known *executor.Error
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return refuse(CodeCancelled, "the call was cancelled before it was done; nothing was changed")
	}
	name := "the path"
	var pe *fs.PathError
	if errors.As(err, &pe) {
		name = pe.Path
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return refuse(CodeNotFound, "no such file or directory: %s; list_dir or glob shows what is there", name)
	case errors.Is(err, fs.ErrPermission):
		return refuse(CodePermission, "the host may not access %s; choose another path", name)
	case errors.Is(err, syscall.ENOTDIR):
		return refuse(CodeNotDirectory, "a part of the path is a file, not a directory: %s", name)
	case errors.Is(err, syscall.EISDIR):
		return refuse(CodeIsDirectory, "%s is a directory; list_dir shows what is in it", name)
	case pe != nil && pe.Err.Error() == "path escapes from parent":
		// os.Root found it: the path was changed to lead out after it was
		// resolved. The package exports no error for it.
		return escapes(name)
	}
	return refuse(CodeIO, "the file system says: %v; try again or choose another path", err)
}

func escapes(name string) *executor.Error {
	return refuse(CodePathEscapes, "%s leads out of the working directory; use a path inside it, relative to it", name)
}

// cutText returns at most n bytes of s, without splitting a character.
func cutText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// validText replaces invalid UTF-8.
func validText(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
