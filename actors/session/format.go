package session

import "github.com/refold/refold/codec"

// ResponseFormat is the required form of a model's answers in a run. Configs and
// effects hold it unchanged.
type ResponseFormat struct {
	Name   string    `msgpack:"name,omitempty"`   // of the schema, for the model
	Schema codec.Raw `msgpack:"schema,omitempty"` // of type json_schema: a JSON Schema, passed on unchanged
	Strict bool      `msgpack:"strict,omitempty"` // the provider must hold the answer to the schema
	Type   string    `msgpack:"type"`
}

// The types of a ResponseFormat.
const (
	FormatText   = "text" // words, the default
	FormatJSON   = "json_object"
	FormatSchema = "json_schema"
)
