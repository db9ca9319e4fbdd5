// Package cli has the commands of the proof kit: chaos and bench. `refold` has them
// with the flags that most people need; `go run ./proof/kit` with all.
//
// The commands are structs for github.com/alecthomas/kong. Their Run methods take
// a context and Streams, which the program binds.
package cli

import "io"

// Streams are where a command reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Exit statuses of an Error.
const (
	Failed = 1 // a trial or a command failed
	Usage  = 2 // the arguments are wrong
	Left   = 3 // everything tried is right, but time ran out before the end
)

// Error ends the program with a status.
type Error struct {
	Status int
	Text   string
}

func (e *Error) Error() string { return e.Text }

// ExitStatus returns the status.
func (e *Error) ExitStatus() int { return e.Status }
