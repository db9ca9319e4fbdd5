package api

import (
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// Commands returns the commands, arguments and flags of a program, and what printed has
// for the type of a command with --json.
func Commands(program *kong.Application, printed map[string][]string) []string {
	c := programLines{printed: printed}
	c.node(program.Node)
	return sorted(c.lines)
}

type programLines struct {
	schemas
	printed map[string][]string
}

func (c *programLines) node(n *kong.Node) {
	at := n.FullPath()
	c.say("%s", at)
	for i, p := range n.Positional {
		c.say("%s argument %d %s", at, i+1, p.Summary())
		c.value(at+" argument "+p.Name, p)
	}
	for _, f := range n.Flags {
		if f.Hidden || f.Name == "help" {
			continue
		}
		flag := at + " --" + f.Name
		c.say("%s %s", flag, f.Target.Type())
		if f.Required {
			c.say("%s is required", flag)
		}
		if f.HasDefault {
			c.say("%s is %q if it is not given", flag, f.Default)
		}
		for _, variable := range f.Envs {
			c.say("%s is read from %s", flag, variable)
		}
		c.value(flag, f.Value)
		if f.Name == "json" {
			for _, line := range c.printed[n.Target.Type().Name()] {
				c.say("%s prints %s", flag, line)
			}
		}
	}
	for _, child := range n.Children {
		if !child.Hidden {
			c.node(child)
		}
	}
}

// value adds the values that an argument or a flag may have.
func (c *programLines) value(at string, v *kong.Value) {
	if v.Enum == "" {
		return
	}
	values := v.EnumSlice()
	slices.Sort(values)
	for _, one := range slices.Compact(values) {
		c.say("%s may be %q", at, strings.TrimSpace(one))
	}
}
