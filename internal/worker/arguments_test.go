package worker

// Arguments that are too large: which of them become blobs.

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/planner"
)

// The largest arguments become blobs, and no more than necessary; the bytes are the
// model's.
func TestLargestArgumentsBecomeBlobs(t *testing.T) {
	t.Parallel()
	const kib = 1 << 10
	for _, c := range []struct {
		name  string
		sizes []int
		blobs []int // indices
	}{
		{"at the limit", []int{planner.ArgumentsBytesMax}, nil},
		{"above the limit", []int{planner.ArgumentsBytesMax + 1, 5}, []int{0}},
		{"one MiB", []int{5, 1024 * kib}, []int{1}},
		{"all above the limit", []int{300 * kib, 1024 * kib, 5000 * kib}, []int{0, 1, 2}},
		{"three that fit", []int{250 * kib, 250 * kib, 250 * kib}, nil},
		{"four of a size", []int{200 * kib, 200 * kib, 200 * kib, 200 * kib}, []int{0}},
		{"the largest go first", []int{150 * kib, 220 * kib, 210 * kib, 160 * kib, 200 * kib, 1}, []int{1}},
		{"two must go", []int{200 * kib, 256 * kib, 200 * kib, 255 * kib, 254 * kib}, []int{1, 3}},
		{"many small ones", slices.Repeat([]int{kib}, session.CallsSeenMax), consecutive(333)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				var a executor.Answer
				for i, n := range c.sizes {
					a.Calls = append(a.Calls, executor.AnswerCall{Name: "a", Arguments: strings.Repeat(string(rune('a'+i%26)), n)})
				}
				b := body[session.ToolCallsObserved](t, settleOne(t, w, a))
				if len(b.Calls) != len(c.sizes) {
					t.Fatalf("calls: got %d, want %d", len(b.Calls), len(c.sizes))
				}
				var blobs []int
				for i, call := range b.Calls {
					text := call.Arguments
					if call.ArgumentsBlob != nil {
						blobs = append(blobs, i)
						if text = string(w.blobs[*call.ArgumentsBlob]); call.Arguments != "" || call.Size != int64(len(text)) {
							t.Errorf("%d: %d bytes inline besides a blob, which has %d bytes and the size %d", i, len(call.Arguments), len(text), call.Size)
						}
					}
					if text != a.Calls[i].Arguments {
						t.Errorf("%d: the %d bytes stored are not those that the model wrote", i, len(text))
					}
				}
				if !slices.Equal(blobs, c.blobs) {
					t.Errorf("blobs: got %v, want %v", blobs, c.blobs)
				}
			})
		})
	}
}

func consecutive(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}
