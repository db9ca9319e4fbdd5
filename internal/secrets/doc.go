// Package secrets looks up the values of secrets, and redacts them in what a bridge
// stores and prints.
//
// # Path
//
// A pack, a tool or a skill needs secret:NAME. Sources return the value of a
// name: Files reads a folder of files, Catalog an environment variable, and Chain
// tries several sources in turn. A Redactor replaces the values in texts, Writer
// in a stream, and Handler in log lines.
//
// # Guarantees
//
//   - A value is read each time it is needed, so it can change while the program
//     runs.
//   - An empty value is no value.
//   - Only environment variables in the catalog's entries are read.
//   - An error names the secret and never contains a value.
//   - Every value of at least ValueBytesMin bytes in a text, plain or in one of the
//     encodings listed at Redactor, is replaced.
//
// # Limits
//
// A value has at most ValueBytesMax bytes. Values in compressed or encrypted
// text, and values that a program has cut into pieces, are not found.
package secrets
