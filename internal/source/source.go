// Package source is what package refold and the packages that implement
// refold.Source or refold.ToolSource agree on. It is internal, so that no others do.
package source

import (
	"log/slog"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold/client"
)

// Options are those of refold.Open.
type Options struct {
	Prefix string       // of all subjects
	Logger *slog.Logger // not nil
}

// Opened is a log at hand. One of InProcess and Like is given, or else an address.
type Opened struct {
	InProcess nats.InProcessConnProvider // a server in this process
	Context   string                     // with InProcess: the context file of this process's user
	Like      *nats.Conn                 // a connection of the program
	URL       string                     // of servers, with Creds or Context, if neither of the two is given
	Creds     string                     // path of a credentials file
	Client    *client.Client             // in place of all these: a connection, or an archive; the runtime closes it

	ContextFile string       // by which other programs of this machine connect; empty: none
	Failed      <-chan error // delivers why the source ended by itself; nil: it can't
	Close       func()       // ends it
}
