package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/presence"
	streamconf "github.com/refold/refold/internal/streams"
	"github.com/refold/refold/subjects"
)

// bridgeCommand has the commands about bridges.
type bridgeCommand struct {
	Serve  bridgeServeCommand `cmd:"" passthrough:"" help:"Run the bridge refold-bridge; all arguments are its own: refold bridge serve --help lists them."`
	Doctor doctorCommand      `cmd:"" help:"List the targets that bridges serve, what they lack, the open effects that no bridge serves, and what keeps the streams from working; exit status 1 if there are any."`
	Check  bridgeCheckCommand `cmd:"" help:"Test a bridge, in any language, and list the rules of docs/bridges.md that it breaks; exit status 1 if there are any."`
}

// doctorCommand compares the open effects with the served targets.
type doctorCommand struct {
	Within    time.Duration `default:"2s" help:"How long to listen for bridges at most. Each sends a heartbeat twice a second; the wait ends early if all open effects are served."`
	MCP       []string      `name:"mcp" type:"existingfile" placeholder:"FILE" help:"File of MCP servers: ask them for their tools, and list those that differ from FILE.lock. It starts programs that FILE names."`
	MCPWithin time.Duration `name:"mcp-within" default:"30s" help:"How long to wait for an MCP server."`
	asJSON
}

// Help returns the help text above the flags.
func (doctorCommand) Help() string {
	return `It lists what sessions wait for now. To check everything that they may need later,
use refold tools check. It also lists problems that bridges report with tools of MCP
servers. A bridge finds these when it first needs a server; --mcp connects to the
servers now:

    refold bridge doctor --mcp servers.yaml`
}

// Limits of one diagnosis.
const (
	doctorViewsMax  = 256              // sessions of one target whose views are read
	doctorViewsOnce = 8                // views at once
	doctorShown     = 3                // named effects of a target
	doctorWithin    = 10 * time.Second // for the views, and for the look at events that are skipped
)

// diagnosis is what the doctor found.
type diagnosis struct {
	bridges   *presence.Fleet
	served    map[string]int
	open      map[string][]string // waiting effects, "s1 r1t1", by the target that no bridge serves
	published map[string]int      // number of stored effects of such targets, open or not
	more      map[string]int      // sessions of such targets whose views were not read
	silent    bool                // no session-actor is heard, or one did not answer
	wrong     []string            // troubles that bridges report
	failing   int                 // targets of bridges that do not work
	streams   []string            // what is wrong with the streams
	foreign   bool                // another system is heard
}

// Run prints the diagnosis; it returns an error if something is unserved.
func (d doctorCommand) Run(ctx context.Context, s streams, conn connection, full *Full) error {
	b, err := conn.dial(ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	found := &diagnosis{open: map[string][]string{}, published: map[string]int{}, more: map[string]int{}}
	if err := found.checkStreams(ctx, s, b); err != nil {
		return err
	}
	found.findSkipped(ctx, b)
	names, err := b.EffectNames(ctx)
	if err != nil {
		for _, t := range found.streams {
			fmt.Fprintln(s.err, "streams: "+t)
		}
		return err
	}
	if err := found.listen(ctx, s, b, d.Within, names); err != nil {
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
	unserved := found.tell(s, d.JSON)
	if err := d.checkAllMCP(ctx, s, full); err != nil {
		return err
	}
	return unserved
}

// checkStreams finds what is wrong with the streams. A user who may not ask gets a
// warning.
func (d *diagnosis) checkStreams(ctx context.Context, s streams, b *bus.Bus) error {
	want, err := streamconf.ParseConf(streamconf.File, b.Names())
	if err != nil {
		return err
	}
	found, err := b.Check(ctx, want)
	for _, f := range found {
		d.streams = append(d.streams, f.String())
	}
	if err != nil {
		fmt.Fprintf(s.err, "refold: warning: %v\n", err)
	}
	return nil
}

// tellForeign adds the other systems that were heard, by their heartbeats.
func (d *diagnosis) tellForeign(b *bus.Bus) {
	for _, f := range b.Foreigners() {
		d.failing++
		d.foreign = true
		d.wrong = append(d.wrong, "foreign: "+f.String()+": "+natsio.SeparateSystems)
	}
}

// findSkipped finds events that name no session, and those of other systems. They are no
// trouble of the streams, so an error tells nothing, also that the log is too large to
// look through. A log that can't be read, which checkStreams tells, delays the diagnosis
// by doctorWithin.
func (d *diagnosis) findSkipped(ctx context.Context, b *bus.Bus) {
	ctx, cancel := context.WithTimeout(ctx, doctorWithin)
	defer cancel()
	if nameless, events, err := b.Nameless(ctx); err == nil && len(nameless) > 0 {
		text := strings.Join(nameless[:min(len(nameless), doctorShown)], ", ")
		if len(nameless) > doctorShown {
			text += ", …"
		}
		d.wrong = append(d.wrong, fmt.Sprintf("skipped: %d events name no session, and nobody folds them (%s): find who published them; a name is 1 to 64 of A-Za-z0-9_-", events, text))
	}
	if foreign, err := b.ForeignEvents(ctx); err == nil && foreign != "" {
		d.wrong = append(d.wrong, "skipped: "+foreign)
	}
}

// listen finds the bridges and their targets. It listens longer if there are
// effects, open or not, of a target that no bridge serves.
func (d *diagnosis) listen(ctx context.Context, s streams, b *bus.Bus, within time.Duration, names []subjects.EffectName) (err error) {
	tracking, stop := context.WithCancel(ctx)
	defer stop()
	actors, err := b.TrackMembers(tracking, subjects.KindSessionActor)
	if err != nil {
		return err
	}
	d.bridges, err = listen(ctx, s, b, within, func(f *presence.Fleet) bool {
		served := f.Served()
		return !slices.ContainsFunc(names, func(name subjects.EffectName) bool {
			return served[target(name.Class, name.Target)] == 0
		})
	})
	if err != nil {
		return err
	}
	d.served = d.bridges.Served()
	reported, err := troubles(ctx, b, d.bridges.Answered)
	d.wrong = append(d.wrong, reported...)
	d.tellForeign(b)
	clock := b.NewClock(natsio.NewLocalClock())
	_ = clock.Measure(ctx) // else it is this machine's
	now := clock.Now()
	for _, bridge := range d.bridges.Heard {
		d.tellClock("bridge "+d.bridges.Name(bridge.Instance), bridge.AheadMS)
		for _, t := range bridge.Troubles {
			if t.Code != session.TroubleExecutor && t.Code != session.TroubleLacks { // reported elsewhere
				d.failing++
				d.wrong = append(d.wrong, troubleLine(d.bridges.Name(bridge.Instance)+",", &t, now))
			}
		}
	}
	d.silent = !hears(ctx, actors)
	for _, actor := range actors.Known() {
		var body struct {
			AheadMS  int64    `json:"clock_ahead_ms"`
			NotReady []string `json:"not_ready"`
		}
		if json.Unmarshal(actor.Body, &body) != nil {
			continue
		}
		d.tellClock("session-actor "+actor.Instance, body.AheadMS)
		for _, why := range body.NotReady {
			if !slices.ContainsFunc(d.streams, func(told string) bool { return strings.HasPrefix(told, why) }) {
				d.streams = append(d.streams, "session-actor "+actor.Instance+": "+why)
			}
		}
	}
	return err
}

// tellClock adds that a machine's clock is wrong.
func (d *diagnosis) tellClock(whose string, aheadMS int64) {
	if aheadMS == 0 {
		return
	}
	text := "ahead of"
	if aheadMS < 0 {
		text = "behind"
	}
	d.failing++
	d.wrong = append(d.wrong, fmt.Sprintf("clock: %s: its machine's clock is %v %s the NATS server's: set both by NTP",
		whose, (time.Duration(aheadMS)*time.Millisecond).Abs().Round(100*time.Millisecond), text))
}

// ask reads the views of sessions with effects of unserved targets.
func (d *diagnosis) ask(ctx context.Context, c *client.Client, names []subjects.EffectName) error {
	sessions := map[string]map[string]bool{} // by target
	for _, name := range names {
		of := target(name.Class, name.Target)
		if d.served[of] > 0 {
			continue
		}
		d.published[of]++
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
		case errors.Is(err, natsio.ErrNoView):
			d.silent = true
		case err != nil && !d.foreign: // a session of another system has a stored effect, and no event
			return err
		}
		if len(open) > 0 {
			d.open[of] = open
		}
	}
	return nil
}

// waitingOf returns a target's open effects in these sessions, and any view's
// error.
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

// tell prints the bridges, what they lack, and the unserved targets. It returns an
// error if something is unserved, or may be.
func (d *diagnosis) tell(s streams, asJSON bool) error {
	if d.silent {
		fmt.Fprintln(s.err, "refold: warning: no session-actor answers, so open effects are not known: start one: refold actor serve")
	}
	if asJSON {
		d.printJSON(s.out)
	} else {
		d.print(s.out)
	}
	if len(d.open) > 0 || d.silent || len(d.streams) > 0 || d.foreign {
		return &statusError{statusFailed, ""}
	}
	return nil
}

func (d *diagnosis) print(out io.Writer) {
	d.printBridges(out)
	for _, t := range d.streams {
		fmt.Fprintln(out, "streams: "+t)
	}
	for _, line := range d.wrong {
		fmt.Fprintln(out, line)
	}
	for _, of := range slices.Sorted(maps.Keys(d.published)) {
		open := d.open[of]
		switch {
		case len(open) > 0:
			text := strings.Join(open[:min(len(open), doctorShown)], ", ")
			if len(open) > doctorShown {
				text += ", …"
			}
			if d.more[of] > 0 {
				text += fmt.Sprintf("; %d more sessions were not checked", d.more[of])
			}
			fmt.Fprintf(out, "unserved: %s: %d open (%s): %s\n", of, len(open), text, howToServeTarget(of))
		case d.silent:
			fmt.Fprintf(out, "unserved, perhaps: %s: %d published recently: %s\n", of, d.published[of], howToServeTarget(of))
		}
	}
	if len(d.open) > 0 || d.silent || len(d.streams) > 0 {
		return
	}
	text := "all open effects are served"
	if d.failing > 0 {
		text += "; the problems are listed above"
	}
	fmt.Fprintln(out, text)
}

// printBridges prints a row for each target, and what its bridges lack: on lines of
// its own if the terminal is too narrow.
func (d *diagnosis) printBridges(out io.Writer) {
	if len(d.served) == 0 {
		fmt.Fprintln(out, "no bridge runs: start refold bridge serve --model MODEL, or --tools TOOLS, or both")
		return
	}
	table := newWholeTable(out, "TARGET", "BRIDGES", "LACKS")
	for _, of := range slices.Sorted(maps.Keys(d.served)) {
		table.texts(of, strconv.Itoa(d.served[of]), strings.Join(d.bridges.Lacks(of), "; "))
	}
	table.flush()
	if !table.cut {
		return
	}
	for _, of := range slices.Sorted(maps.Keys(d.served)) {
		for _, lack := range d.bridges.Lacks(of) {
			fmt.Fprintf(out, "lacks: %s: %s\n", of, lack)
		}
	}
}

// targetJSON is a served or needed target as JSON.
type targetJSON struct {
	Target   string   `json:"target"`
	Bridges  int      `json:"bridges"`             // that serve it
	Lacks    []string `json:"lacks,omitempty"`     // what these bridges lack
	Open     []string `json:"open,omitempty"`      // waiting effects, if no bridge serves it: session and effect
	Asked    int      `json:"asked,omitempty"`     // stored effects, open or not, if no session-actor answers
	NotAsked int      `json:"not_asked,omitempty"` // sessions whose views were not read
	Advice   string   `json:"advice,omitempty"`
}

// printJSON prints an object for each target, and one for each trouble.
func (d *diagnosis) printJSON(out io.Writer) {
	for _, of := range slices.Sorted(maps.Keys(d.served)) {
		printJSON(out, targetJSON{Target: of, Bridges: d.served[of], Lacks: d.bridges.Lacks(of)})
	}
	for _, t := range d.streams {
		printJSON(out, map[string]string{"streams": t})
	}
	for _, line := range d.wrong {
		printJSON(out, map[string]string{"trouble": line})
	}
	for _, of := range slices.Sorted(maps.Keys(d.published)) {
		row := targetJSON{Target: of, Open: d.open[of], NotAsked: d.more[of], Advice: howToServeTarget(of)}
		switch {
		case len(row.Open) > 0:
		case d.silent:
			row.Asked = d.published[of]
		default:
			continue
		}
		printJSON(out, row)
	}
}
