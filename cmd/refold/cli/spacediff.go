package cli

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/refold/refold/client"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/transcript"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/space"
)

// spaceDiffCommand compares the manifests that a session has of a space.
type spaceDiffCommand struct {
	Session string `arg:"" help:"The session."`
	Space   string `arg:"" optional:"" help:"The workspace. Default: the one that is staged, else pending."`
	asJSON
}

func (c spaceDiffCommand) Run(ctx context.Context, s streams, conn connection) error {
	reader, err := conn.connect(ctx)
	if err != nil {
		return err
	}
	defer reader.Close()
	held, err := reader.Spaces(ctx, c.Session)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(held, func(h client.HeldSpace) bool {
		return h.Stage != client.StageApplied && (c.Space == "" || h.Pin.Space == c.Space)
	})
	if i < 0 {
		what := "no workspace"
		if c.Space != "" {
			what = "nothing of " + c.Space
		}
		return fmt.Errorf("%s is staged or pending in session %s: refold space sync %s SPACE", what, c.Session, c.Session)
	}
	j := slices.IndexFunc(held, func(h client.HeldSpace) bool { // which it replaces
		return h.Stage == client.StageApplied && h.Pin.Kind == held[i].Pin.Kind && (h.Pin.Kind == space.Workspace || h.Pin.Space == held[i].Pin.Space)
	})
	var applied *client.HeldSpace
	against := "no " + string(held[i].Pin.Kind) + " is applied that it replaces"
	if held[i].Pin.Kind == space.Workspace {
		against = "no workspace is applied"
	}
	if j >= 0 {
		applied = &held[j]
		against = "against " + stands(applied)
	}
	all := append(changes(manifestOf(applied), held[i].Manifest), choices(applied, &held[i])...)
	if c.JSON {
		for _, one := range all {
			printJSON(s.out, changeJSON{one.verb, one.what, one.how})
		}
		return nil
	}
	fmt.Fprintf(s.out, "%s, %s\n", stands(&held[i]), against)
	printChanges(s.out, all)
	return nil
}

// choices returns the differences of the prompt pack and the catalog that turns use.
func choices(a, b *client.HeldSpace) (all []change) {
	if a == nil {
		return nil
	}
	chosen := func(h *client.HeldSpace) (prompt, catalog string) {
		var d space.Defaults
		if h.Manifest.Defaults != nil {
			d = *h.Manifest.Defaults
		}
		return cmp.Or(h.Pin.Prompt, d.PromptPack), cmp.Or(h.Pin.Catalog, d.ToolCatalog)
	}
	promptA, catalogA := chosen(a)
	promptB, catalogB := chosen(b)
	for _, c := range []struct{ what, was, is string }{{"chosen prompt pack", promptA, promptB}, {"chosen catalog", catalogA, catalogB}} {
		if c.was != c.is {
			all = append(all, change{changed, c.what, quotedOrNone(c.was) + " to " + quotedOrNone(c.is)})
		}
	}
	return all
}

// stands describes a manifest of a session, with its stage.
func stands(h *client.HeldSpace) string {
	return fmt.Sprintf("%s is %s (%.12s)", transcript.Named(h.Pin.Space, h.Pin.Version), h.Stage, h.Pin.Hash)
}

// manifestOf returns the manifest of h, or nil.
func manifestOf(h *client.HeldSpace) *space.Manifest {
	if h == nil {
		return nil
	}
	return h.Manifest
}

// change is one difference of two manifests.
type change struct{ verb, what, how string }

// changeJSON is a change as JSON.
type changeJSON struct {
	Change string `json:"change"` // added, removed, changed
	What   string `json:"what"`
	How    string `json:"how,omitempty"`
}

// The verbs of changes.
const (
	added   = "added"
	removed = "removed"
	changed = "changed"
)

func printChanges(out io.Writer, all []change) {
	if len(all) == 0 {
		fmt.Fprintln(out, "  no difference")
	}
	for _, c := range all {
		line := fmt.Sprintf("  %-7s  %s", c.verb, c.what)
		if c.how != "" {
			line += ": " + c.how
		}
		fmt.Fprintln(out, line)
	}
}

// changes returns the differences from a to b: files, then what the index makes of
// them. A nil manifest is empty.
func changes(a, b *space.Manifest) []change {
	if a == nil {
		a = &space.Manifest{}
	}
	if b == nil {
		b = &space.Manifest{}
	}
	all := compare("", a.Files, b.Files, func(f *space.File) string { return f.Path }, func(x, y *space.File) string {
		if *x == *y {
			return ""
		}
		return fmt.Sprintf("%d to %d bytes", x.Size, y.Size)
	})
	all = append(all, compare("prompt pack ", a.Prompts, b.Prompts, func(p *space.Prompt) string { return p.PromptPack }, func(x, y *space.Prompt) string {
		return otherwise(shownOf(a, x), shownOf(b, y))
	})...)
	all = append(all, compare("catalog ", a.Catalogs, b.Catalogs, func(c *space.Catalog) string { return c.ToolCatalog }, func(x, y *space.Catalog) string {
		return catalogChange(a, b, x, y)
	})...)
	all = append(all, compare("context group ", a.Context, b.Context, func(g *space.Group) string { return g.Group }, func(x, y *space.Group) string {
		return otherwise(pathsOf(a, x.Files), pathsOf(b, y.Files))
	})...)
	all = append(all, compare("skill ", a.Skills, b.Skills, func(s *space.Skill) string { return s.Skill }, func(x, y *space.Skill) string {
		return otherwise(skillOf(a, x), skillOf(b, y))
	})...)
	all = append(all, compare("tool ", a.Tools, b.Tools, func(t *planner.ToolSpec) string { return t.ToolID }, func(x, y *planner.ToolSpec) string {
		return otherwise(specOf(x), specOf(y))
	})...)
	for _, text := range []struct{ what, was, is string }{
		{"needs", strings.Join(a.Needs, ", "), strings.Join(b.Needs, ", ")},
		{"version", a.Version, b.Version}, {"description", a.Description, b.Description}, {"display_name", a.DisplayName, b.DisplayName},
		{"category", a.Category, b.Category}, {"defaults", defaultsOf(a), defaultsOf(b)}, {"index", indexOf(a), indexOf(b)},
	} {
		if text.was != text.is {
			all = append(all, change{changed, text.what, transcript.Shorten(quotedOrNone(text.was) + " to " + quotedOrNone(text.is))})
		}
	}
	return all
}

// compare returns the differences of two lists of named entries. how describes the
// difference of two entries with one name, "" if there is none.
func compare[T any](what string, a, b []T, name func(*T) string, how func(x, y *T) string) (all []change) {
	find := func(list []T, of string) *T {
		if i := slices.IndexFunc(list, func(one T) bool { return name(&one) == of }); i >= 0 {
			return &list[i]
		}
		return nil
	}
	for i := range a {
		if of := name(&a[i]); find(b, of) == nil {
			all = append(all, change{removed, what + of, ""})
		}
	}
	for i := range b {
		of := name(&b[i])
		was := find(a, of)
		if was == nil {
			all = append(all, change{added, what + of, ""})
		} else if text := how(was, &b[i]); text != "" {
			all = append(all, change{changed, what + of, text})
		}
	}
	slices.SortStableFunc(all, func(x, y change) int { return strings.Compare(x.what, y.what) })
	return all
}

// otherwise describes the difference of two texts.
func otherwise(was, is string) string {
	if was == is {
		return ""
	}
	return transcript.Shorten(was + " to " + is)
}

// shownOf lists the parts of a prompt pack, without the content of files.
func shownOf(m *space.Manifest, p *space.Prompt) string {
	parts := make([]string, len(p.Parts))
	for i := range p.Parts {
		switch part := &p.Parts[i]; {
		case part.File != nil:
			parts[i] = strings.TrimLeft(part.Role+" "+m.Files[*part.File].Path, " ")
		case part.Context != "":
			parts[i] = "context " + part.Context
		default:
			parts[i] = "skills"
		}
	}
	for _, raw := range []codec.Raw{p.Params, p.ResponseFormat} {
		if text, err := codec.ToJSON(raw); err == nil && len(raw) > 0 {
			parts = append(parts, string(text))
		}
	}
	return strings.Join(parts, ", ")
}

// catalogChange lists the tools that a catalog adds, removes and rewords.
func catalogChange(a, b *space.Manifest, x, y *space.Catalog) string {
	was, _ := x.Entries()
	is, _ := y.Entries()
	find := func(list []space.Entry, tool string) int {
		return slices.IndexFunc(list, func(e space.Entry) bool { return e.Tool == tool })
	}
	var all []string
	for _, e := range is {
		if i := find(was, e.Tool); i < 0 {
			all = append(all, "+"+e.Tool)
		} else if !sameWord(a, b, was[i].Word, e.Word) {
			all = append(all, "reworded "+e.Tool)
		}
	}
	for _, e := range was {
		if find(is, e.Tool) < 0 {
			all = append(all, "-"+e.Tool)
		}
	}
	if x.ToolChoice != y.ToolChoice {
		all = append(all, "tool_choice "+quotedOrNone(x.ToolChoice)+" to "+quotedOrNone(y.ToolChoice))
	}
	if len(all) == 0 && !slices.EqualFunc(was, is, func(e, f space.Entry) bool { return e.Tool == f.Tool }) {
		all = append(all, "another order")
	}
	return strings.Join(all, ", ")
}

// sameWord reports whether two entries describe their tool alike.
func sameWord(a, b *space.Manifest, x, y *int) bool {
	if x == nil || y == nil {
		return x == y
	}
	v, w := &a.Words[*x], &b.Words[*y]
	return v.Description == w.Description && bytes.Equal(v.ArgsSchema, w.ArgsSchema)
}

// pathsOf lists the paths of files.
func pathsOf(m *space.Manifest, files []int) string {
	paths := make([]string, len(files))
	for i, f := range files {
		paths[i] = m.Files[f].Path
	}
	return strings.Join(paths, ", ")
}

// skillOf describes a skill, except for the content of its files.
func skillOf(m *space.Manifest, s *space.Skill) string {
	return fmt.Sprintf("%q, %q, files %s, needs %q, hidden %t", s.Description, s.AllowedTools, pathsOf(m, s.Files), s.Needs, s.Hidden)
}

// specOf describes a tool of a pack.
func specOf(t *planner.ToolSpec) string {
	raw, err := codec.Marshal(t)
	if err == nil {
		var text []byte
		if text, err = codec.ToJSON(raw); err == nil {
			return string(text)
		}
	}
	return err.Error()
}

// defaultsOf lists the prompt pack and the catalog that apply by default.
func defaultsOf(m *space.Manifest) string {
	if m.Defaults == nil {
		return ""
	}
	return strings.Trim(m.Defaults.PromptPack+"/"+m.Defaults.ToolCatalog, "/")
}

// indexOf returns "scanned" for a space without an index.
func indexOf(m *space.Manifest) string {
	if m.Scanned {
		return "scanned"
	}
	return ""
}

// quotedOrNone quotes a text, or returns "none" for "".
func quotedOrNone(text string) string {
	if text == "" {
		return "none"
	}
	return fmt.Sprintf("%q", text)
}
