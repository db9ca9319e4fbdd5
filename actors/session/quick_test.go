package session

// What writes and reads itself, instead of being walked by codec, is compared
// with a type of the same fields that does not: same bytes, same values, same
// refusals, for values that were drawn and for bytes that were malformed.

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/refold/refold/codec"
)

// plainItem is Item, walked.
type plainItem Item

func drawItem(t *rapid.T) Item {
	text := rapid.OneOf(rapid.Just(""), rapid.String(), rapid.Just("\xff"))
	number := rapid.OneOf(rapid.Just(0), rapid.IntRange(-3, 300), rapid.Int())
	return Item{
		Call: number.Draw(t, "call"), Code: text.Draw(t, "code"), Detail: text.Draw(t, "detail"), Edit: uint64(number.Draw(t, "edit")),
		Role: Role(rapid.OneOf(rapid.SampledFrom([]string{"user", "assistant", "tool"}), text).Draw(t, "role")), Seq: uint64(number.Draw(t, "seq")),
	}
}

func TestItemIsWrittenAsWalked(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		items := rapid.SliceOfN(rapid.Custom(drawItem), 0, 4).Draw(t, "items")
		plain := make([]plainItem, len(items))
		for i := range items {
			plain[i] = plainItem(items[i])
		}
		got, gotErr := codec.Marshal(items)
		want, wantErr := codec.Marshal(plain)
		if !bytes.Equal(got, want) || fmt.Sprint(gotErr) != fmt.Sprint(wantErr) {
			t.Fatalf("got %x, %v\nwant %x, %v", got, gotErr, want, wantErr)
		}
	})
}

func TestItemIsReadAsWalked(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		item := drawItem(t)
		data, err := codec.Marshal([]Item{item, {Role: RoleUser, Seq: 1}})
		if err != nil {
			return // it holds text that is none
		}
		for range rapid.IntRange(0, 2).Draw(t, "faults") {
			data = spoil(t, data)
		}
		for name, decode := range map[string]func([]byte, any) error{"unmarshal": codec.Unmarshal, "decode": codec.Decode} {
			var got []Item
			var want []plainItem
			gotErr, wantErr := decode(data, &got), decode(data, &want)
			if fmt.Sprint(gotErr) != fmt.Sprint(wantErr) {
				t.Fatalf("%s %x: got %v, want %v", name, data, gotErr, wantErr)
			}
			for i := range want {
				if want := Item(want[i]); len(got) <= i || !reflect.DeepEqual(got[i], want) {
					t.Fatalf("%s %x: got %+v, want %+v", name, data, got, want)
				}
			}
		}
	})
}

// spoil changes, drops or doubles a byte.
func spoil(t *rapid.T, data []byte) []byte {
	at := rapid.IntRange(0, len(data)-1).Draw(t, "at")
	switch out := bytes.Clone(data); rapid.IntRange(0, 2).Draw(t, "how") {
	case 0:
		out[at] = rapid.Byte().Draw(t, "byte")
		return out
	case 1:
		return append(out[:at], out[at+1:]...)
	default:
		return append(out[:at], data[max(0, at-1):]...)
	}
}
