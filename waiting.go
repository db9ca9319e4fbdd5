package refold

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/natsio"
)

// Waiting says what a run waits for, if that is in trouble, and again, without a Cause,
// when it goes on. It is no event of the log: a reader gets it while it reads, and not
// again.
type Waiting struct {
	about
	// For is model, tool, step, space; session-actor, if none is heard; or operator, if
	// the session is quarantined.
	For string
	// Target is what bridges serve: a provider, an agent's tools. Empty: session-actor.
	Target string
	// Cause is unserved, if no process serves the target; silent, of a session-actor;
	// quarantined; or the code of the latest failure, such as network, overloaded, auth or lacks, if a
	// key is missing. Empty: it goes on.
	Cause string
	// Detail is for people.
	Detail string
	// Since is when it began; zero: not known.
	Since time.Time
}

const (
	// quietFor is how long nothing happens before a reader asks why, and then how often.
	quietFor = time.Second
	// viewWithin is how long a session-actor may take to say it.
	viewWithin = 2 * time.Second

	forActor      = "session-actor"
	forOperator   = "operator"
	causeSilent   = "silent"
	causeUnserved = "unserved"

	causeQuarantined = "quarantined"
)

// classWords are what readers are told of a class of effects.
var classWords = map[string]string{string(session.ClassLLM): "model"}

// quiet looks why nothing happens in a session.
type quiet struct {
	session *Session
	heard   atomic.Int64 // when something was: Unix nanoseconds
	idle    atomic.Bool  // no run is active
	told    map[string]Waiting
}

// watch tells what a session waits for, when that changes, until ctx ends: the changes,
// and all of it.
func (q *quiet) watch(ctx context.Context, tell func(changes []Waiting, now map[string]Waiting)) {
	each := time.NewTicker(quietFor)
	defer each.Stop()
	for {
		select {
		case <-each.C:
		case <-ctx.Done():
			return
		}
		if q.idle.Load() && len(q.told) == 0 || time.Since(time.Unix(0, q.heard.Load())) < quietFor && len(q.told) == 0 {
			continue
		}
		if changes := q.changes(q.look(ctx)); len(changes) > 0 {
			tell(changes, q.told)
		}
	}
}

// look returns what the session waits for, by target; nil if that can't be known.
func (q *quiet) look(ctx context.Context) map[string]Waiting {
	asking, cancel := context.WithTimeout(ctx, viewWithin)
	defer cancel()
	v, err := q.session.rt.client.View(asking, q.session.id)
	now := map[string]Waiting{}
	switch {
	case ctx.Err() != nil:
		return nil
	case errors.Is(err, natsio.ErrNoView):
		now[forActor] = Waiting{For: forActor, Cause: causeSilent, Detail: "no session-actor is heard: start one, or look whether this program reaches its servers"}
		return now
	case err != nil: // this user may not ask, say
		return nil
	}
	run := uint32(0)
	q.idle.Store(v.Run == nil)
	if v.Run != nil {
		run = v.Run.Number
	}
	if stopped := v.Quarantined; stopped != nil {
		now[forOperator] = Waiting{For: forOperator, Cause: causeQuarantined, Detail: stopped.Reason}
	}
	for _, target := range v.Unserved {
		now[target] = waitingFor(run, target, causeUnserved, "no process serves it")
	}
	for _, t := range v.Troubles {
		w := waitingFor(run, t.Target, t.Code, t.Detail)
		if t.Since > 0 {
			w.Since = time.UnixMilli(t.Since)
		}
		now[t.Target] = w
	}
	return now
}

func waitingFor(run uint32, target, cause, detail string) Waiting {
	class, name, _ := strings.Cut(target, "/")
	if word := classWords[class]; word != "" {
		class = word
	}
	return Waiting{about: about{Run: run}, For: class, Target: name, Cause: cause, Detail: detail}
}

// changes returns what is new in now, and what goes on.
func (q *quiet) changes(now map[string]Waiting) (changes []Waiting) {
	if now == nil {
		return nil
	}
	for key, was := range q.told {
		if _, still := now[key]; !still {
			was.Cause, was.Detail = "", ""
			changes = append(changes, was)
		}
	}
	for key, w := range now {
		if was, told := q.told[key]; !told || was.Cause != w.Cause {
			changes = append(changes, w)
		}
	}
	q.told = now
	return changes
}
