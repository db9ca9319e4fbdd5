package refold

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/codec"
)

// Session is a handle on a conversation with an agent. It is safe for concurrent use.
type Session struct {
	rt    *Runtime
	agent *Agent // nil: of Runtime.Session
	id    string
}

// ID returns the session's id.
func (s *Session) ID() string { return s.id }

// Busy is what happens to a request while a run is active.
type Busy string

// The values of WhenBusy.
const (
	Queue     Busy = session.BusyQueue     // it waits its turn; the default
	Steer     Busy = session.BusySteer     // it is more input for the active run
	Interrupt Busy = session.BusyInterrupt // the active run ends when its open work is settled, and this one is next
	Reject    Busy = session.BusyReject    // it is refused, run_active
)

// File is a file of a request: an image, a PDF or text. NewFile makes one of what a
// program receives, and client.ReadFile one of a file on disk.
type File = client.File

// NewFile reads a file to its end, at most client.FileBytesMax. mediaType is what its
// sender says that it is; empty: nothing. Its content decides: the error says so if it is
// of another type, or of one that no model is shown.
func NewFile(from io.Reader, name, mediaType string) (File, error) {
	return client.NewFile(from, name, mediaType)
}

// AskOption is an option of Session.Ask.
type AskOption func(*asking)

// asking is a request under construction.
type asking struct {
	client.RunOptions
	format json.RawMessage // of the answer; nil: the agent's
	wrong  error
}

// Submission names the request: the same id with the same text is one run, whoever asks,
// and whenever. So a program can ask again after any crash. An id of more than 64 bytes is
// hashed. A session remembers at least its newest 10,000.
func Submission(id string) AskOption {
	if len(id) > session.IDBytesMax {
		id = codec.Sum([]byte(id)).String()
	}
	return func(o *asking) { o.Submission = id }
}

// WhenBusy says what happens to the request while a run is active.
func WhenBusy(b Busy) AskOption { return func(o *asking) { o.WhenBusy = string(b) } }

// Files adds files to the request, after its text. Each is stored as a blob first.
func Files(f ...File) AskOption {
	return func(o *asking) { o.Files = append(o.Files, f...) }
}

// asksMax is how often Ask sets its definition, if others change it each time.
const asksMax = 100

// Ask requests a run. It returns when the session has taken the request, which is then
// in the log: nothing can lose it. If the session has another definition than the
// agent's, Ask sets the agent's first; runs that were requested before keep theirs,
// and so does an open turn.
//
// A *RejectedError says why the session refused the request. If ctx ends, the request
// may have been taken: ask again with the same Submission.
func (s *Session) Ask(ctx context.Context, text string, o ...AskOption) (*Run, error) {
	if s.agent == nil {
		return nil, fmt.Errorf("ask session %s: a session of Runtime.Session has no agent: ask one of Agent.Session", s.id)
	}
	request := asking{RunOptions: client.RunOptions{Agent: s.agent.hash}}
	apply(&request, o)
	options, err := request.options(s.agent.config)
	if err != nil {
		return nil, fmt.Errorf("ask session %s: %w", s.id, err)
	}
	run, _, err := s.ask(ctx, text, options)
	return run, err
}

// ask requests a run under the agent's definition. It returns the request's sequence, too.
func (s *Session) ask(ctx context.Context, text string, options client.RunOptions) (*Run, uint64, error) {
	var refused error
	for range asksMax {
		err := s.agent.define(ctx, s.id)
		if err != nil && !rejectedAs(err, session.RejectSessionClosed) { // a closed one still takes repeats
			return nil, 0, err
		}
		run, seq, err := s.request(ctx, text, options)
		if !rejectedAs(err, session.RejectAgentChanged) {
			return run, seq, err
		}
		s.agent.forget(s.id)
		refused = err
	}
	return nil, 0, fmt.Errorf("ask session %s: other programs set another definition each time: %w", s.id, refused)
}

// request requests a run, and returns it and the request's sequence.
func (s *Session) request(ctx context.Context, text string, o client.RunOptions) (run *Run, seq uint64, err error) {
	run, err = s.placed(ctx, o.Submission, func() (_ uint64, err error) {
		c := s.rt.client
		if o.Operator {
			c = within{s.rt}.Operator()
		}
		seq, err = c.Run(ctx, s.id, text, o)
		return seq, err
	})
	return run, seq, err
}

// placed publishes a request, and returns its run.
func (s *Session) placed(ctx context.Context, submission string, publish func() (uint64, error)) (*Run, error) {
	if s.rt.unread != nil {
		return s.toldPlace(ctx, submission, publish)
	}
	seq, err := publish()
	if err != nil {
		return nil, err
	}
	number, began, err := s.rt.client.Placed(ctx, s.id, seq)
	if err != nil {
		return nil, err
	}
	return &Run{session: s, number: number, began: began}, nil
}

// Run returns a handle on an earlier run. It does no I/O.
func (s *Session) Run(n uint32) *Run { return &Run{session: s, number: n} }

// Steer gives the active run more input before its next turn, and returns that run; or
// the run that it starts, if none is active.
func (s *Session) Steer(ctx context.Context, text string) (*Run, error) {
	return s.placed(ctx, "", func() (uint64, error) { return s.rt.client.Steer(ctx, s.id, text, client.ControlOptions{}) })
}

// taken publishes a request, and waits until the session took or refused it.
func (s *Session) taken(ctx context.Context, publish func() (uint64, error)) error {
	if s.rt.unread != nil {
		return s.toldOutcome(ctx, publish)
	}
	seq, err := publish()
	if err == nil {
		_, err = s.rt.client.Taken(ctx, s.id, seq)
	}
	return err
}

// Pause keeps the active run from beginning turns and calls, until Resume. What is open
// may end. Like all controls it returns when the session took or refused it.
func (s *Session) Pause(ctx context.Context) error {
	return s.taken(ctx, func() (uint64, error) { return s.rt.client.Pause(ctx, s.id, client.ControlOptions{}) })
}

// Budget bounds a run, in tokens and in money.
type Budget = session.Budget

// ResumeOption is an option of Resume.
type ResumeOption func(*resuming)

type resuming struct{ budget *Budget }

// WithBudget replaces the whole budget of the run.
func WithBudget(b Budget) ResumeOption { return func(r *resuming) { r.budget = &b } }

// Resume lets the paused run go on. A run that its budget paused needs a larger one: see
// [WithBudget]. It is refused with the budget that is spent, and paused again with one that
// is too small for its next turn.
func (s *Session) Resume(ctx context.Context, o ...ResumeOption) error {
	var with resuming
	apply(&with, o)
	return s.taken(ctx, func() (uint64, error) { return s.rt.client.Resume(ctx, s.id, with.budget, client.ControlOptions{}) })
}

// Interrupt ends the active run when its open work is settled.
func (s *Session) Interrupt(ctx context.Context) error {
	return s.taken(ctx, func() (uint64, error) { return s.rt.client.Interrupt(ctx, s.id, client.ControlOptions{}) })
}

// Approval is a call that waits for a person, with its arguments in full.
type Approval = client.Approval

// Approvals returns the calls that wait for a person, in order. It needs a
// session-actor.
func (s *Session) Approvals(ctx context.Context) ([]Approval, error) {
	return s.rt.client.Approvals(ctx, s.id)
}

// DecideOption is an option of Approve and Deny.
type DecideOption func(*client.DecideOptions)

// Because gives a denial's reason, which the model is shown.
func Because(reason string) DecideOption { return func(o *client.DecideOptions) { o.Reason = reason } }

// Instead gives the arguments, as JSON, with which an approved call runs.
func Instead(arguments string) DecideOption {
	return func(o *client.DecideOptions) { o.Arguments = arguments }
}

// Approve lets a call run, with the arguments that a shows. It fails with ErrStale if
// the call has others by now, or does not wait any more.
func (s *Session) Approve(ctx context.Context, a Approval, o ...DecideOption) error {
	return s.decide(ctx, s.rt.client.Approve, a, o)
}

// Deny refuses a call, under the same conditions as Approve. The run goes on.
func (s *Session) Deny(ctx context.Context, a Approval, o ...DecideOption) error {
	return s.decide(ctx, s.rt.client.Deny, a, o)
}

func (s *Session) decide(ctx context.Context, publish func(context.Context, Approval, client.DecideOptions) (uint64, error), a Approval, o []DecideOption) error {
	var options client.DecideOptions
	apply(&options, o)
	if a.Session != s.id {
		return fmt.Errorf("decide over %s: it is of session %q, and not of %s", a.Call, a.Session, s.id)
	}
	err := s.taken(ctx, func() (uint64, error) { return publish(ctx, a, options) })
	if rejectedAs(err, session.RejectApprovalStale) {
		err = errors.Join(ErrStale, err)
	}
	return err
}

// SetFacts sets facts of the session, and removes others, from its next turn on: all of
// them or none. Conditions of tools, rules and hooks read them.
func (s *Session) SetFacts(ctx context.Context, set map[string]string, remove ...string) error {
	facts := make(map[string]*string, len(set)+len(remove))
	for name, value := range set {
		facts[name] = &value
	}
	for _, name := range remove {
		if _, both := set[name]; both {
			return fmt.Errorf("fact %s: it is set and removed", name)
		}
		facts[name] = nil
	}
	return s.taken(ctx, func() (uint64, error) { return s.rt.client.SetFacts(ctx, s.id, facts, "") })
}

// View is what a session looks like.
type View = session.View

// View returns what the session looks like now. It needs a session-actor.
func (s *Session) View(ctx context.Context) (View, error) { return s.rt.client.View(ctx, s.id) }

// End closes the session for good: its runs are cancelled, and it takes no more
// requests. It is not called Close, since nobody should defer it.
func (s *Session) End(ctx context.Context) error {
	return s.taken(ctx, func() (uint64, error) { return s.rt.client.CloseSession(ctx, s.id, "") })
}
