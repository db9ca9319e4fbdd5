// Package secrets finds the values of secrets, and keeps them out of what a
// bridge stores and prints.
//
// # Path
//
// A pack, a tool or a skill needs secret:NAME. Sources find the value of a name:
// Files reads a tree of files, Catalog says which environment variable holds it,
// and Chain asks several in turn. A Redactor replaces the values in texts,
// Writer does so in a stream, and Handler in log lines.
//
// # Guarantees
//
//   - A value is read each time it is asked for, so it can change while the
//     program runs.
//   - An empty value is no value.
//   - No environment variable is read that no entry of the catalog names.
//   - An error names the secret and never holds a value.
//   - Wherever a value of at least ValueBytesMin bytes stands in a text, plain or
//     in one of the encodings that Redactor names, it is replaced.
//
// # Limits
//
// A value has at most ValueBytesMax bytes. Text that is compressed or encrypted is
// not looked into, nor is a value that a program cut into pieces.
package secrets
