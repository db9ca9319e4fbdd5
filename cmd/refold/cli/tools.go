package cli

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/transcript"
)

// toolsCommand has the commands about sessions' tools.
type toolsCommand struct {
	Show  toolsShowCommand `cmd:"" default:"withargs" help:"Show the tools that a session's turn offered to the model, and why others were not. The word show may be left out."`
	Check checkCommand     `cmd:"" help:"List the bridges that serve each tool of the install record and its model, and what none serves."`

	Import importCommand `cmd:"" help:"Print the tools of an external source as an install record, ready to publish."`
}

// toolsShowCommand shows the tools of one turn.
type toolsShowCommand struct {
	Session string `arg:"" help:"The session."`
	Turn    string `placeholder:"TURN" help:"An earlier turn, such as r1t2, instead of the latest."`
	asJSON
}

// Run prints the offered tools, and then the hidden ones.
func (c toolsShowCommand) Run(ctx context.Context, s streams, conn connection) error {
	v, form, err := viewAt(ctx, conn, c.Session, c.Turn)
	if err != nil {
		return err
	}
	if form != "" {
		fmt.Fprintf(s.err, "refold: the response_format is sent in a looser form, and answers are checked against its own: %s\n", form)
	}
	if c.JSON {
		for _, t := range v.Tools {
			printJSON(s.out, t)
		}
		return nil
	}
	fmt.Fprintln(s.out, headline(&v))
	printTools(s.out, v.Tools)
	return nil
}

// whyCommand explains one tool.
type whyCommand struct {
	Session string `arg:"" help:"The session."`
	Tool    string `arg:"" help:"The tool, by tool_id or tool_name."`
	Turn    string `placeholder:"TURN" help:"An earlier turn, such as r1t2, instead of the latest."`
	asJSON
}

// Run prints whether the turn offered the tool, and why.
func (c whyCommand) Run(ctx context.Context, s streams, conn connection) error {
	v, _, err := viewAt(ctx, conn, c.Session, c.Turn)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(v.Tools, func(t session.ViewTool) bool { return t.ToolID == c.Tool || t.ToolName == c.Tool })
	if i < 0 {
		return fmt.Errorf("turn %s knows no tool %q; it knows %s%s", v.Turn.Effect, c.Tool, names(v.Tools), whyUnbound(&v))
	}
	tool := v.Tools[i]
	if c.JSON {
		printJSON(s.out, tool)
		return nil
	}
	text := "hidden, " + tool.Why
	if tool.Offered {
		text = strings.Replace(tool.Why, "offered", fmt.Sprintf("offered, %d of %d", tool.Place, offered(v.Tools)), 1)
	}
	fmt.Fprintf(s.out, "%s\n%s (%s): %s\n", headline(&v), tool.ToolName, tool.ToolID, text)
	return nil
}

// whyUnbound adds to the error about an unknown tool why it may be missing: a
// workspace names tools, but does not bind them.
func whyUnbound(v *session.View) string {
	if v.Turn.Workspace == nil {
		return ""
	}
	return fmt.Sprintf("; workspace %s has no tools of its own: the install record binds the tools that its catalogs name", v.Turn.Workspace.Space)
}

// offered counts the tools that were offered.
func offered(tools []session.ViewTool) (n int) {
	for _, t := range tools {
		if t.Offered {
			n++
		}
	}
	return n
}

// names lists the tools for an error about an unknown one.
func names(tools []session.ViewTool) string {
	if len(tools) == 0 {
		return "none"
	}
	all := make([]string, len(tools))
	for i, t := range tools {
		all[i] = t.ToolName
	}
	return strings.Join(all, ", ")
}

// viewAt returns the view with the tools of a turn: the session's present view, or
// if a turn is named, the view when that turn's tools were decided. If there is
// none, the error describes what there is. form says why the provider's API can't hold
// the model to the schema of its answer, "" if it can.
func viewAt(ctx context.Context, conn connection, sid, turn string) (v session.View, form string, err error) {
	if turn != "" && !turnName.MatchString(turn) {
		return v, "", &statusError{statusUsage, fmt.Sprintf("--turn %s: a turn has a name such as r1t2: run 1, turn 2", turn)}
	}
	c, err := conn.connect(ctx)
	if err != nil {
		return v, "", err
	}
	defer c.Close()
	if turn == "" {
		v, err = viewSoon(ctx, c, sid)
	} else {
		v, err = viewOf(ctx, c, sid, turn)
	}
	switch {
	case err != nil:
		return v, "", err
	case v.Turn == nil:
		return v, "", fmt.Errorf("session %s has not published a turn yet: refold view %s", sid, sid)
	case v.Turn.Step != nil && v.Turn.Step.Open:
		return v, "", fmt.Errorf("turn %s waits for its step hook, which decides over its tools: refold view %s", v.Turn.Effect, sid)
	case v.Turn.Step != nil && strings.Trim(v.Turn.Toolset, "0") == "":
		return v, "", fmt.Errorf("turn %s was not published, since its step hook failed: %s", v.Turn.Effect, faultOf(v.Turn.Step))
	}
	form, err = tellLeftOut(ctx, c, &v)
	return v, form, err
}

// turnName matches the names of turns.
var turnName = regexp.MustCompile(`^r[1-9][0-9]{0,8}t[1-9][0-9]{0,8}$`)

// viewOf folds the session's events again, and returns its view at the event that
// decided the tools of a turn.
func viewOf(ctx context.Context, c *client.Client, sid, turn string) (session.View, error) {
	var was *session.View // after the event that began the turn, its hook's answer, or the resume of a pause meanwhile
	decided := false
	var turns []string
	_, err := c.Replay(ctx, sid, 0, func(_ session.Event, _ []session.Notice, state *session.State) {
		t := state.Turn
		if t == nil {
			return
		}
		name := fmt.Sprintf("r%dt%d", t.Run, t.Number)
		began := len(turns) == 0 || turns[len(turns)-1] != name
		if began {
			turns = append(turns, name)
		}
		if name == turn && (began || was.Turn.Step != nil && was.Turn.Step.Open || !decided && t.RunMS != 0) {
			v := state.View()
			was, decided = &v, t.RunMS != 0
		}
	})
	switch {
	case err != nil:
		return session.View{}, err
	case len(turns) == 0:
		return session.View{}, fmt.Errorf("session %s has not published a turn yet", sid)
	case was == nil:
		return session.View{}, fmt.Errorf("session %s has no turn %s; it has %s", sid, turn, ranges(turns))
	}
	return *was, nil
}

// ranges formats turns in their order: r1t1 to r1t3, r2t1.
func ranges(turns []string) string {
	var all []string
	for i := 0; i < len(turns); {
		run, _, _ := strings.Cut(turns[i], "t")
		last := i
		for last+1 < len(turns) && strings.HasPrefix(turns[last+1], run+"t") {
			last++
		}
		text := turns[i]
		if last > i {
			text += " to " + turns[last]
		}
		all = append(all, text)
		i = last + 1
	}
	return strings.Join(all, ", ")
}

// headline names the turn, and what decided its tools.
func headline(v *session.View) string {
	t := v.Turn
	base := "tools of the " + t.Base
	if t.Base == "profile" {
		base = "tools of profile " + t.Profile
		if t.Profile == "" {
			base = "all tools"
		}
		base += " (" + t.ProfileWhy + ")"
	}
	text := fmt.Sprintf("turn %s of session %s: %s, registry %s", t.Effect, v.Session, base, t.Registry)
	if w := t.Workspace; w != nil {
		text += fmt.Sprintf("\nworkspace: %s (%.12s)", transcript.Named(w.Space, w.Version), w.Hash)
		for _, chosen := range []struct{ what, name string }{{"prompt pack", w.PromptPack}, {"catalog", w.ToolCatalog}} {
			if chosen.name != "" {
				text += ", " + chosen.what + " " + chosen.name
			}
		}
	}
	step := t.Step
	if step == nil {
		return text
	}
	switch step.From {
	case session.StepFromHook:
		text += "\nstep: from its hook"
	case session.StepFromProfile:
		text += fmt.Sprintf("\nstep: rule %d of profile %s applies", *step.Rule, step.Profile)
	case session.StepFromRun:
		text += fmt.Sprintf("\nstep: rule %d of the run applies", *step.Rule)
	default:
		text += "\nstep: no rule applies"
	}
	if step.Code != "" {
		text += "; its hook's answer does not count: " + faultOf(step)
	}
	for _, failed := range step.Failed {
		text += fmt.Sprintf("; rule %d could not be evaluated: %s", failed.Rule, failed.Code)
	}
	return text
}

// faultOf returns why the answer of a hook does not count.
func faultOf(step *session.ViewStep) string {
	if step.Detail == "" {
		return step.Code
	}
	return step.Code + ": " + step.Detail
}

// printTools prints the offered tools in the order in which the model was shown
// them, and then the hidden ones by tool_id.
func printTools(out io.Writer, tools []session.ViewTool) {
	shown, hidden := []session.ViewTool(nil), []session.ViewTool(nil)
	for _, t := range tools {
		if t.Offered {
			shown = append(shown, t)
		} else {
			hidden = append(hidden, t)
		}
	}
	slices.SortFunc(shown, func(a, b session.ViewTool) int { return a.Place - b.Place })
	table := newWholeTable(out, "", "", "")
	fmt.Fprintf(out, "\noffered, in the order in which the model was shown them: %d\n", len(shown))
	for _, t := range shown {
		id := t.ToolID
		if _, left, ok := strings.Cut(t.Why, "offered, "); ok {
			id += "  " + left
		}
		table.texts("  "+strconv.Itoa(t.Place), t.ToolName, id)
	}
	table.flush()
	table = newWholeTable(out, "", "", "")
	fmt.Fprintf(out, "\nhidden: %d\n", len(hidden))
	for _, t := range hidden {
		table.texts("  "+t.ToolName, t.ToolID, t.Why)
	}
	table.flush()
}
