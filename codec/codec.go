package codec

import "github.com/vmihailenco/msgpack/v5"

// Marshal returns the one canonical encoding of v.
func Marshal(v any) ([]byte, error) { return msgpack.Marshal(v) }

// Unmarshal decodes canonical bytes into v.
func Unmarshal(data []byte, v any) error { return msgpack.Unmarshal(data, v) }

// Raw is a value kept in its canonical encoding: what a program does not
// interpret (model parameters, JSON Schemas) but must carry byte for byte.
// Inside a struct it is spliced in as it is; in JSON it is the JSON value.
type Raw = msgpack.RawMessage
