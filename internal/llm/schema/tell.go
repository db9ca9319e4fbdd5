package schema

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/refold/refold/bridge/executor"
)

// Tell returns what becomes of tools for the APIs, for people: which ones an API
// is not sent, which names and keys it is sent instead of their own, and how many
// schemas in another form.
func Tell(tools []executor.Tool) (lines []string) {
	var changed []string
	for _, d := range All() {
		p := d.plan(tools)
		for _, left := range p.Left {
			lines = append(lines, fmt.Sprintf("%s is left out for models of %s: %s", left.Tool, d.Name, left.Why))
		}
		for _, own := range slices.Sorted(maps.Keys(p.Names)) {
			lines = append(lines, fmt.Sprintf("%s is called %s for models of %s", own, p.Names[own], d.Name))
		}
		for _, tool := range slices.Sorted(maps.Keys(p.Keys)) {
			for _, own := range slices.Sorted(maps.Keys(p.Keys[tool])) {
				lines = append(lines, fmt.Sprintf("%s: its argument %q is called %s for models of %s", tool, own, p.Keys[tool][own], d.Name))
			}
		}
		if n := d.changes(tools); n > 0 {
			changed = append(changed, fmt.Sprintf("%s %d", d.Name, n))
		}
	}
	if len(changed) > 0 {
		lines = append(lines, fmt.Sprintf("models are shown some schemas of these %d tools in another form, and calls are checked against the original: %s", len(tools), strings.Join(changed, ", ")))
	}
	return lines
}

// changes counts the schemas that the API is sent in another form.
func (d *Dialect) changes(tools []executor.Tool) (n int) {
	for i := range tools {
		own, err := decode(tools[i].Schema)
		if err != nil {
			continue
		}
		if normal, _, err := d.Normalize(tools[i].Schema); err == nil && !bytes.Equal(normal, encode(own)) {
			n++
		}
	}
	return n
}
