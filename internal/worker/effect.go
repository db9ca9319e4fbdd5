package worker

import (
	"errors"
	"fmt"
	"strings"
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

// errClass says that an effect is of a class that this package does not carry
// out.
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
	var said subjects.EffectName
	var version int
	var runMS, startBy int64
	switch name.Class {
	case session.ClassLLM:
		g, err := readGeneration(&name, payload)
		if err != nil {
			return effect{}, undecoded(subject, payload, err)
		}
		e.generation = g
		said = subjects.EffectName{Class: g.Class, Target: g.Provider, Session: g.Session, Effect: g.Effect}
		version, runMS, startBy = g.V, g.RunMS, g.StartBy
	case session.ClassTool:
		c, err := readCall(&name, subject, payload)
		if err != nil {
			return effect{}, undecoded(subject, payload, err)
		}
		e.call = c
		said = subjects.EffectName{Class: c.Class, Target: name.Target, Session: c.Session, Effect: c.Effect}
		version, runMS, startBy = c.V, c.RunMS, c.StartBy
	case session.ClassStep:
		p := new(session.Step)
		err := codec.Unmarshal(payload, p)
		if err == nil {
			e.step, err = stepRequest(p)
			e.items = p.Items
		}
		if err != nil {
			return effect{}, undecoded(subject, payload, err)
		}
		said = subjects.EffectName{Class: p.Class, Target: p.Hook, Session: p.Session, Effect: p.Effect}
		version, runMS, startBy = p.V, p.RunMS, p.StartBy
	case session.ClassSpace:
		p := new(session.Space)
		if err := codec.Unmarshal(payload, p); err != nil {
			return effect{}, undecoded(subject, payload, err)
		}
		e.space = p
		said = subjects.EffectName{Class: p.Class, Target: name.Target, Session: p.Session, Effect: p.Effect}
		version, runMS, startBy = p.V, p.RunMS, p.StartBy
	default:
		return effect{}, fmt.Errorf("%s: class %s: %w", subject, name.Class, errClass)
	}
	switch {
	case version != session.Version:
		return effect{}, fmt.Errorf("%s: version %d, and this bridge reads %d: %w", subject, version, session.Version, errNewer)
	case said != name:
		return effect{}, fmt.Errorf("%s: its payload is of %s/%s, %s of %s", subject, said.Class, said.Target, said.Effect, said.Session)
	case runMS <= 0:
		return effect{}, fmt.Errorf("%s: run_ms is %d", subject, runMS)
	}
	e.runTime = time.Duration(runMS) * time.Millisecond
	e.startBy = time.UnixMilli(startBy)
	e.bytes = digestOf(payload)
	if e.claimed() {
		e.hash = codec.Sum(payload).String()
	}
	return e, nil
}

// readGeneration is codec.Unmarshal for a generation of that name. It reads itself:
// looking up how its type is read takes as long as reading it.
func readGeneration(name *subjects.EffectName, payload []byte) (*session.Generation, error) {
	g := &session.Generation{Effect: name.Effect, Provider: name.Target, Session: name.Session}
	if n, ok := g.ReadCanonical(payload); ok && n == len(payload) && n <= codec.BytesMax {
		return g, nil
	}
	*g = session.Generation{} // nothing may be left of what was expected
	return g, codec.Unmarshal(payload, g)
}

// readCall is the same for a tool call.
func readCall(name *subjects.EffectName, subject string, payload []byte) (*session.ToolCall, error) {
	batch, _, _ := strings.Cut(name.Effect, "c") // r1t2c0 is of r1t2
	c := &session.ToolCall{
		Batch: batch, Effect: name.Effect, Session: name.Session,
		IdempotencyKey: subject[max(0, len(subject)-len(name.Session)-1-len(name.Effect)):], // as the subject ends
	}
	if n, ok := c.ReadCanonical(payload); ok && n == len(payload) && n <= codec.BytesMax {
		return c, nil
	}
	*c = session.ToolCall{}
	return c, codec.Unmarshal(payload, c)
}

// late reports that nothing may be started any more.
func (e *effect) late(now time.Time) bool { return now.After(e.startBy) }

// claimed reports that the effect starts only with a claim.
func (e *effect) claimed() bool { return e.generation != nil || e.call != nil && !e.call.RetrySafe }

// safe reports that the effect may be carried out twice without harm.
func (e *effect) safe() bool {
	return e.call != nil && e.call.RetrySafe || e.step != nil || e.space != nil
}
