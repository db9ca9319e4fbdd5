package worker

import (
	"context"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/prompt"
	"github.com/refold/refold/subjects"
)

// Transport is what the worker needs of NATS. nats.go implements it with
// internal/bus; the tests in memory, with the same promises.
//
// An error of a method is temporary unless its doc says otherwise; errors are those
// of natsio and journal.
type Transport interface {
	prompt.Store

	// BeginClaim begins to store c as the named claim, if there is none. The
	// caller calls answer once: it waits, and returns the stored claim. won
	// reports that it equals c, stored now or by an earlier call. After an error
	// c may be stored.
	BeginClaim(ctx context.Context, name subjects.ClaimName, c Claim) (answer func() (stands Claim, won bool, err error))

	// Publish stores an event of sid and returns its sequence. An event with the
	// same id and payload, stored within the last two minutes, counts as this
	// one. A *natsio.MaxPayloadError is permanent; after journal.ErrIDTaken
	// another id succeeds. The caller must not change the payload afterwards.
	Publish(ctx context.Context, door session.Door, sid, id string, payload []byte) (seq uint64, err error)

	// LastModelEvent returns the latest event of sid on the door llm, as the
	// stream's leader has it, and natsio.ErrNotFound if there is none.
	LastModelEvent(ctx context.Context, sid string) (session.Event, error)

	// View requests the session's View. No answer is an error.
	View(ctx context.Context, sid string) (session.View, error)

	// PutBlob stores content.
	PutBlob(ctx context.Context, content []byte) (codec.Ref, error)

	// KeepBlob reports whether content is stored, without reading it, and keeps it from a
	// sweep until the caller has named it.
	KeepBlob(ctx context.Context, ref codec.Ref) (bool, error)

	// Heard returns when the last heartbeat of an instance arrived, which may be
	// this process.
	Heard(instance string) (at time.Time, ok bool)

	// Live publishes a streaming delta of sid, without an acknowledgement.
	Live(sid string, payload []byte) error
}

// Source delivers the effects of one class and target.
type Source interface {
	// Run calls handle for each delivered effect, in goroutines: at most slots at
	// once, and one at a time for an effect. It extends the lease until the
	// delivery is done. Run returns as soon as ctx ends, or when Drain is done.
	// An error means that it could not begin.
	Run(ctx context.Context, slots int, handle func(Delivery)) error
	// Drain stops pulling and returns when every delivery is done, or when ctx
	// ends.
	Drain(ctx context.Context) error
}

// Delivery is one delivery of an effect's message. It takes one answer; if the
// answer is lost, the effect is delivered again, which does no harm.
type Delivery interface {
	Subject() string
	// Name returns the name in the subject, or an error if it is not an effect's.
	Name() (subjects.EffectName, error)
	Payload() []byte
	// Traceparent is the parent of the spans of its starts, empty if the session-actor
	// does not trace the effect's run.
	Traceparent() string
	// Again reports whether the server remembers an earlier delivery.
	Again() bool
	// Ack acknowledges the effect: it needs no more deliveries.
	Ack()
	// GiveBack has the effect delivered again, to any bridge, after delay.
	GiveBack(delay time.Duration)
	// Done frees the delivery's slot. It is called once, before handle returns; if
	// the executor ends its goroutine, handle never returns.
	Done()
}

// Claim states which process starts an effect, or that none may.
type Claim struct {
	By        string // instance; empty when withdrawn
	Hash      string // of the effect's payload; empty: the claim holds for any payload
	Withdrawn bool
	Released  bool // By has given the effect back in order: it did not die of it
}
