package worker

import (
	"errors"
	"fmt"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/subjects"
)

// effect is one effect as it was asked. Exactly one of generation, call, step
// and space is set.
type effect struct {
	name        subjects.EffectName
	generation  *session.Generation
	call        *session.ToolCall
	step        *executor.StepRequest
	items       []session.Item // of step: the latest of the transcript
	space       *session.Space
	startBy     time.Time     // past it nothing is started
	runTime     time.Duration // what one start may take
	incarnation uint64        // of the connection that delivered it
	bytes       digest        // of the payload, in this process
	hash        string        // SHA-256 of the payload, for claims; empty: it needs none
}

// errClass says that an effect is of a class that this package does not execute.
var errClass = errors.New("neither llm, tool, step nor space")

// errNewer says that bridges of a newer release may read an effect.
var errNewer = errors.New("this bridge is too old for it: upgrade it")

// undecoded is the error of a payload that is not as this release knows it. A
// canonical map may be what a newer one asks.
func undecoded(subject string, payload []byte, err error) error {
	var fields codec.Pairs
	if codec.IsMap(payload) && codec.Unmarshal(payload, &fields) == nil {
		return fmt.Errorf("decode %s: %w (%w)", subject, errNewer, err)
	}
	return fmt.Errorf("decode %s: %w", subject, err)
}

// decodeEffect reads an effect's payload, and makes sure that it speaks of the
// effect that its subject names.
func decodeEffect(name subjects.EffectName, subject string, payload []byte) (effect, error) {
	e := effect{name: name}
	of, known := classOps[name.Class]
	if !known {
		return effect{}, fmt.Errorf("%s: class %s: %w", subject, name.Class, errClass)
	}
	is, err := of.decode(&e, payload)
	switch {
	case err != nil:
		return effect{}, undecoded(subject, payload, err)
	case is.version != session.Version:
		return effect{}, fmt.Errorf("%s: version %d, and this bridge reads %d: %w", subject, is.version, session.Version, errNewer)
	case is.name != name:
		return effect{}, fmt.Errorf("%s: its payload is of %s/%s, %s of %s", subject, is.name.Class, is.name.Target, is.name.Effect, is.name.Session)
	case is.runMS <= 0:
		return effect{}, fmt.Errorf("%s: run_ms is %d", subject, is.runMS)
	}
	e.runTime = time.Duration(is.runMS) * time.Millisecond
	e.startBy = time.UnixMilli(is.startBy)
	e.bytes = digestOf(payload)
	if e.claimed() {
		e.hash = codec.Sum(payload).String()
	}
	return e, nil
}

// late reports that nothing may be started any more.
func (e *effect) late(now time.Time) bool { return now.After(e.startBy) }

// claimed reports that the effect starts only with a claim.
func (e *effect) claimed() bool { return e.generation != nil || e.call != nil && !e.call.RetrySafe }

// safe reports that the effect may be executed twice without harm.
func (e *effect) safe() bool {
	return e.call != nil && e.call.RetrySafe || e.step != nil || e.space != nil
}
