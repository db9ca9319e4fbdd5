// Package spaces is what a session knows of its spaces: the workspace and the packs that
// it reads through grants.
//
// # Path
//
// A request, or a model's call, opens a sync: the effect in which a bridge reads the
// manifest of a space. Its settlement is judged under the grant, and the manifest is
// staged. An apply makes it pending, and at a boundary, before the next run or turn, it
// is applied: it becomes a layer on the session's registry of tools. A detach drops all
// of a space.
//
//	Request ─▶ Sync ─▶ Settle ─▶ Staged ─▶ Apply ─▶ Pending ─▶ Boundary ─▶ Applied
//
// State is all that is stored. Package session decodes an event and calls one method for
// it. The method reads and changes its session through the interface Session. A method
// that returns a Refusal has changed nothing.
//
// # Laws
//
//   - A manifest is staged only if its grant trusts it and permits all of its parts.
//   - What is applied always composes: an event that would change a layer below is
//     refused if a layer above would no longer fit.
//   - A fault of a settlement ends its sync and changes nothing that is staged, pending
//     or applied.
//   - The earlier of two boundaries of one space counts.
//   - No text of a manifest that is not trusted reaches a model.
package spaces
