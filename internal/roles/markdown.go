package roles

import (
	"fmt"
	"strings"
)

// rights formats what may be done as the letters of a table.
func rights(act Act) string {
	text := ""
	for _, of := range []struct {
		act   Act
		right string
	}{{Publish, "P"}, {Hear, "H"}, {Serve, "S"}} {
		if act&of.act != 0 {
			text += of.right
		}
	}
	return text
}

// Markdown prints the table with a line for each row and a column for each role.
func Markdown() string {
	var b strings.Builder
	b.WriteString("| subjects | |")
	for _, r := range Roles() {
		fmt.Fprintf(&b, " %s |", r)
	}
	b.WriteString("\n|---|---|" + strings.Repeat("---|", len(Roles())) + "\n")
	for _, row := range Table() {
		fmt.Fprintf(&b, "| %s | %s |", row.Name, row.About)
		for _, r := range Roles() {
			fmt.Fprintf(&b, " %s |", rights(row.May[r]))
		}
		b.WriteString("\n")
	}
	return b.String()
}
