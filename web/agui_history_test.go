package web

import (
	"strings"
	"testing"
)

// A snapshot is never larger than HttpAgent reads: the oldest messages are left out, and
// it begins with one of the user.
func TestAGUISnapshotFits(t *testing.T) {
	t.Parallel()
	var all []aguiMessage
	for range 6 {
		all = append(all, aguiMessage{Role: "user", Content: "Tell me all."}, aguiMessage{Role: "assistant", Content: strings.Repeat("x", 3<<20)})
	}
	for _, of := range []struct{ from, kept, left int }{{0, 4, 8}, {1, 4, 7}, {8, 4, 0}, {11, 1, 0}, {12, 0, 0}} {
		kept, left := fitting(all[of.from:])
		if len(kept) != of.kept || left != of.left {
			t.Errorf("of %d: got %d, and %d left out; want %d and %d", len(all)-of.from, len(kept), left, of.kept, of.left)
		}
	}
	if kept, left := fitting([]aguiMessage{all[0], {Role: "assistant", Content: strings.Repeat("x", snapshotBytesMax)}}); len(kept) != 0 || left != 2 {
		t.Errorf("got %d, and %d left out; want nothing of what can't be sent", len(kept), left)
	}
}
