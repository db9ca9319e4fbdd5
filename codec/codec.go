package codec

import "github.com/vmihailenco/msgpack/v5"

const (
	// DepthMax is how deep containers may be nested. A JSON Schema inside a tool
	// inside a registry inside an event takes about 20.
	DepthMax = 64

	// BytesMax is the size limit of a value, encoded or as JSON text.
	BytesMax = 8 << 20
)

// Raw is a value in its canonical encoding, which a program does not interpret but
// must keep byte for byte, such as model parameters and JSON Schemas. Inside a struct
// its bytes are copied unchanged.
type Raw = msgpack.RawMessage
