package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/space"
)

// skillsCommand lists the skills of a session.
type skillsCommand struct {
	Session string `arg:"" help:"The session."`
	JSON    bool   `name:"json" help:"Print them as JSON."`
}

// Help is what the help says beside the flags.
func (skillsCommand) Help() string {
	return `The skills are those of the spaces that are applied. A skill is eligible if what it
needs is there: a program, an environment variable, an operating system. It is
active once the model has loaded it, or from the first turn on if the run's config
names it, until the run ends.`
}

// Run prints each skill: whether a model can use it, whether it is active, and why
// not.
func (k skillsCommand) Run(ctx context.Context, s streams, conn connection) error {
	v, err := conn.viewOf(ctx, k.Session)
	if err != nil {
		return err
	}
	if k.JSON {
		skills := v.Skills
		if skills == nil {
			skills = []session.ViewSkill{}
		}
		text, err := json.MarshalIndent(skills, "", "  ")
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(s.out, "%s\n", text)
		return err
	}
	if len(v.Skills) == 0 {
		_, err := fmt.Fprintf(s.out, "session %s has no skills: no space that is applied brings any\n", k.Session)
		return err
	}
	table := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SKILL\tSPACE\tELIGIBLE\tACTIVE\tWHY NOT")
	for _, skill := range v.Skills {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", skill.Skill, skill.Space, yesNo(skill.Why == ""), yesNo(skill.Active), skill.Why)
	}
	return table.Flush()
}

// yesNo writes whether something is so.
func yesNo(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

// printSkills prints the skills of a manifest: what each needs, and what its
// allowed-tools names.
func printSkills(out io.Writer, m *space.Manifest) error {
	for i := range m.Skills {
		k := &m.Skills[i]
		line := fmt.Sprintf("  skill %s: %s", k.Skill, count(1+len(k.Files), "file"))
		if len(k.Needs) > 0 {
			line += "; needs " + strings.Join(k.Needs, ", ")
		}
		switch {
		case k.AllowedTools != nil && len(k.AllowedTools) == 0:
			line += "; allows no tools"
		case k.AllowedTools != nil:
			line += "; allows " + strings.Join(k.AllowedTools, ", ")
		}
		if k.Hidden {
			line += "; only the config of a run can name it"
		}
		if _, err := fmt.Fprintln(out, line); err != nil {
			return err
		}
	}
	return nil
}
