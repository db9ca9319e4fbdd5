package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/spaces"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/spacefiles"
	"github.com/refold/refold/internal/transcript"
	"github.com/refold/refold/space"
)

// spaceSyncCommand makes a bridge read a space.
type spaceSyncCommand struct {
	Session string      `arg:"" help:"The session."`
	Space   string      `arg:"" help:"The workspace, as a grant of the install record names it."`
	Version string      `placeholder:"VERSION" help:"Read this version: in a folder the subfolder of that name, in a bucket a prefix."`
	Only    []string    `placeholder:"PARTS" help:"Read only these parts from the source, as in --only tools,context: prompts, tools, context or skills. The others stay as the session has them."`
	Apply   spaces.Mode `placeholder:"MODE" help:"Also apply it: next_run, next_step_boundary or immediate_if_idle."`
	Dry     bool        `help:"Stage nothing and list what would change; exit status 1 if anything would."`
	choice
	kind space.Kind // which the space must have; empty: any
}

// choice has the parts of a workspace that an apply may choose.
type choice struct {
	PromptPack  string `name:"prompt-pack" placeholder:"NAME" help:"With an apply: the prompt pack, instead of the workspace's default."`
	ToolCatalog string `name:"tool-catalog" placeholder:"NAME" help:"With an apply: the catalog, instead of the workspace's default."`
}

// Help returns the help text above the flags.
func (spaceSyncCommand) Help() string {
	return `A bridge that serves the grant's target reads the source, and the session checks the
result. A failed sync changes nothing, and lists all problems at once. refold space
apply applies what is staged; --apply does so at once.

    refold space sync s1 support                       read it
    refold space diff s1                               what is new
    refold space apply s1 --mode next_step_boundary    apply it
    refold space sync s1 support --dry                 does the source differ from the session?`
}

func (c spaceSyncCommand) Run(ctx context.Context, s streams, conn connection) error {
	if err := c.usage(); err != nil {
		return err
	}
	api, err := conn.connect(ctx)
	if err != nil {
		return err
	}
	defer api.Close()
	if err := tellNew(ctx, s.err, api, c.Session); err != nil {
		return err
	}
	seq, err := api.Sync(ctx, c.Session, c.Space, client.SyncOptions{
		Version: c.Version, Only: c.Only, Dry: c.Dry, Apply: c.Apply, PromptPack: c.PromptPack, ToolCatalog: c.ToolCatalog, Kind: c.kind,
	})
	if err != nil {
		return err
	}
	watched := newWatcher(newDisplay(s), api.View, api.Clock(ctx), lookSoon)
	watched.add(c.Session)
	stop := watched.begin(ctx)
	end, err := api.SyncEnd(ctx, c.Session, seq)
	stop()
	switch {
	case err != nil && ctx.Err() != nil:
		return &statusError{statusFailed, "stopped; the sync continues: refold tail " + c.Session + " --all --follow prints its end"}
	case err != nil:
		return withSpaceAdvice(err, c.Session)
	}
	return c.tell(s, end)
}

// usage returns an error for invalid arguments.
func (c spaceSyncCommand) usage() error {
	for _, part := range c.Only {
		if !slices.Contains(spacefiles.Parts, part) {
			return &statusError{statusUsage, fmt.Sprintf("space sync: --only %s: prompts, tools, context or skills", part)}
		}
	}
	switch {
	case c.Dry && (c.Apply != "" || len(c.Only) > 0):
		return &statusError{statusUsage, "space sync: --dry stages nothing: leave out --apply and --only"}
	case c.Apply == "" && c.choice != choice{}:
		return &statusError{statusUsage, "space sync: --prompt-pack and --tool-catalog go with --apply"}
	}
	return usageOfMode("space sync: --apply", c.Apply)
}

// usageOfMode returns an error if mode is not a mode of an apply.
func usageOfMode(flag string, mode spaces.Mode) error {
	if mode != "" && !slices.Contains([]spaces.Mode{spaces.ModeNextRun, spaces.ModeNextStep, spaces.ModeImmediate}, mode) {
		return &statusError{statusUsage, fmt.Sprintf("%s %s: next_run, next_step_boundary or immediate_if_idle", flag, mode)}
	}
	return nil
}

// tell prints the outcome of the sync.
func (c spaceSyncCommand) tell(s streams, end *client.SyncEnd) error {
	if staged := end.Staged; staged != nil {
		tellWarnings(s, "", staged.Warnings)
		for _, need := range staged.Lacks {
			fmt.Fprintf(s.err, "refold: warning: the bridge that read %[2]s lacks %[1]s\n", need, c.Space)
		}
		if err := c.tellStaged(s.out, end); err != nil {
			return err
		}
	}
	if end.Failed == nil {
		return nil
	}
	for _, p := range end.Problems {
		fmt.Fprintln(s.out, p)
	}
	failed := "not staged"
	if end.Staged != nil {
		failed = "not applied"
	}
	return &statusError{statusFailed, fmt.Sprintf("%s is %s: %s: %s%s", c.Space, failed, end.Failed.Code, end.Failed.Detail, afterFailure(end.Failed.Code, c.Session))}
}

// tellStaged prints the result of a sync that succeeded.
func (c spaceSyncCommand) tellStaged(out io.Writer, end *client.SyncEnd) error {
	name := transcript.Named(c.Space, end.Staged.Version)
	if end.Staged.Outcome == spaces.OutcomeDry {
		return c.tellDry(out, end)
	}
	verb := "is staged"
	if end.Staged.Outcome == spaces.OutcomeUnchanged {
		verb = "is unchanged"
	}
	source := ""
	if end.Staged.Revision != "" {
		source = ", revision " + end.Staged.Revision
	}
	fmt.Fprintf(out, "%s %s: manifest %s (%s%s)\n", name, verb, end.Staged.Hash, end.Staged.Effect, source)
	for i := range end.After {
		h := &end.After[i]
		if !h.Pin.Hash.Is(end.Staged.Hash) || end.Failed != nil { // then the error says what became of it
			continue
		}
		fmt.Fprintln(out, "  "+whatNow(c.Session, h))
		return nil
	}
	return nil
}

// tellDry lists what would change, and fails if anything would.
func (c spaceSyncCommand) tellDry(out io.Writer, end *client.SyncEnd) error {
	var before *client.HeldSpace
	if len(end.Before) > 0 {
		before = &end.Before[0]
	}
	if before != nil && before.Pin.Hash.Is(end.Staged.Hash) {
		fmt.Fprintf(out, "%s: nothing would change: manifest %s is %s\n", c.Space, end.Staged.Hash, before.Stage)
		return nil
	}
	against := "the session has none"
	if before != nil {
		against = stands(before)
	}
	fmt.Fprintf(out, "%s would be staged: manifest %s; %s\n", transcript.Named(c.Space, end.Staged.Version), end.Staged.Hash, against)
	printChanges(out, changes(manifestOf(before), end.Manifest))
	return &statusError{statusFailed, ""}
}

// whatNow describes what a manifest waits for.
func whatNow(sid string, h *client.HeldSpace) string {
	switch h.Stage {
	case client.StageApplied:
		return "it is applied"
	case client.StagePending:
		return "it is applied " + boundary(h.Mode)
	}
	return "refold space diff " + sid + " shows what is new; refold space apply " + sid + " applies it"
}

// boundary describes when a pending apply takes effect.
func boundary(mode spaces.Mode) string {
	if mode == spaces.ModeNextStep {
		return "before the next turn"
	}
	return "when the next run starts"
}

// afterFailure returns what to do about a failed sync.
func afterFailure(code, sid string) string {
	var do string
	switch code {
	case spaces.CodeWorkspaceUntrusted:
		do = "the grant in the install record lists what is trusted: refold install --show"
	case "space_unknown", "version_unknown":
		do = "the file of refold bridge serve --spaces lists which spaces there are, and where their versions are"
	case "space_unreadable", session.CodeBadSettlement:
		do = "read the log of the bridge that read it"
	case session.CodeDeadlineExceeded:
		do = "refold bridge doctor lists the served targets; then sync again"
	case string(session.RejectWorkspaceInvalid):
		do = "correct it, try it with refold space check, and sync again; what session " + sid + " has applied stays"
	default:
		return ""
	}
	return "\n  " + do
}

// spaceApplyCommand applies a staged workspace.
type spaceApplyCommand struct {
	Session string      `arg:"" help:"The session."`
	Space   string      `arg:"" optional:"" help:"The workspace. Default: the one that is staged."`
	Mode    spaces.Mode `placeholder:"MODE" help:"When it takes effect: next_run (default), next_step_boundary (before the active run's next turn), immediate_if_idle (at once if no run is active)."`
	Hash    string      `placeholder:"HASH" help:"Only if the staged manifest has this hash."`
	choice
}

// Run publishes the request and prints when it takes effect.
func (c spaceApplyCommand) Run(ctx context.Context, s streams, conn connection) error {
	if err := usageOfMode("space apply: --mode", c.Mode); err != nil {
		return err
	}
	applied := c.Space
	v, err := askSpace(ctx, conn, c.Session, func(api *client.Client) (uint64, error) {
		before, err := api.Spaces(ctx, c.Session)
		if err == nil {
			applied = c.space(before)
		}
		return api.Apply(ctx, c.Session, client.ApplyOptions{Space: applied, Mode: c.Mode, Hash: c.Hash, PromptPack: c.PromptPack, ToolCatalog: c.ToolCatalog})
	})
	if err != nil {
		return err
	}
	return tellApplied(s.out, &v, applied)
}

// space returns the space to apply: the given one, else the only one that is staged,
// else pending. The request names it, so that it can't mean another one by then.
func (c spaceApplyCommand) space(held []client.HeldSpace) string {
	for _, stage := range []string{client.StageStaged, client.StagePending} {
		var of []string
		for i := range held {
			if held[i].Stage == stage {
				of = append(of, held[i].Pin.Space)
			}
		}
		if c.Space == "" && len(of) > 0 {
			if len(of) > 1 {
				return ""
			}
			return of[0]
		}
	}
	return c.Space
}

// tellApplied prints what became of a space that a request applies.
func tellApplied(out io.Writer, v *session.View, name string) error {
	is := func(sp session.ViewSpace) bool { return sp.Space == name }
	if i := slices.IndexFunc(v.Pending, is); i >= 0 {
		p := v.Pending[i]
		fmt.Fprintf(out, "%s is pending: manifest %s; it is applied %s\n", transcript.Named(p.Space, p.Version), p.Hash, boundary(p.Mode))
		return nil
	}
	all := slices.Clone(v.Packs)
	if v.Workspace != nil {
		all = append(all, *v.Workspace)
	}
	if i := slices.IndexFunc(all, is); i >= 0 {
		fmt.Fprintf(out, "%s is applied: manifest %s\n", transcript.Named(all[i].Space, all[i].Version), all[i].Hash)
		return nil
	}
	return &statusError{statusFailed, name + " is not applied any more: refold tail " + v.Session + " --all shows why"}
}

// spaceDetachCommand drops a space.
type spaceDetachCommand struct {
	Session string `arg:"" help:"The session."`
	Space   string `arg:"" help:"The workspace."`
}

// Run publishes the request and prints the spaces that remain.
func (c spaceDetachCommand) Run(ctx context.Context, s streams, conn connection) error {
	v, err := askSpace(ctx, conn, c.Session, func(api *client.Client) (uint64, error) { return api.Detach(ctx, c.Session, c.Space) })
	if err != nil {
		return err
	}
	rest := "no workspace is applied"
	if v.Workspace != nil {
		rest = transcript.Named(v.Workspace.Space, v.Workspace.Version) + " is applied"
	}
	fmt.Fprintf(s.out, "%s is detached; %s\n", c.Space, rest)
	return nil
}

// askSpace publishes an event about a space and returns the view after it.
func askSpace(ctx context.Context, conn connection, sid string, publish func(*client.Client) (uint64, error)) (session.View, error) {
	c, err := conn.connect(ctx)
	if err != nil {
		return session.View{}, err
	}
	defer c.Close()
	if err := exists(ctx, c, sid); err != nil {
		return session.View{}, err
	}
	seq, err := publish(c)
	if err != nil {
		return session.View{}, err
	}
	v, err := c.Taken(ctx, sid, seq)
	return v, withSpaceAdvice(err, sid)
}

// withSpaceAdvice is withAdvice for rejections with another meaning for spaces.
func withSpaceAdvice(err error, sid string) error {
	var refused *client.RejectedError
	if !errors.As(err, &refused) {
		return err
	}
	var do string
	switch refused.Code {
	case session.RejectStale:
		do = "another manifest is staged by now: refold space diff " + sid
	case session.RejectNotPermitted:
		do = "the grant in the install record forbids it: refold install --show"
	default:
		return withAdvice(err, sid)
	}
	return &statusError{statusFailed, refused.Error() + "\n  " + do}
}
