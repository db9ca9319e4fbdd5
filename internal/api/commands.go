package api

import (
	"fmt"
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
	requires := []any{}
	for i, p := range n.Positional {
		if p.Required {
			requires = append(requires, p.Name)
		}
		c.value(fmt.Sprintf("%s argument %d %s", at, i+1, p.Name), p)
	}
	for _, f := range n.Flags {
		if f.Hidden || f.Name == "help" {
			continue
		}
		flag := at + " --" + f.Name
		if f.Required {
			requires = append(requires, "--"+f.Name)
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
	c.say("%s requires %s", at, compact(requires))
	for _, child := range n.Children {
		if !child.Hidden {
			c.node(child)
		}
	}
}

// value adds the lines of an argument's or a flag's value.
func (c *programLines) value(at string, v *kong.Value) {
	if v.HasDefault {
		c.say("%s is %q if it is not given", at, v.Default)
	}
	if v.Enum == "" {
		c.say("%s %s", at, v.Target.Type())
		return
	}
	c.say("%s %s with enum", at, v.Target.Type())
	for _, one := range v.EnumSlice() {
		c.say("%s may be %q", at, strings.TrimSpace(one))
	}
}
