package session

import "github.com/refold/refold/codec"

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
	r := codec.Read(data)
	outer := r.Map()
	if r.Has("call") {
		it.Call = int(r.Some())
	}
	if r.Has("code") {
		it.Code = r.SomeText()
	}
	if r.Has("detail") {
		it.Detail = r.SomeText()
	}
	if r.Has("edit") {
		it.Edit = number(&r, 1)
	}
	r.Must("role")
	it.Role = roleOf(r.Text())
	r.Must("seq")
	it.Seq = number(&r, 0)
	r.EndMap(outer)
	n, ok = r.End()
	return n, ok && it.Role != ""
}

// number reads an integer of at least so much.
func number(r *codec.Reader, least int64) uint64 {
	n := r.Int()
	if n < least {
		r.Fail()
	}
	return uint64(n)
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
