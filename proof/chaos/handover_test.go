package chaos

import "testing"

// TestNoKillBeforeLanesAreShared: a new session-actor would have nothing to
// hand over.
func TestNoKillBeforeLanesAreShared(t *testing.T) {
	t.Parallel()
	all := []int{0, 1, 2, 3, 4, 5, 6, 7}
	for _, c := range []struct {
		name   string
		shares map[string][]int
		want   bool
	}{
		{"nobody", nil, false},
		{"one", map[string][]int{"a": all}, false},
		{"one has come", map[string][]int{"a": all, "b": {}}, false},
		{"one lane has moved", map[string][]int{"a": all[1:], "b": all[:1]}, false},
		{"half each", map[string][]int{"a": all[4:], "b": all[:4]}, true},
	} {
		if got := halved(c.shares); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}
