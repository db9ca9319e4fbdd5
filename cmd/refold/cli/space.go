package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/spacefiles"
	"github.com/refold/refold/internal/transcript"
	"github.com/refold/refold/space"
)

// spaceCommand has the commands about workspaces.
type spaceCommand struct {
	Check  spaceCheckCommand  `cmd:"" help:"Build a folder's manifest and print its hash, or every problem with file and line; exit status 1 then. Needs no server."`
	Index  spaceIndexCommand  `cmd:"" help:"Print an agent.workspace.json for a folder without one. Needs no server."`
	Sync   spaceSyncCommand   `cmd:"" help:"Make a bridge read a workspace for a session, and print what was staged."`
	Apply  spaceApplyCommand  `cmd:"" help:"Apply the staged workspace, at the next run or when --mode says."`
	Detach spaceDetachCommand `cmd:"" help:"Drop a workspace from a session."`
	Diff   spaceDiffCommand   `cmd:"" help:"Show the differences between the staged and the applied workspace."`
}

// spaceCheckCommand validates a folder.
type spaceCheckCommand struct {
	Dir     string `arg:"" type:"existingdir" help:"The folder."`
	Name    string `placeholder:"NAME" help:"The space's name, if its index gives none. Default: the folder's."`
	Record  string `type:"existingfile" placeholder:"FILE" help:"Install record: also report what its grants, tools and policy refuse."`
	Secrets bool   `name:"allow-secrets" help:"Accept files with text that looks like a key."`
	asJSON
}

func (c spaceCheckCommand) Run(ctx context.Context, s streams) error {
	built, err := readFolder(ctx, c.Dir, c.Name)
	if err != nil {
		return err
	}
	problems, warnings := built.Problems, built.Warnings
	if !c.Secrets {
		problems = append(problems, built.Secrets()...)
	}
	var untrusted error
	if m := cmp.Or(built.Manifest, built.Rest); c.Record != "" && m != nil {
		record, err := readRecord(c.Record, nil)
		if err != nil {
			return err
		}
		install, err := session.ParseInstall(record)
		if err != nil {
			return fmt.Errorf("%s%s: %w", c.Record, position(record, err), err)
		}
		wrong, more, err := install.CheckSpace(m)
		problems, warnings, untrusted = append(problems, built.Place(wrong)...), append(warnings, built.Place(more)...), err
	}
	tellWarnings(s, c.Dir, warnings)
	m := built.Manifest
	switch {
	case len(problems) == 0 && c.JSON:
		printJSON(s.out, checkedJSON{m.Hash(), m.Space, m.Version, len(m.Files)})
		return untrusted
	case len(problems) == 0:
		fmt.Fprintf(s.out, "%s  %s\n", m.Hash(), summary(m))
		printSkills(s.out, m)
		return untrusted
	}
	for _, p := range space.SortProblems(problems) {
		if c.JSON {
			printJSON(s.out, p)
		} else {
			fmt.Fprintln(s.out, placed(c.Dir, p))
		}
	}
	return errors.Join(untrusted, errors.New(transcript.Count(len(problems), "problem")))
}

// checkedJSON is a valid folder as JSON.
type checkedJSON struct {
	Hash    codec.Hash `json:"hash"`
	Space   string     `json:"space"`
	Version string     `json:"version,omitempty"`
	Files   int        `json:"files"`
}

// spaceIndexCommand writes an index.
type spaceIndexCommand struct {
	Dir string `arg:"" type:"existingdir" help:"The folder."`
}

func (c spaceIndexCommand) Run(ctx context.Context, s streams) error {
	dir, err := spacefiles.OpenDir(c.Dir)
	if err != nil {
		return err
	}
	defer dir.Close()
	text, err := spacefiles.WriteIndex(ctx, dir)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Dir, err)
	}
	_, err = s.out.Write(text)
	return err
}

// readFolder builds the manifest of a folder. If its index gives no name, the space
// is named name, or like the folder if name is "".
func readFolder(ctx context.Context, dir, name string) (spacefiles.Built, error) {
	if name == "" {
		full, err := filepath.Abs(dir)
		if err != nil {
			return spacefiles.Built{}, err
		}
		name = filepath.Base(full)
	}
	open := func(context.Context) (fs.FS, error) { return spacefiles.OpenDir(dir) }
	return spacefiles.Read(ctx, open, func() spacefiles.Options { return spacefiles.Options{Named: name} })
}

// tellWarnings prints warnings about the files of a folder.
func tellWarnings(s streams, dir string, warnings []space.Problem) {
	for _, w := range space.SortProblems(warnings) {
		fmt.Fprintln(s.err, "refold: warning:", placed(dir, w))
	}
}

// placed formats a problem with the path of its file, so that an editor finds it.
func placed(dir string, p space.Problem) string {
	if p.File != "" && dir != "" {
		p.File = filepath.Join(dir, filepath.FromSlash(p.File))
	}
	return p.String()
}

func summary(m *space.Manifest) string {
	var size int64
	for i := range m.Files {
		size += m.Files[i].Size
	}
	text := fmt.Sprintf("%s: %s (%d bytes), %s, %s, %s, %s", transcript.Named(m.Space, m.Version), transcript.Count(len(m.Files), "file"), size,
		transcript.Count(len(m.Prompts), "prompt pack"), transcript.Count(len(m.Catalogs), "catalog"), transcript.Count(len(m.Context), "context group"), transcript.Count(len(m.Skills), "skill"))
	if m.Kind == space.Pack {
		text += ", " + transcript.Count(len(m.Tools), "tool")
	}
	return text
}
