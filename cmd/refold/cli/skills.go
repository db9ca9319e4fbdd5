package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/refold/refold/internal/transcript"
	"github.com/refold/refold/space"
)

// skillsCommand lists the skills of a session.
type skillsCommand struct {
	Session string `arg:"" help:"The session."`
	asJSON
}

// Help returns the help text above the flags.
func (skillsCommand) Help() string {
	return `The skills are those of the applied spaces. A skill is eligible if what it needs is
present: a program, an environment variable, an operating system. It is active once
the model has loaded it, or from the first turn on if the run's config names it,
until the run ends.`
}

// Run prints each skill: whether a model can use it, whether it is active, why not.
func (k skillsCommand) Run(ctx context.Context, s streams, conn connection) error {
	v, err := conn.viewOf(ctx, k.Session)
	if err != nil {
		return err
	}
	if k.JSON {
		for _, skill := range v.Skills {
			printJSON(s.out, skill)
		}
		return nil
	}
	if len(v.Skills) == 0 {
		fmt.Fprintf(s.out, "session %s has no skills: no applied space has any\n", k.Session)
		return nil
	}
	table := newWholeTable(s.out, "SKILL", "SPACE", "ELIGIBLE", "ACTIVE", "WHY NOT")
	for _, skill := range v.Skills {
		table.texts(skill.Skill, skill.Space, yesNo(skill.Why == ""), yesNo(skill.Active), skill.Why)
	}
	table.flush()
	return nil
}

// yesNo returns "yes" or "no".
func yesNo(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

// printSkills prints a manifest's skills with their needs and allowed-tools.
func printSkills(out io.Writer, m *space.Manifest) {
	for i := range m.Skills {
		k := &m.Skills[i]
		line := fmt.Sprintf("  skill %s: %s", k.Skill, transcript.Count(1+len(k.Files), "file"))
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
			line += "; only a run's config can activate it"
		}
		fmt.Fprintln(out, line)
	}
}
