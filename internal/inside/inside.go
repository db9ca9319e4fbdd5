// Package inside is how packages of this module reach what a refold.Runtime has inside.
// Users can't import it, so the surface of package refold stays small.
package inside

import (
	"context"
	"encoding/json"

	"github.com/refold/refold/client"
)

// Runtime is a refold.Runtime from inside.
type Runtime interface {
	// Client returns the runtime's connection. The runtime closes it.
	Client() *client.Client
	// Act gives the runtime connections for what its own user may not do: to configure
	// sessions, to decide over calls, and to erase. A nil one leaves it as it is. The caller calls
	// it before all else, and closes them after the runtime.
	Act(operator, approver, eraser *client.Client)
	// Operator returns the connection that configures sessions.
	Operator() *client.Client
	// Approver returns the connection that decides over calls.
	Approver() *client.Client
	// Eraser returns the connection that deletes messages.
	Eraser() *client.Client
	// Agents returns the names of the agents, sorted.
	Agents() []string
	// Define adds an agent that other processes serve. config is as for
	// client.Client.Configure and names a provider and a model, registry is as for
	// SetRegistry.
	Define(name string, config, registry json.RawMessage) error
	// Set gives a session the definition of an agent. It returns when the session has
	// taken it.
	Set(ctx context.Context, agent, sid string) error
	// Ask requests a run, as refold.Session.Ask does, with options that have no Agent. An
	// empty agent leaves the session's definition as it is. tools are specs of tools that
	// nobody serves, which the definition has besides its own.
	Ask(ctx context.Context, agent, sid, text string, o client.RunOptions, tools ...json.RawMessage) (Asked, error)
	// Hold keeps what readers of a session share from the event at seq on, and returns when
	// it hears the session's models: the updates of a reader that comes before leave is
	// called have the text that is written from now on. ok is false if it is kept from a
	// later event on: then nothing is held.
	Hold(ctx context.Context, sid string, seq uint64) (leave func(), ok bool, err error)
	// Before returns the position before the first update of the event at seq.
	Before(seq uint64) string
	// Place returns what an update's position names: an event, and how many of its updates
	// the reader has. ok is false if a text is none.
	Place(position string) (seq uint64, n int, ok bool)
}

// Asked is a request that a session has taken.
type Asked struct {
	Seq   uint64 // of the request
	Run   uint32
	Began uint64 // sequence of the first event about the run

	Left []string // tools that were not added: the agent has one of the name
}

// Of returns a *refold.Runtime from inside. Package refold sets it.
var Of func(runtime any) Runtime
