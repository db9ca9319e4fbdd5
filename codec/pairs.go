package codec

import (
	"errors"

	"github.com/vmihailenco/msgpack/v5"
)

// Pair is one entry of a map.
type Pair struct {
	Key   string
	Value Raw
}

// Pairs is a map as the list of its entries, in the byte order of the keys:
// what a pure package uses where JSON has an object with free keys. Marshal
// refuses Pairs that are not in order; Unmarshal gives a list that is not nil.
type Pairs []Pair

var errPairs = errors.New("codec: not a map with text keys")

// EncodeMsgpack writes a map. It is for use with the library alone: Marshal
// has its own way, and checks the keys.
func (p Pairs) EncodeMsgpack(enc *msgpack.Encoder) error {
	if err := enc.EncodeMapLen(len(p)); err != nil {
		return err
	}
	for _, entry := range p {
		if err := enc.EncodeString(entry.Key); err != nil {
			return err
		}
		value := entry.Value
		if len(value) == 0 {
			value = Raw{codeNil}
		}
		if err := value.EncodeMsgpack(enc); err != nil {
			return err
		}
	}
	return nil
}

// DecodeMsgpack reads a map. It is for use with the library alone.
func (p *Pairs) DecodeMsgpack(dec *msgpack.Decoder) error {
	n, err := dec.DecodeMapLen()
	if err != nil || n < 0 {
		return errPairs
	}
	*p = Pairs{}
	for range n {
		key, err := dec.DecodeString()
		if err != nil {
			return errPairs
		}
		value, err := dec.DecodeRaw()
		if err != nil {
			return errPairs
		}
		*p = append(*p, Pair{Key: key, Value: value})
	}
	return nil
}
