package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/subjects"
)

// bridgeCommand is about the bridges that run.
type bridgeCommand struct {
	Doctor doctorCommand `cmd:"" help:"Say which targets the bridges serve, what they lack, and which open effects no bridge serves; exit status 1 then."`
}

// doctorCommand compares what is asked for with what is served.
type doctorCommand struct {
	Within    time.Duration `default:"2s" help:"For how long to listen to bridges: each says twice a second that it is there."`
	MCP       []string      `name:"mcp" type:"existingfile" placeholder:"FILE" help:"File of MCP servers: ask them for their tools, and say which are not what FILE.lock has. It starts programs that FILE names."`
	MCPWithin time.Duration `name:"mcp-within" default:"30s" help:"For how long to wait for an MCP server."`
}

// Help is what the help says beside the flags.
func (doctorCommand) Help() string {
	return `It looks at what sessions wait for now. Whether everything is served that they
may ask for later, refold tools check tells. What bridges have found wrong with
tools of MCP servers it tells too; a bridge finds it when it first needs a server,
and --mcp asks them now:

    refold bridge doctor --mcp servers.yaml`
}

// Limits of one look.
const (
	doctorViewsMax  = 256              // sessions of one target that are asked what they wait for
	doctorViewsOnce = 8                // of them at once
	doctorShown     = 3                // effects of a target that are named
	doctorWithin    = 10 * time.Second // for the views
	lacksPrefix     = "lacks "         // begins a bridge's metadata on what a target lacks
)

// diagnosis is what the doctor found.
type diagnosis struct {
	bridges []bus.Running
	served  bus.Served
	open    map[string][]string // what waits, "s1 r1t1", by the target that nobody serves
	asked   map[string]int      // names of effects of such targets, open or not
	more    map[string]int      // sessions of such targets that were not asked
	silent  bool                // no session-actor answered
	wrong   []string            // of what bridges say is wrong
}

// Run prints what was found; the error says that something is unserved.
func (d doctorCommand) Run(ctx context.Context, s streams, conn connection) error {
	b, err := conn.dial(ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	found := &diagnosis{open: map[string][]string{}, asked: map[string]int{}, more: map[string]int{}}
	if err := found.listen(ctx, b, d.Within); err != nil {
		return err
	}
	names, err := b.EffectNames(ctx)
	if err != nil {
		return err
	}
	c, err := conn.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := found.ask(ctx, c, names); err != nil {
		return err
	}
	told := found.tell(s)
	if err := checkAllMCP(ctx, s, d.MCP, d.MCPWithin); err != nil {
		return err
	}
	return told
}

// listen finds who serves what: those that answer, and those that are heard.
func (d *diagnosis) listen(ctx context.Context, b *bus.Bus, within time.Duration) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	members, err := b.TrackMembers(ctx, subjects.KindBridge)
	if err != nil {
		return err
	}
	heard := time.NewTimer(within)
	defer heard.Stop()
	if d.bridges, err = b.Discover(ctx, "bridge"); err != nil {
		return err
	}
	select {
	case <-heard.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	d.served, _ = members.Serving()
	if d.wrong, err = troubles(ctx, b, d.bridges); err != nil {
		return err
	}
	answered := make(bus.Served)
	for _, bridge := range d.bridges {
		for _, target := range strings.Fields(bridge.Metadata["targets"]) {
			answered[target]++
		}
	}
	for target, n := range answered {
		d.served[target] = max(d.served[target], n)
	}
	return nil
}

// ask asks the sessions of targets that nobody serves what they wait for.
func (d *diagnosis) ask(ctx context.Context, c *client.Client, names []subjects.EffectName) error {
	sessions := map[string]map[string]bool{} // by target
	for _, name := range names {
		of := target(name.Class, name.Target)
		if name.Class == session.ClassWake || d.served[of] > 0 { // session-actors settle wakes too
			continue
		}
		d.asked[of]++
		if sessions[of] == nil {
			sessions[of] = map[string]bool{}
		}
		sessions[of][name.Session] = true
	}
	ctx, cancel := context.WithTimeout(ctx, doctorWithin)
	defer cancel()
	for of, all := range sessions {
		some := slices.Sorted(maps.Keys(all))
		if len(some) > doctorViewsMax {
			d.more[of] = len(some) - doctorViewsMax
			some = some[:doctorViewsMax]
		}
		open, err := waitingOf(ctx, c, of, some)
		switch {
		case errors.Is(err, bus.ErrNoView):
			d.silent = true
		case err != nil:
			return err
		}
		if len(open) > 0 {
			d.open[of] = open
		}
	}
	return nil
}

// waitingOf returns what is open of a target in these sessions. The error is
// one of those that views had.
func waitingOf(ctx context.Context, c *client.Client, of string, sessions []string) (open []string, err error) {
	var mu sync.Mutex
	var asking sync.WaitGroup
	turn := make(chan struct{}, doctorViewsOnce)
	for _, sid := range sessions {
		turn <- struct{}{}
		asking.Go(func() {
			defer func() { <-turn }()
			v, failed := c.View(ctx, sid)
			mu.Lock()
			defer mu.Unlock()
			if failed != nil {
				err = failed
				return
			}
			for _, effect := range waitingFor(&v, of) {
				open = append(open, sid+" "+effect)
			}
		})
	}
	asking.Wait()
	slices.Sort(open)
	return open, err
}

// tell prints the bridges, what they lack, and what nobody serves.
func (d *diagnosis) tell(s streams) error {
	if err := d.printBridges(s.out); err != nil {
		return err
	}
	for _, line := range d.wrong {
		fmt.Fprintln(s.out, line)
	}
	if d.silent {
		fmt.Fprintln(s.err, "refold: warning: no session-actor answers, so what is open can't be told: start session-actor")
	}
	unsure := 0
	for _, of := range slices.Sorted(maps.Keys(d.asked)) {
		open := d.open[of]
		switch {
		case len(open) > 0:
			text := strings.Join(open[:min(len(open), doctorShown)], ", ")
			if len(open) > doctorShown {
				text += ", …"
			}
			if d.more[of] > 0 {
				text += fmt.Sprintf("; %d more sessions were not asked", d.more[of])
			}
			fmt.Fprintf(s.out, "unserved: %s: %d open (%s): %s\n", of, len(open), text, howToServeTarget(of))
		case d.silent:
			unsure++
			fmt.Fprintf(s.out, "unserved, perhaps: %s: %d asked of late: %s\n", of, d.asked[of], howToServeTarget(of))
		}
	}
	if len(d.open) > 0 || unsure > 0 {
		return &statusError{statusFailed, ""}
	}
	_, err := fmt.Fprintln(s.out, "all that is open is served")
	return err
}

// printBridges prints a row for each bridge, and what its targets lack.
func (d *diagnosis) printBridges(out io.Writer) error {
	if len(d.served) == 0 {
		_, err := fmt.Fprintln(out, "no bridge runs: start bridge --model MODEL, or --tools TOOLS, or both")
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "TARGET\tBRIDGES\tLACKS")
	for _, of := range slices.Sorted(maps.Keys(d.served)) {
		var lacks []string
		for _, bridge := range d.bridges {
			if lack := bridge.Metadata[lacksPrefix+of]; lack != "" {
				lacks = append(lacks, bridge.Metadata["name"]+": "+lack)
			}
		}
		slices.Sort(lacks)
		fmt.Fprintf(table, "%s\t%d\t%s\n", of, d.served[of], strings.Join(slices.Compact(lacks), "; "))
	}
	return table.Flush()
}
