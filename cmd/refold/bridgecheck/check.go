// Package bridgecheck tests a bridge of tools, in any language, and reports
// which rules of docs/bridges.md it breaks.
//
// # Path
//
// Run plays every part except the bridge: it stores effects as a session-actor
// does (effect.go), holds claims as another bridge does, and makes the server
// redeliver effects. It receives all messages of the bridge (watch.go). Each check
// (calls.go, claims.go, slow.go) compares these with one rule.
//
// # Laws
//
//   - A check sees only messages. It detects a second run of a call by its
//     second settlement; a run without a settlement stays undetected.
//   - Checks run one after the other, and each publishes its own effects.
//   - All effects are of one session that no session-actor has opened. Its
//     settlements stay in the log, so Run belongs on a server for tests.
//
// # Testing
//
// The tests run every check against the Go bridge, which passes, and against a
// small bridge with one mistake at a time, which must fail.
package bridgecheck

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/natsio"
)

// Options name the bridge to test, and the calls to test it with.
type Options struct {
	Target    string // that the bridge serves, of class tool
	Tool      string // tool_id of the calls
	Arguments string // a JSON object: for calls that succeed soon
	Slow      string // for a call that takes longer than a lease; "": there is none
	Large     string // for a call whose result is above 256 KiB; "": there is none
	Instance  string // of this check: a ULID. Its session is named after it

	// Stop sends the bridge SIGTERM and waits for its end. It returns an error if
	// the bridge ended with another status than 0. Nil: the bridge was not
	// started here. not started here.
	Stop func(context.Context) error
	// Own: nothing else uses the server, so its consumer may be reset.
	Own bool

	Within time.Duration // for the bridge to start, and for a call that is not slow
	Quiet  time.Duration // how long to wait for something that must not happen
}

// Verdict is the outcome of a check.
type Verdict string

// The verdicts.
const (
	OK      Verdict = "ok"
	Failed  Verdict = "FAILED"
	Skipped Verdict = "skipped"
)

// Result is the result of one check.
type Result struct {
	Check   string  `json:"check"`
	Verdict Verdict `json:"verdict"`
	Seen    string  `json:"seen,omitempty"`    // what the bridge did, or why the check was skipped
	Rule    string  `json:"rule,omitempty"`    // the broken rule
	Section string  `json:"section,omitempty"` // of docs/bridges.md
}

// check tests one rule that is visible from outside.
type check struct {
	name, rule, section string
	run                 func(*checker, context.Context) error
}

// finding is the error of a check that found a rule broken: what the bridge did.
type finding string

func (f finding) Error() string { return string(f) }

func found(format string, values ...any) error { return finding(fmt.Sprintf(format, values...)) }

// unchecked is the error of a check that can't be made, with the reason.
type unchecked string

func (u unchecked) Error() string { return string(u) }

// checks are all checks, in order: the first ones find out what the others need.
var checks = []check{
	{"heartbeat", "a heartbeat on refold.alive.bridge.<instance> every 500 ms names the targets", "Heartbeats", (*checker).heartbeat},
	{"consumer", "the bridge pulls from the durable consumer of its target, which acknowledges explicitly and delivers without limit", "Setup", (*checker).consumer},
	{"call", "a call is claimed under the instance of the heartbeats, settled, and then acknowledged", "What to do with a delivery", (*checker).call},
	{"retry-safe call", "a retry-safe call is settled and then acknowledged", "What to do with a delivery", (*checker).safeCall},
	{"redelivered when settled", "an effect that this process settled is acknowledged and not run again", "Redelivery and restarts", (*checker).again},
	{"late", "past start_by nothing starts: the claim is marked withdrawn, and the settlement is failed, deadline_exceeded", "Deadlines", (*checker).late},
	{"withdrawn", "an effect whose claim is marked withdrawn is acknowledged, and neither run nor settled", "The rule table", (*checker).withdrawn},
	{"claim lost", "a call that another live bridge claimed is given back, and neither run, settled nor acknowledged", "The rule table", (*checker).lost},
	{"holder gone", "a call whose holder sent no heartbeat for 5 s is settled outcome_unknown, and not run", "The rule table", (*checker).gone},
	{"unknown field", "an effect with a field that the bridge does not know is given back with a delay, and neither run, settled nor acknowledged", "Effects that you can't read", (*checker).unknownField},
	{"newer version", "an effect of another version is given back with a delay, and neither run, settled nor acknowledged", "Effects that you can't read", (*checker).newer},
	{"unreadable effect", "an effect that can't be read is not settled, and does not stop the bridge", "Effects that you can't read", (*checker).unreadable},
	{"large result", "text above 256 KiB is a blob in REFOLD_BLOBS under the hash of its content", "Large results", (*checker).large},
	{"lease", "a call that runs extends its lease with +WPI, in time", "Leases", (*checker).lease},
	{"redelivered while it runs", "an effect that is in progress is not run a second time", "Redelivery and restarts", (*checker).whileRunning},
	{"cancel", "a call that the session cancels is stopped, and settled within 5 s as outcome_unknown or cancelled", "Cancellation", (*checker).cancel},
	{"run time", "a call that runs for longer than run_ms is stopped, and settled outcome_unknown", "Deadlines", (*checker).runTime},
	{"stop", "on SIGTERM the bridge settles or gives back what it has, and exits with status 0", "Stop", (*checker).stop},
}

// checker runs the checks.
type checker struct {
	Options
	bus    *bus.Bus
	nc     *nats.Conn
	js     jetstream.JetStream
	seen   *watch
	clock  *natsio.Clock // the server's: bridges compare start_by with it
	opened int

	leaseTime time.Duration // ack_wait of the consumer
	settled   *testCall     // by the check "call"
	slowTook  time.Duration // duration of a slow call; 0: not known
}

// Run runs all checks and calls report with each result. It returns an error if
// the server does not answer, or if the bridge does not pull.
func Run(ctx context.Context, b *bus.Bus, o Options, report func(Result)) error {
	return run(ctx, b, natsio.NewLocalClock(), o, checks, report)
}

func run(ctx context.Context, b *bus.Bus, local natsio.LocalClock, o Options, checks []check, report func(Result)) error {
	c := &checker{Options: o, bus: b, clock: b.NewClock(local)}
	c.nc, c.js = b.NC, b.JS
	_ = c.clock.Measure(ctx) // else it is this machine's
	var err error
	if c.seen, err = c.listen(); err != nil {
		return err
	}
	defer c.seen.close()
	for _, one := range checks {
		r := Result{Check: one.name, Verdict: OK}
		switch err := one.run(c, ctx).(type) { // checks return these as they are
		case nil:
		case finding:
			r.Verdict, r.Seen, r.Rule, r.Section = Failed, err.Error(), one.rule, one.section
		case unchecked:
			r.Verdict, r.Seen = Skipped, err.Error()
		default:
			return fmt.Errorf("check %q: %w", one.name, err)
		}
		report(r)
		if one.name == "consumer" && r.Verdict == Failed {
			return fmt.Errorf("no bridge can be checked on the target %s", o.Target)
		}
	}
	return nil
}
