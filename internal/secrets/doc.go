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
//   - Clip cuts only after that.
//
// # Limits
//
// A value has at most ValueBytesMax bytes. Not found are values in compressed or
// encrypted text; values that are cut into pieces, or have other text than white
// space between their parts, such as numbers of lines; values in another case, in
// UTF-16 or in another base than 16 and 64, or encoded twice, such as base64 of
// base64; values within more than decodedMax escapes, or stretched to more than
// eight times their length and 4 KiB. A value with fewer than ValueBytesMin bytes
// besides white space is found only as it is.
package secrets
