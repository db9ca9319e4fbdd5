package worker

import (
	"context"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/prompt"
	"github.com/refold/refold/subjects"
)

// Transport is what the worker needs of NATS. nats.go fulfils it with
// internal/bus; the tests with a world in memory that keeps the same promises.
//
// An error of a method is a trouble that may pass, unless its doc says
// otherwise; errors are those of natsio and journal.
type Transport interface {
	prompt.Store

	// BeginClaim begins to store c as the named claim, if there is none. answer, which
	// is to be called once, waits for it and returns the claim that stands. won says
	// that it equals c: stored now, or by an earlier call. An error leaves open whether
	// c stands.
	BeginClaim(ctx context.Context, name subjects.ClaimName, c Claim) (answer func() (stands Claim, won bool, err error))

	// Publish stores an event of sid and returns its sequence. An event with
	// the same id and payload that was stored within the last two minutes
	// counts as this one. A *natsio.MaxPayloadError never passes; journal.ErrIDTaken
	// passes with another id. The payload must not be changed any more.
	Publish(ctx context.Context, door session.Door, sid, id string, payload []byte) (seq uint64, err error)

	// LastModelEvent returns the latest event of sid on the door llm, as the
	// stream's leader has it, and natsio.ErrNotFound if there is none.
	LastModelEvent(ctx context.Context, sid string) (session.Event, error)

	// View asks for the session's View. No answer is an error.
	View(ctx context.Context, sid string) (session.View, error)

	// PutBlob stores content.
	PutBlob(ctx context.Context, content []byte) (codec.Ref, error)

	// Heard returns when a heartbeat of an instance was heard last, those of
	// our own included.
	Heard(instance string) (at time.Time, ok bool)

	// Live publishes a streaming delta of sid; nobody waits for it.
	Live(sid string, payload []byte) error
}

// Source delivers the effects of one class and target.
type Source interface {
	// Run calls handle for each effect that is delivered, in goroutines, at
	// most slots at once and never twice at once for one effect; until handle
	// returns, or the delivery is done, the lease is extended. Run returns when ctx ends, at
	// once, or when Drain is done. An error means that it could not begin.
	Run(ctx context.Context, slots int, handle func(Delivery)) error
	// Drain ends the pulling and returns when every delivery is done, or when
	// ctx ends.
	Drain(ctx context.Context) error
}

// Delivery is one delivery of an effect's message. It takes one answer; its
// loss does no harm, the effect then comes again.
type Delivery interface {
	Subject() string
	// Name returns what the subject says, or why it is no effect's.
	Name() (subjects.EffectName, error)
	Payload() []byte
	// Traced reports whether the session-actor traces the effect's run.
	Traced() bool
	// Ack says that nothing is left to say about the effect.
	Ack()
	// GiveBack offers the effect again, to any bridge, after delay.
	GiveBack(delay time.Duration)
	// Done frees the delivery's slot. It is called once, before handle returns or
	// instead: an executor may end its goroutine.
	Done()
}

// Claim is what a claim says: which process starts an effect, or that none may.
type Claim struct {
	By        string // instance; empty when withdrawn
	Hash      string // of the effect's payload; empty: the claim holds for any payload
	Withdrawn bool
}
