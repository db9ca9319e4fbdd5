package codec

import "github.com/vmihailenco/msgpack/v5"

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
