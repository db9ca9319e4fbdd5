package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/transcript"
)

// adoptCommand moves sessions to newer rules.
type adoptCommand struct {
	asJSON
	Sessions  []string `arg:"" name:"session" help:"The sessions. None of them may have an active run."`
	Rules     int      `placeholder:"N" help:"The version of the rules. Default: the newest one that this program knows."`
	DryRun    bool     `help:"Say what would have gone otherwise under these rules, and adopt nothing."`
	Differing bool     `help:"Adopt them also if something of the session's history would have gone otherwise. Nothing that is done is done again."`
}

// adopted is what came of a session.
type adopted struct {
	client.RulesCompared
	Adopted uint64 `json:"adopted,omitempty"` // sequence of the event that moved the session
}

func (a adoptCommand) Run(ctx context.Context, s streams, conn connection) error {
	if a.Rules == 0 {
		a.Rules = session.RulesVersion
	}
	c, err := conn.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if !a.DryRun {
		if err := a.known(ctx, c); err != nil {
			return err
		}
	}
	kept := 0
	for _, sid := range a.Sessions {
		compared, err := c.CompareRules(ctx, sid, a.Rules)
		if err != nil {
			return err
		}
		r := adopted{RulesCompared: compared}
		if differs := r.Departing > 0 && !a.Differing; !a.DryRun && !differs {
			r.Adopted, err = a.adopt(ctx, c, &r)
		} else if differs && r.Rules < a.Rules {
			kept++
		}
		if a.JSON {
			printJSON(s.out, r)
		} else {
			a.print(s, &r)
		}
		if err != nil {
			return withAdvice(err, sid)
		}
	}
	if kept > 0 && !a.DryRun {
		return &statusError{statusFailed, transcript.Count(kept, "session") + " not moved, since something would have gone otherwise: --differing moves them all the same, and nothing that is done is done again"}
	}
	return nil
}

// known fails if a session-actor runs that does not know the rules: it would end.
func (a adoptCommand) known(ctx context.Context, c *client.Client) error {
	fleet, err := c.Fleet(ctx, 3*time.Second)
	if err != nil {
		return err
	}
	var old []string
	for _, actor := range fleet.Actors {
		if actor.Rules < a.Rules {
			old = append(old, fmt.Sprintf("%s knows rules %d", actor.Instance, actor.Rules))
		}
	}
	if len(old) > 0 {
		return &statusError{statusFailed, fmt.Sprintf("session-actors would end, since they don't know rules %d: upgrade them first (%s)", a.Rules, strings.Join(old, ", "))}
	}
	return nil
}

// adopt moves a session, one version after the other.
func (a adoptCommand) adopt(ctx context.Context, c *client.Client, r *adopted) (seq uint64, err error) {
	for rules := r.Rules + 1; rules <= a.Rules; rules++ {
		if seq, err = c.AdoptRules(ctx, r.Session, rules, ""); err != nil {
			return 0, err
		}
		if _, err = c.Taken(ctx, r.Session, seq); err != nil {
			return 0, err
		}
	}
	return seq, nil
}

func (a adoptCommand) print(s streams, r *adopted) {
	switch {
	case r.Rules >= a.Rules:
		fmt.Fprintf(s.out, "session %s follows rules %d\n", r.Session, r.Rules)
		return
	case r.Departing == 0:
		fmt.Fprintf(s.out, "session %s: its %s fold to the same under rules %d\n", r.Session, transcript.Count(int(r.Events), "event"), a.Rules)
	default:
		fmt.Fprintf(s.out, "session %s: %d of %s would have left something else under rules %d\n", r.Session, r.Departing, transcript.Count(int(r.Events), "event"), a.Rules)
	}
	for _, d := range r.Departures {
		var what []string
		if d.Notices {
			what = append(what, "notices")
		}
		what = append(what, d.Effects...)
		if d.State {
			what = append(what, "the state")
		}
		fmt.Fprintf(s.out, "  %d  %s  %s\n", d.Seq, d.Type, strings.Join(what, ", "))
	}
	if r.Departing > len(r.Departures) {
		fmt.Fprintf(s.out, "  and %d more\n", r.Departing-len(r.Departures))
	}
	if r.Adopted != 0 {
		fmt.Fprintf(s.out, "session %s follows rules %d from %d on\n", r.Session, a.Rules, r.Adopted)
	}
}
