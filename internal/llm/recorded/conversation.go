package recorded

import (
	"encoding/hex"
	"strings"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/llm"
)

// Conversation is one recorded conversation. It is immutable.
type Conversation struct {
	ID     string
	System string // the leading system message; not compared with requests
	Runs   []Run
}

// Run is a user message and the model's turns after it.
type Run struct {
	User  string
	Turns []Turn
}

// Turn is one message of the model: text, calls, or both.
type Turn struct {
	Text  string
	Calls []Call
}

// Call is a recorded call with its result.
type Call struct {
	ProviderID string
	Name       string
	Arguments  string // JSON text as the model wrote it
	Result     string
}

// End is how a run ends: the lifecycle and code of its RunFinished.
type End struct {
	Lifecycle string // completed, failed
	Code      string // recording_ended, or empty
}

// Users returns the user messages, each the input of one run.
func (c *Conversation) Users() []string {
	users := make([]string, len(c.Runs))
	for i := range c.Runs {
		users[i] = c.Runs[i].User
	}
	return users
}

// Session returns the name of the session that holds this conversation.
func (c *Conversation) Session() string { return sessionOf(c.ID) }

// Ends returns how the last run ends.
func (c *Conversation) Ends() End { return c.Runs[len(c.Runs)-1].Ends() }

// Ends returns how the run ends: completed if its last turn makes no calls,
// otherwise with recording_ended, because the next turn is missing.
func (r *Run) Ends() End {
	if n := len(r.Turns); n > 0 && len(r.Turns[n-1].Calls) == 0 {
		return End{Lifecycle: "completed"}
	}
	return End{Lifecycle: "failed", Code: llm.CodeRecordingEnded}
}

// Calls returns how many calls the conversation has.
func (c *Conversation) Calls() (n int) {
	for range c.calls {
		n++
	}
	return n
}

// calls yields the calls in order.
func (c *Conversation) calls(yield func(position, *Call) bool) {
	for r := range c.Runs {
		for t, turn := range c.Runs[r].Turns {
			for i := range turn.Calls {
				if !yield(position{run: r + 1, turn: t + 1, call: i}, &turn.Calls[i]) {
					return
				}
			}
		}
	}
}

// call returns the call at a position; ok is false if there is none.
func (c *Conversation) call(p position) (*Call, bool) {
	if p.run > len(c.Runs) {
		return nil, false
	}
	turns := c.Runs[p.run-1].Turns
	if p.turn > len(turns) || p.call >= len(turns[p.turn-1].Calls) {
		return nil, false
	}
	return &turns[p.turn-1].Calls[p.call], true
}

// sessionOf derives a session name from a conversation's id. A long one is cut
// and made unique by its hash.
func sessionOf(id string) string {
	name := strings.Map(func(c rune) rune {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-':
			return c
		}
		return '_'
	}, id)
	if len(name) <= sessionBytesMax {
		return name
	}
	hash := codec.Sum([]byte(id))
	tail := "-" + hex.EncodeToString(hash[:4])
	return name[:sessionBytesMax-len(tail)] + tail
}

// Conversations returns all conversations in the order of the file. The caller
// must not change them.
func (r *Recording) Conversations() []*Conversation { return r.conversations }

// Conversation returns the conversation with this id.
func (r *Recording) Conversation(id string) (*Conversation, bool) {
	for _, c := range r.conversations {
		if c.ID == id {
			return c, true
		}
	}
	return nil, false
}

// OfSession returns the conversation of a session: its Session is the session's
// name, or the part of the name before a "--".
func (r *Recording) OfSession(session string) (*Conversation, bool) {
	for {
		if c, ok := r.bySession[session]; ok {
			return c, true
		}
		cut := strings.LastIndex(session, "--")
		if cut < 0 {
			return nil, false
		}
		session = session[:cut]
	}
}
