package codec

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// TestHasBinary: a value has a binary if it changes on the way through JSON.
func TestHasBinary(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var draw func(depth int) any
		draw = func(depth int) any {
			switch n := rapid.IntRange(0, 5+2*min(depth, 1)).Draw(t, "kind"); n {
			case 0:
				return rapid.String().Draw(t, "text")
			case 1:
				return rapid.SampledFrom([]string{"ąćę", "\u0100\u0140\u0180", "Ă"}).Draw(t, "text of such bytes")
			case 2:
				return rapid.Int64().Draw(t, "number")
			case 3:
				return rapid.SampledFrom([]any{nil, true, 0.5, int64(0xc4), int64(0xc5c6)}).Draw(t, "value")
			case 4:
				return rapid.SampledFrom([]int64{-60, 196, 0xc4c4, 0xc6c5c4}).Draw(t, "number of such bytes")
			case 5:
				if rapid.IntRange(0, 3).Draw(t, "binary") > 0 {
					return ""
				}
				return make([]byte, rapid.SampledFrom([]int{0, 1, 32, 300, 70_000}).Draw(t, "size"))
			case 6:
				list := make([]any, rapid.IntRange(0, 20).Draw(t, "items"))
				for i := range list {
					list[i] = draw(depth - 1)
				}
				return list
			}
			object := map[string]any{}
			for range rapid.IntRange(0, 20).Draw(t, "fields") {
				object[rapid.String().Draw(t, "key")] = draw(depth - 1)
			}
			return object
		}
		raw, err := Marshal(draw(3))
		if err != nil {
			t.Fatal(err)
		}
		text, err := ToJSON(raw)
		if err != nil {
			t.Fatal(err)
		}
		again, err := FromJSON(text)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := HasBinary(raw), !bytes.Equal(raw, again); got != want {
			t.Fatalf("%.200x: got %v, want %v", raw, got, want)
		}
	})
}
