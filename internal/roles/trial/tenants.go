package trial

import (
	"slices"

	"github.com/refold/refold/internal/roles"
)

// Tenant is the result for one tenant, to be printed.
type Tenant struct {
	Prefix string
	Users  []string
	Rows   []Row
}

// Row is a row of the table, with a cell for each user: P if it may publish, H
// if it may subscribe, "." for neither, and "!" where the servers differ from
// the table.
type Row struct {
	Name  string
	Cells []string
}

// Tenants groups cells by tenants, rows and users. It leaves out cells with the
// subjects of other tenants; Wrong reports those where something was permitted.
func Tenants(cells []Cell) (all []Tenant) {
	for _, c := range cells {
		if c.User.Prefix != c.Subject.Prefix {
			continue
		}
		i := slices.IndexFunc(all, func(t Tenant) bool { return t.Prefix == c.User.Prefix })
		if i < 0 {
			i = len(all)
			all = append(all, Tenant{Prefix: c.User.Prefix})
		}
		all[i].add(c)
	}
	return all
}

func (t *Tenant) add(c Cell) {
	if !slices.Contains(t.Users, c.User.Name) {
		t.Users = append(t.Users, c.User.Name)
	}
	column := slices.Index(t.Users, c.User.Name)
	i := slices.IndexFunc(t.Rows, func(r Row) bool { return r.Name == c.Subject.Row })
	if i < 0 {
		i = len(t.Rows)
		t.Rows = append(t.Rows, Row{Name: c.Subject.Row})
	}
	row := &t.Rows[i]
	for len(row.Cells) <= column {
		row.Cells = append(row.Cells, ".")
	}
	have, text := row.Cells[column], ""
	for _, of := range []struct {
		right string
		act   roles.Act
	}{{"P", roles.Publish}, {"H", roles.Hear}} {
		if c.Got&of.act != 0 || contains(have, of.right) {
			text += of.right
		}
	}
	if c.Got != c.Want || contains(have, "!") {
		text += "!"
	}
	if text == "" {
		text = "."
	}
	row.Cells[column] = text
}

func contains(text, right string) bool {
	return slices.Contains([]byte(text), right[0])
}
