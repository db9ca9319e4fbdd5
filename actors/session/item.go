package session

import "github.com/vmihailenco/msgpack/v5"

// encodedBytesMax bounds the encoded size of an item from above, without
// encoding it.
func (it Item) encodedBytesMax() int {
	n := itemFixedBytesMax + len(it.Code) + len(it.Detail)
	if it.Edit != 0 {
		n += itemEditBytesMax
	}
	return n
}

// EncodeMsgpack writes the item as a map of what it has. A transcript is the
// largest part of a state and of a generation, so this spares the reflection.
func (it Item) EncodeMsgpack(enc *msgpack.Encoder) error {
	n := 2
	for _, given := range []bool{it.Call != 0, it.Code != "", it.Detail != "", it.Edit != 0} {
		if given {
			n++
		}
	}
	if err := enc.EncodeMapLen(n); err != nil {
		return err
	}
	if it.Call != 0 {
		if err := firstError(enc.EncodeString("call"), enc.EncodeInt(int64(it.Call))); err != nil {
			return err
		}
	}
	if it.Code != "" {
		if err := firstError(enc.EncodeString("code"), enc.EncodeString(it.Code)); err != nil {
			return err
		}
	}
	if it.Detail != "" {
		if err := firstError(enc.EncodeString("detail"), enc.EncodeString(it.Detail)); err != nil {
			return err
		}
	}
	if it.Edit != 0 {
		if err := firstError(enc.EncodeString("edit"), enc.EncodeUint(it.Edit)); err != nil {
			return err
		}
	}
	return firstError(
		enc.EncodeString("role"), enc.EncodeString(string(it.Role)),
		enc.EncodeString("seq"), enc.EncodeUint(it.Seq),
	)
}

// firstError returns the first error there is.
func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
