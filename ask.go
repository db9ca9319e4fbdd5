package refold

import (
	"context"
	"errors"
	"fmt"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/source"
)

// AskPerson is the built-in tool ask_person, with which a model asks a person: a
// question, options to choose from, and a JSON schema of the answer, if it must be JSON.
// No process carries the call out. It is open until somebody answers, with
// Session.Reply, refold reply or the HTTP API, for a day, or for as long as
// deadlines_ms.reply of the config says. Give it to [ToolsFrom].
func AskPerson() ToolSource { return waitingTool("ask_person") }

// WaitFor is the built-in tool wait_for, with which a model waits for something that
// another program tells it of, by its name. That program answers as to AskPerson.
func WaitFor() ToolSource { return waitingTool("wait_for") }

// Sleep is the built-in tool sleep, with which a model waits for a time, to the second.
// No process has to run meanwhile.
func Sleep() ToolSource { return waitingTool("sleep") }

type waitingTool string

// OpenTools returns the tool, which nobody serves.
func (name waitingTool) OpenTools(context.Context, source.ToolOptions) (*source.Tools, error) {
	specs, err := source.Wait(string(name))
	if err != nil {
		return nil, err
	}
	return &source.Tools{Specs: specs}, nil
}

// Question is a call that waits for a reply, with its arguments in full.
type Question = client.Question

// Questions returns the calls that wait for a reply, in order. It needs a session-actor.
func (s *Session) Questions(ctx context.Context) ([]Question, error) {
	return s.rt.client.Questions(ctx, s.id)
}

// Questions returns the calls of all sessions that wait for a reply, by session and in
// order: an inbox for a program that shows them to people. It needs a session-actor.
func (rt *Runtime) Questions(ctx context.Context) ([]Question, error) {
	return rt.client.Questions(ctx, "")
}

// Reply answers a question. Where the question has a schema, answer is one JSON text. It
// fails with ErrStale if the call has a result by now or asks something else, and as
// invalid_data with an answer that the schema does not allow: then the call waits on. The
// same answer again is no error.
func (s *Session) Reply(ctx context.Context, q Question, answer string) error {
	return s.reply(ctx, q, answer, client.ReplyOptions{})
}

// Decline says that nobody answers a question, and why. The call fails, the model is shown
// the reason, and the run goes on.
func (s *Session) Decline(ctx context.Context, q Question, reason string) error {
	if reason == "" {
		return fmt.Errorf("decline %s: give a reason: the model is shown it", q.Call)
	}
	return s.reply(ctx, q, "", client.ReplyOptions{Declined: reason})
}

func (s *Session) reply(ctx context.Context, q Question, answer string, o client.ReplyOptions) error {
	if q.Session != s.id {
		return fmt.Errorf("reply to %s: it is of session %q, and not of %s", q.Call, q.Session, s.id)
	}
	err := s.taken(ctx, func() (uint64, error) {
		return s.rt.client.Reply(ctx, q, session.Content{Text: answer}, o)
	})
	if rejectedAs(err, session.RejectStale) {
		err = errors.Join(ErrStale, err)
	}
	return err
}
