package codec

import (
	"bytes"

	"github.com/vmihailenco/msgpack/v5"
)

const (
	// DepthMax is how many containers may stand inside each other. A JSON
	// Schema inside a tool inside a registry inside an event takes about 20.
	DepthMax = 64

	// BytesMax is the size limit of a value, encoded or as JSON text.
	BytesMax = 8 << 20
)

// Raw is a value kept in its canonical encoding: what a program does not
// interpret (model parameters, JSON Schemas) but must carry byte for byte.
// Inside a struct it is spliced in as it is.
type Raw = msgpack.RawMessage

// Marshal returns the one canonical encoding of v.
func Marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := msgpack.GetEncoder()
	enc.Reset(&buf)
	enc.SetSortMapKeys(true)
	enc.UseCompactInts(true)
	enc.UseCompactFloats(true)
	err := enc.Encode(v)
	msgpack.PutEncoder(enc)
	if err != nil {
		return nil, err
	}
	if err := Check(buf.Bytes()); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// Unmarshal decodes canonical bytes into v.
func Unmarshal(data []byte, v any) error { return UnmarshalLimit(data, v, BytesMax) }

// UnmarshalLimit is Unmarshal with a size limit of the caller's.
func UnmarshalLimit(data []byte, v any, bytesMax int) error {
	if len(data) > bytesMax {
		return tooLarge(len(data), bytesMax)
	}
	if err := Check(data); err != nil {
		return err
	}
	dec := msgpack.GetDecoder()
	dec.Reset(bytes.NewReader(data))
	dec.DisallowUnknownFields(true)
	err := dec.Decode(v)
	msgpack.PutDecoder(dec)
	return err
}
