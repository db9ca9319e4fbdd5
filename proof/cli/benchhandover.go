package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/refold/refold/proof/chaos"
)

// Handover measures how long handing over takes.
type Handover struct {
	Rounds   int `default:"5" help:"Handovers that are measured by SIGTERM, and as many by SIGKILL."`
	InFlight int `default:"2" help:"Runs in flight of each lane."`
	place
}

// handoverMeant is what handing over should take at most, on a machine that has
// nothing else to do.
var handoverMeant = map[bool]time.Duration{true: 200 * time.Millisecond, false: 3 * time.Second}

// Run kills session-actors, and prints as they hand over.
func (b Handover) Run(ctx context.Context, s Streams) (err error) {
	if err := positive("--rounds and --in-flight", b.Rounds, b.InFlight); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	o := chaos.HandoverOptions{Program: []string{self, "chaos-part"}, Dir: b.Dir, Rounds: b.Rounds, InFlight: b.InFlight}
	silences := map[bool][]time.Duration{}
	err = chaos.Handovers(ctx, o, func(h chaos.Handover) error {
		silences[h.Term] = append(silences[h.Term], h.Silence)
		row := map[string]any{
			"signal": signalOf(h.Term), "lanes": h.Lanes, "first_ms": ms(h.First), "silence_ms": ms(h.Silence), "others_ms": ms(h.Others), "calm_ms": ms(h.Calm), "ended_ms": ms(h.Ended),
		}
		text := fmt.Sprintf("%-7s  %d lanes: nothing was said of one for %.0f ms at most, %.0f ms at least; of the other's lanes %.0f ms at most; just before, of any %.0f ms",
			signalOf(h.Term), h.Lanes, ms(h.Silence), ms(h.First), ms(h.Others), ms(h.Calm))
		if h.Term {
			text += fmt.Sprintf("; it ended after %.0f ms", ms(h.Ended))
		}
		return b.tell(s, row, "%s", text)
	})
	if b.JSON || err != nil {
		return err
	}
	for _, term := range []bool{true, false} {
		all := slices.Sorted(slices.Values(silences[term]))
		_, told := fmt.Fprintf(s.Out, "%-7s  median %.0f ms, worst %.0f ms, of %d; it should take %.0f ms at most on a machine that does nothing else\n",
			signalOf(term), ms(all[len(all)/2]), ms(all[len(all)-1]), len(all), ms(handoverMeant[term]))
		err = errors.Join(err, told)
	}
	return err
}

func signalOf(term bool) string {
	if term {
		return "SIGTERM"
	}
	return "SIGKILL"
}
