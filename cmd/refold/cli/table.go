package cli

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/refold/refold/cmd/settings"
)

// column is one column of a table.
type column struct {
	head  string
	least int // minimal width on a narrow screen
}

// cell is one value of a row.
type cell struct {
	text  string
	color settings.Color
}

// table prints rows: on a terminal in columns, each row on one line that fits.
// For programs nothing is cut, and tabs separate values. A whole table prints its
// rows at its end, in columns everywhere.
type table struct {
	screen  settings.Screen
	columns []column
	whole   bool
	cut     bool     // a value was cut
	widths  []int    // nil: not known yet
	first   [][]cell // rows from which the widths are chosen
}

// tableFirst is the number of rows from which the widths are chosen.
const tableFirst = 16

// gap is the space between two columns.
const gap = 2

func newTable(screen settings.Screen, columns ...column) *table {
	return &table{screen: screen, columns: columns}
}

// columnLeast is the least width of a whole table's column, unless its head is
// wider.
const columnLeast = 4

// newWholeTable returns a whole table. It prints no heads if all are empty.
func newWholeTable(out io.Writer, heads ...string) *table {
	t := &table{screen: settings.ScreenOf(out), whole: true}
	for _, head := range heads {
		t.columns = append(t.columns, column{head, max(columnLeast, settings.Cells(head))})
	}
	return t
}

// texts is row for values without a color.
func (t *table) texts(texts ...string) {
	cells := make([]cell, len(texts))
	for i, text := range texts {
		cells[i].text = text
	}
	t.row(cells...)
}

// row prints a row, or stores it until there are enough to choose the widths.
func (t *table) row(cells ...cell) {
	for i := range cells {
		cells[i].text = settings.Spelled(cells[i].text)
	}
	switch {
	case t.whole:
		t.first = append(t.first, cells)
	case t.screen.Columns == 0:
		t.plain(cells)
	case t.widths != nil:
		t.line(cells)
	default:
		if t.first = append(t.first, cells); len(t.first) >= tableFirst {
			t.flush()
		}
	}
}

// flush prints the stored rows.
func (t *table) flush() {
	if t.widths != nil || len(t.first) == 0 && !t.whole {
		return
	}
	heads, named := make([]cell, len(t.columns)), false
	for i, c := range t.columns {
		heads[i], named = cell{c.head, settings.Bold}, named || c.head != ""
	}
	t.choose(heads)
	if named {
		t.first = slices.Insert(t.first, 0, heads)
	}
	for _, cells := range t.first {
		t.line(cells)
	}
	t.first = nil
}

// choose chooses the widths that the first rows need. If the screen is narrower,
// the widest column shrinks, repeatedly.
func (t *table) choose(heads []cell) {
	t.widths = make([]int, len(t.columns))
	all := gap * (len(t.columns) - 1)
	for _, cells := range append([][]cell{heads}, t.first...) {
		for i, c := range cells {
			t.widths[i] = max(t.widths[i], settings.Cells(c.text))
		}
	}
	for _, w := range t.widths {
		all += w
	}
	for ; t.screen.Columns > 0 && all > t.screen.Columns; all-- {
		widest := -1
		for i, w := range t.widths {
			if w > t.columns[i].least && (widest < 0 || w >= t.widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return // a screen of a few columns: the ends of lines are cut
		}
		t.widths[widest]--
	}
}

// line prints a row in columns.
func (t *table) line(cells []cell) {
	room := cmp.Or(t.screen.Columns, math.MaxInt)
	for i, c := range cells {
		wide := min(t.widths[i], room)
		if i == len(cells)-1 {
			wide = room
		}
		text := settings.Fit(c.text, wide)
		t.cut = t.cut || text != c.text
		t.screen.Paint(c.color, text)
		if i == len(cells)-1 {
			break
		}
		used := settings.Cells(text)
		pad := min(wide-used+gap, room-used)
		fmt.Fprint(t.screen, strings.Repeat(" ", pad))
		room -= used + pad
	}
	fmt.Fprintln(t.screen)
}

// plain prints a row for a program.
func (t *table) plain(cells []cell) {
	texts := make([]string, len(cells))
	for i, c := range cells {
		texts[i] = c.text
	}
	fmt.Fprintln(t.screen, strings.Join(texts, "\t"))
}
