// Package wire derives what is written about messages from their Go types: the JSON
// Schemas in docs/schemas and the tables of fields in docs/protocol.md. Run go generate
// after a change of a type; a test compares the files with the types.
//
// # A field
//
// A field of a message is written down once, as a field of a Go struct. Its comment is
// its description. Its tag json, or else msgpack, has its name; without omitempty or
// omitzero it is required. Its tag lim says what its value may be beyond its type: see
// limits in tags.go. A type's comment may have lines that begin with //wire:rule and hold
// JSON, for what no field says alone; they are merged into the type's schema.
//
// # A message
//
// Events and notices are found by the tables of package session, and have the Go type of
// their name. All other messages, and the types that have a schema of their own in
// docs/schemas/parts, are rows of the table in table.go.
package wire

//go:generate go test -run ^TestFilesAreCurrent$ -args -rewrite
