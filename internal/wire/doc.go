// Package wire derives what is written about messages from their Go types: the JSON
// Schemas in docs/schemas, the tables of fields and codes in docs/protocol.md, and the
// checks of events in actors/session/limits_gen.go. Run go generate after a change of a
// type or a code; a test compares the files with the source.
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
// their name. An effect is a type of package session whose field Class has one value. All
// other messages, and the types that have a schema of their own in docs/schemas/parts, are
// rows of the table in table.go. An event or an effect for which docs/protocol.md has no
// section gets one, from its type's comment and its line //wire:example. The door of a
// class gets a row in the table of subjects.
//
// # A code
//
// A line <!-- codes: directory Name --> in docs/protocol.md stands above the table of the
// constants of type Name, or of those whose names begin with it. Their comments are the
// meanings. The table below <!-- sentences --> is that of package sentence.
package wire

//go:generate go test -run ^TestFilesAreCurrent$ -args -rewrite
