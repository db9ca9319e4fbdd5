package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/cmd/settings"
	"github.com/refold/refold/internal/transcript"
)

// sessionsCommand lists sessions.
type sessionsCommand struct {
	Name     string   `placeholder:"BEGINNING" help:"Only sessions whose names have this prefix."`
	State    []string `placeholder:"STATE" enum:"running,waiting_input,paused,interrupting,completed,failed,cancelled,interrupted,open,closed,quarantined,unknown,silent" help:"Only these, separated by commas: running, waiting_input, paused, interrupting, completed, failed, cancelled, interrupted, open (it had no run), closed, quarantined, unknown (its latest notice has no summary), silent (see --all)."`
	WaitsFor string   `placeholder:"WHAT" enum:",model,tools,step,host_loop,approval,reply,session,clock,space,input,resume,retry,nobody,operator" default:"" help:"Only those that wait for this: model, tools, step, host_loop, approval, reply, session, clock, space, input, resume, retry, nobody, operator."`
	Tree     string   `placeholder:"SESSION" help:"Only this session and its children, theirs, and so on: each below its parent."`
	Model    string   `placeholder:"MODEL" help:"Only those whose latest run has this model: gpt-4o, or openai/gpt-4o."`
	Since    string   `placeholder:"TIME" help:"Only those with a notice since then: a time such as 2026-01-31T12:00:00Z, or how long ago, such as 30m, 48h or 90d."`
	Limit    int      `default:"50" placeholder:"N" help:"Print at most this many (50)."`
	After    string   `placeholder:"CURSOR" help:"Continue after a row: --json prints the cursor of each row, and the end of a page the cursor of its last."`
	All      bool     `help:"Then list the sessions without a stored notice, by name. The server searches the log for them, one partition of 64 at a time."`
	JSON     bool     `name:"json" help:"Print a JSON object a session."`
}

// Help returns the help text that stands above the flags.
func (sessionsCommand) Help() string {
	return `The session with the latest notice comes first. A row is what this notice says of the
session; notices are kept for a week. While a run is active, the view may be newer:
refold view SESSION. On a pipe, tabs separate the columns: session, state, what it
waits for, provider/model, time, the latest text.`
}

func (l sessionsCommand) Run(ctx context.Context, s streams, conn connection) error {
	o := client.IndexOptions{Name: l.Name, State: l.State, WaitsFor: l.WaitsFor, Model: l.Model, Tree: l.Tree, After: l.After, All: l.All}
	if l.Limit < 1 {
		return &statusError{statusUsage, "sessions: --limit is at least 1"}
	}
	if slices.Contains(l.State, client.StateSilent) && !l.All {
		return &statusError{statusUsage, "sessions: --state silent goes with --all: only the log knows these sessions"}
	}
	var err error
	if o.Since, err = since("--since", l.Since, time.Now()); err != nil {
		return &statusError{statusUsage, "sessions: " + err.Error()}
	}
	c, err := conn.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	status := newDisplay(s)
	defer status.show("")
	o.Partition = func(partition, of int) {
		status.show(fmt.Sprintf("looking through the log for sessions without notices: partition %d of %d", partition+1, of))
	}
	clock := c.Clock(ctx)
	if l.Since != "" {
		o.Since, _ = since("--since", l.Since, clock())
	}
	return l.list(s, c.Index(ctx, o), clock, status)
}

// since parses the time of a flag, or how long ago something was; "" is the zero time.
func since(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if digits, ok := strings.CutSuffix(text, "d"); ok {
		if days, err := strconv.ParseUint(digits, 10, 16); err == nil {
			return now.AddDate(0, 0, -int(days)), nil
		}
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	return time.Time{}, fmt.Errorf("%s %s: give a time such as 2026-01-31T12:00:00Z, or how long ago, such as 30m, 48h or 90d", flag, text)
}

// list prints rows up to the limit, and how to get the next ones.
func (l sessionsCommand) list(s streams, rows func(func(client.IndexRow, error) bool), clock func() time.Time, status *display) error {
	out := newTable(settings.ScreenOf(s.out),
		column{"SESSION", 8}, column{"STATE", 4}, column{"WAITS FOR", 4}, column{"MODEL", 4}, column{"AGE", 4}, column{"LATEST TEXT", 10})
	var last client.IndexRow
	var tree []client.IndexRow
	n, more := 0, false
	for row, err := range rows {
		if err != nil {
			return err
		}
		if more = n == l.Limit; more {
			break
		}
		status.show("")
		if l.Tree != "" {
			tree = append(tree, row)
		} else {
			l.print(s, out, &row, 0, clock)
		}
		n, last = n+1, row
	}
	for _, row := range asTree(tree) {
		l.print(s, out, &row.IndexRow, row.depth, clock)
	}
	status.show("")
	out.flush()
	switch {
	case more:
		fmt.Fprintf(s.err, "more: refold sessions --after %s, with the same flags\n", last.Cursor)
	case n == 0 && l.After == "":
		fmt.Fprintln(s.err, l.none())
	}
	return nil
}

// asTree orders the rows of a tree: each below its parent, oldest first, and indented
// by two spaces for each level. A row whose parent is not listed stands at the top.
func asTree(rows []client.IndexRow) []treeRow {
	slices.Reverse(rows) // the newest came first
	var ordered []treeRow
	var below func(parent string, depth int)
	below = func(parent string, depth int) {
		for _, row := range rows {
			listed := slices.ContainsFunc(rows, func(r client.IndexRow) bool { return r.Session == row.Parent })
			if parent == "" && listed || parent != "" && row.Parent != parent {
				continue
			}
			ordered = append(ordered, treeRow{row, depth})
			below(row.Session, depth+1)
		}
	}
	below("", 0)
	return ordered
}

// treeRow is a row with its depth in the tree: 0 at the top.
type treeRow struct {
	client.IndexRow
	depth int
}

// none explains an empty list, with what to do.
func (l sessionsCommand) none() string {
	text := "no session"
	if l.Name != "" || l.Tree != "" || len(l.State) > 0 || l.WaitsFor != "" || l.Model != "" || l.Since != "" {
		text += " matches"
	} else if l.All {
		return `no session yet; to start one: refold run hello "What is here?"`
	}
	if !l.All {
		text += " that has a notice; notices are kept for a week, and --all finds older sessions"
	}
	return text
}

func (l sessionsCommand) print(s streams, out *table, row *client.IndexRow, depth int, clock func() time.Time) {
	if l.JSON {
		printJSON(s.out, row)
		return
	}
	model := strings.Trim(row.Provider+"/"+row.Model, "/")
	out.row(cell{text: strings.Repeat("  ", depth) + row.Session}, cell{row.State, stateColor(row.State)}, cell{text: transcript.OrDash(row.WaitsFor)},
		cell{text: transcript.OrDash(model)}, cell{text: age(out.screen, row.At, clock)}, cell{text: row.Words()})
}

// stateColor returns the color of a session's state, which only repeats the word.
func stateColor(state string) settings.Color {
	switch state {
	case string(session.Failed), client.StateQuarantined:
		return settings.Red
	case string(session.Completed):
		return settings.Green
	case string(session.Running), string(session.Interrupting):
		return settings.Blue
	case string(session.Paused), string(session.WaitingInput):
		return settings.Yellow
	}
	return settings.Plain
}

// age formats a time of Unix ms; on a terminal, how long ago it was by the clock.
func age(screen settings.Screen, ms int64, clock func() time.Time) string {
	switch {
	case ms == 0:
		return "-"
	case screen.Columns == 0:
		return time.UnixMilli(ms).UTC().Format(time.RFC3339)
	}
	switch ago := clock().Sub(time.UnixMilli(ms)); {
	case ago < time.Minute:
		return fmt.Sprintf("%ds", max(0, int(ago.Seconds())))
	case ago < time.Hour:
		return fmt.Sprintf("%dm", int(ago.Minutes()))
	case ago < 48*time.Hour:
		return fmt.Sprintf("%dh", int(ago.Hours()))
	default:
		return fmt.Sprintf("%dd", int(ago.Hours()/24))
	}
}
