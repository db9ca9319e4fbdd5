// Package patch parses patches in the V4A format and computes the changes to
// the files that they name. It does not use the file system: the caller passes
// a function that reads, and writes the changes.
//
//	*** Begin Patch
//	*** Add File: notes/new.txt
//	+first line
//	*** Update File: main.go
//	*** Move to: cmd/main.go
//	@@ func main() {
//	 	before()
//	-	old()
//	+	new()
//	*** Delete File: old.txt
//	*** End Patch
//
// # Path
//
// [Parse] parses the whole text (parse.go). [Patch.Changes] applies the
// sections one after another (changes.go). It searches the file's lines for
// each hunk of an update (file.go), in time linear in file and hunk (match.go).
//
// # Laws
//
//   - Atomic: Changes returns every change, or an error and none.
//   - A patch changes only what it names: context lines keep the file's own bytes,
//     even if they matched loosely. Line ends are kept, also a missing one at the
//     end of the file. New lines get the line end of the file's first line.
//   - Total: no input makes this package panic. Time grows with the patch's
//     size, and with hunks times lines of the file, which is bounded.
//   - An [Error] names the file, the hunk and the line of the patch, and for a
//     hunk that was not found, the first line that does not match.
//
// # Glossary
//
//   - Section: the part of a patch about one file: add, update or delete.
//   - Hunk: a run of context, removed and added lines of an update.
//   - Header: the text after @@. It moves the search past the next line that
//     equals it; several headers in a row move it several times.
//   - Level: how strictly lines are compared. A hunk is searched unchanged;
//     then without trailing white space; then without any around the line; then
//     with typographic dashes, quotes and spaces replaced by the plain ones.
//
// # Where implementations differ
//
// The format has no written standard. Except on these points, the package agrees
// with the implementation that most models were trained on (oracle_test.go compares
// them, under the build tag nightly): several headers in a row are allowed; a hunk
// of added lines only goes below its header, not to the end of the file; a hunk may
// repeat its header as its first line; the line numbers of a unified diff's header
// are ignored; blank lines may stand between sections, and any number of them at
// the end of a hunk, but a removed blank line must be in the file; a file may be
// moved without an update; adding a file that exists, or moving onto one, is
// refused; a missing line end at the end of a file stays missing.
//
// # Limits
//
// The caller bounds the sizes of the patch and of the files. Changes takes at
// most [StepsMax] steps, and ends with its context.
//
// # Testing
//
// testdata holds cases as text: the patch, the files before, and the files
// after or the error. FuzzPatch checks the laws on arbitrary text.
package patch
