package codec

import "github.com/vmihailenco/msgpack/v5"

// Pair is one entry of a map.
type Pair struct {
	Key   string
	Value Raw
}

// Pairs is a map as the list of its entries, in the byte order of the keys:
// what a pure package uses where JSON has an object with free keys.
type Pairs []Pair

// EncodeMsgpack writes a map. The keys must be in order.
func (p Pairs) EncodeMsgpack(enc *msgpack.Encoder) error {
	if err := enc.EncodeMapLen(len(p)); err != nil {
		return err
	}
	for i := range p {
		if err := enc.EncodeString(p[i].Key); err != nil {
			return err
		}
		if err := enc.Encode(p[i].Value); err != nil {
			return err
		}
	}
	return nil
}

// DecodeMsgpack reads a map; nil is an empty one.
func (p *Pairs) DecodeMsgpack(dec *msgpack.Decoder) error {
	n, err := dec.DecodeMapLen()
	if err != nil {
		return err
	}
	*p = (*p)[:0]
	for range max(n, 0) {
		key, err := dec.DecodeString()
		if err != nil {
			return err
		}
		value, err := dec.DecodeRaw()
		if err != nil {
			return err
		}
		*p = append(*p, Pair{Key: key, Value: value})
	}
	return nil
}
