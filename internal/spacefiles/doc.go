// Package spacefiles reads the files of a space and builds its manifest.
//
// # Path
//
// Read reads an index (agent.workspace.json), or scans a folder without one, and
// the files that it names: prompt packs, catalogs, context files and skills. It
// returns the manifest, the content of the files, and every problem with file, line
// and path. Dir opens a folder, and Objects presents a list of objects as one; any
// other fs.FS works too. Config lists the spaces that a bridge serves.
//
// # Guarantees
//
//   - Nothing outside the folder is read: links that lead out are problems.
//   - Devices, pipes and sockets are not read, and opening one does not block.
//   - A file's size is checked before its content is read, and again afterwards.
//   - All problems are reported at once, each with its location in a file.
//   - The manifest depends on the content only, and not on the machine or the
//     order in which it lists a folder.
//
// # Limits
//
// The limits of package space, and those in limits.go.
package spacefiles
