// Package spaces reads the files of a space and builds its manifest.
//
// # Path
//
// Build reads an index (agent.workspace.json), or scans a folder that has none,
// and the files that it names: prompt packs, catalogs, context files and skills.
// It returns the manifest, the content of the files, and every problem with
// file, line and path. Dir opens a folder, Objects a list of objects as one; any
// other fs.FS will do. Config reads the file that says which spaces a bridge
// serves.
//
// # Guarantees
//
//   - Nothing outside the folder is read: links that lead out are problems.
//   - Devices, pipes and sockets are not read, and opening one does not block.
//   - A file's size is checked before its content is read, and again after.
//   - All problems are reported at once, each with its location in a file.
//   - The manifest depends on the content alone, and not on the order in which
//     a folder lists its files, nor on the machine.
//
// # Limits
//
// The limits of package space, and those in limits.go.
package spaces
