package session

import (
	"unicode/utf8"

	"github.com/refold/refold/codec"
)

// encodedBytesMax bounds the encoded size of an item from above, without
// encoding it.
func (it Item) encodedBytesMax() int {
	n := itemFixedBytesMax + len(it.Code) + len(it.Detail)
	if it.Edit != 0 {
		n += itemEditBytesMax
	}
	return n
}

// AppendCanonical writes the item as codec does. A transcript is the largest
// part of a state and of a generation.
func (it *Item) AppendCanonical(out []byte) (_ []byte, ok bool) {
	n := 2
	for _, given := range [...]bool{it.Call != 0, it.Code != "", it.Detail != "", it.Edit != 0} {
		if given {
			n++
		}
	}
	out = codec.AppendMap(out, n)
	if it.Call != 0 {
		out = codec.AppendInt(codec.AppendString(out, "call"), int64(it.Call))
	}
	if it.Code != "" {
		if out, ok = codec.AppendText(codec.AppendString(out, "code"), it.Code); !ok {
			return nil, false
		}
	}
	if it.Detail != "" {
		if out, ok = codec.AppendText(codec.AppendString(out, "detail"), it.Detail); !ok {
			return nil, false
		}
	}
	if it.Edit != 0 {
		out = codec.AppendUint(codec.AppendString(out, "edit"), it.Edit)
	}
	if out, ok = codec.AppendText(codec.AppendString(out, "role"), string(it.Role)); !ok {
		return nil, false
	}
	return codec.AppendUint(codec.AppendString(out, "seq"), it.Seq), true
}

// ReadCanonical reads an item as codec does. What it reads is most of what
// restoring a long session takes.
func (it *Item) ReadCanonical(data []byte) (n int, ok bool) {
	head, rest, err := codec.Next(data)
	if err != nil || head.Kind != codec.Map {
		return 0, false
	}
	before := 0 // the place of the field before this one
	for range head.Len {
		var key, value codec.Token
		if key, rest, err = codec.Next(rest); err != nil || key.Kind != codec.Text {
			return 0, false
		}
		if value, rest, err = codec.Next(rest); err != nil {
			return 0, false
		}
		place, ok := it.take(string(key.Bytes), &value)
		if !ok || place <= before {
			return 0, false
		}
		before = place
	}
	return len(data) - len(rest), before == itemFields && it.Role != ""
}

// itemFields is how many fields an item has; the last one is always there.
const itemFields = 6

// take puts a value into its field, and returns the field's place. Of an
// optional field the zero value has no place.
func (it *Item) take(key string, value *codec.Token) (place int, ok bool) {
	text := value.Kind == codec.Text && utf8.Valid(value.Bytes)
	number, whole := value.Int64()
	switch key {
	case "call":
		it.Call, ok = int(number), whole && number != 0
		return 1, ok
	case "code":
		it.Code = string(value.Bytes)
		return 2, text && it.Code != ""
	case "detail":
		it.Detail = string(value.Bytes)
		return 3, text && it.Detail != ""
	case "edit":
		it.Edit = uint64(number)
		return 4, whole && number > 0
	case "role":
		it.Role = roleOf(value.Bytes)
		return 5, text && it.Role != ""
	case "seq":
		it.Seq = uint64(number)
		return itemFields, whole && number >= 0
	}
	return 0, false
}

// roleOf returns the role of that name, without a copy of it; empty if there is
// none.
func roleOf(name []byte) Role {
	switch string(name) {
	case string(RoleUser):
		return RoleUser
	case string(RoleAssistant):
		return RoleAssistant
	case string(RoleTool):
		return RoleTool
	}
	return ""
}
