package worker

import (
	"errors"
	"fmt"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/subjects"
)

// effect is one effect as it was published. Exactly one of generation, call and own is
// set.
type effect struct {
	name        subjects.EffectName
	generation  *session.Generation
	call        *session.ToolCall
	own         any           // of a safeClass: what its read returned
	startBy     time.Time     // it must not start later
	runTime     time.Duration // the limit of one start
	incarnation uint64        // of the connection that delivered it
	bytes       digest        // of the payload, in this process
	hash        string        // SHA-256 of the payload, for claims; empty: no claim is needed
}

// errClass says that this package does not execute effects of the class.
var errClass = errors.New("this bridge does not know it")

// errNewer says that only bridges of a newer release may be able to read an effect.
var errNewer = errors.New("this bridge is too old for it: upgrade it")

// undecoded is the error of a payload that this release can't decode. A canonical
// map may be an effect of a newer release.
func undecoded(subject string, payload []byte, err error) error {
	var fields codec.Pairs
	if codec.IsMap(payload) && codec.Unmarshal(payload, &fields) == nil {
		return fmt.Errorf("decode %s: %w (%w)", subject, errNewer, err)
	}
	return fmt.Errorf("decode %s: %w", subject, err)
}

// decodeEffect reads an effect's payload, and checks that it names the same
// effect as its subject.
func decodeEffect(name subjects.EffectName, subject string, payload []byte) (*effect, error) {
	e := &effect{name: name}
	ops, known := classOps[name.Class]
	if !known {
		return nil, fmt.Errorf("%s: class %s: %w", subject, name.Class, errClass)
	}
	h, err := ops.decode(e, payload)
	switch {
	case err != nil:
		return nil, undecoded(subject, payload, err)
	case h.version < session.Version || h.version > newestVersion(name.Class):
		return nil, fmt.Errorf("%s: version %d, and this bridge reads %d: %w", subject, h.version, newestVersion(name.Class), errNewer)
	case h.name != name:
		return nil, fmt.Errorf("%s: its payload names %s/%s, %s of %s", subject, h.name.Class, h.name.Target, h.name.Effect, h.name.Session)
	case h.runMS <= 0:
		return nil, fmt.Errorf("%s: run_ms is %d", subject, h.runMS)
	}
	e.runTime = time.Duration(h.runMS) * time.Millisecond
	e.startBy = time.UnixMilli(h.startBy)
	e.bytes = digestOf(payload)
	if e.claimed() {
		e.hash = codec.Sum(payload).String()
	}
	return e, nil
}

// newestVersion returns the newest version of the effects of a class that bridges read.
func newestVersion(c session.Class) int {
	if c == session.ClassLLM {
		return session.WindowVersion
	}
	return session.Version
}

func (e *effect) late(now time.Time) bool { return now.After(e.startBy) }

// claimed reports whether the effect starts only with a claim.
func (e *effect) claimed() bool { return e.generation != nil || e.call != nil && !e.call.RetrySafe }

// unsafe reports whether the outcome of the effect is unknown if its process dies.
func (e *effect) unsafe() bool { return e.call != nil && !e.call.RetrySafe }

// safe reports whether the effect may be executed twice without harm.
func (e *effect) safe() bool {
	return e.call != nil && e.call.RetrySafe || e.own != nil
}
