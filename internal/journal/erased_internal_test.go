package journal

import (
	"slices"
	"testing"
)

// TestUnexplainedHoles: what the ledger explains is cut out of the holes, at both ends, in
// the middle, and over several ranges.
func TestUnexplainedHoles(t *testing.T) {
	t.Parallel()
	holes := []Hole{{1, 2}, {5, 9}, {12, 12}, {20, 30}}
	for _, c := range []struct{ explained, want []Hole }{
		{nil, holes},
		{[]Hole{{1, 30}}, nil},
		{[]Hole{{12, 12}, {1, 1}}, []Hole{{2, 2}, {5, 9}, {20, 30}}},
		{[]Hole{{6, 7}}, []Hole{{1, 2}, {5, 5}, {8, 9}, {12, 12}, {20, 30}}},
		{[]Hole{{9, 22}, {24, 24}, {29, 40}}, []Hole{{1, 2}, {5, 8}, {23, 23}, {25, 28}}},
		{[]Hole{{3, 4}, {10, 11}, {50, 60}}, holes},
	} {
		if got := unexplained(slices.Clone(holes), c.explained); !slices.Equal(got, c.want) {
			t.Errorf("explained %v: got %v, want %v", c.explained, got, c.want)
		}
	}
}
