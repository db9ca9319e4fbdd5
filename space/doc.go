// Package space defines the content that sessions adopt from outside: prompt
// packs, tool catalogs, context files, skills and, in a pack, tools. A manifest
// describes a space. It is pure data: the fold reads manifests, and never the
// files that they name.
//
// # Path
//
// A bridge builds a manifest from a folder or a bucket (internal/spacefiles) and
// publishes it in a settlement. The fold parses it, compares its Hash with the
// one that the operator trusts, and keeps it. The bridge of a model fills in
// templates with Expand.
//
// # Laws
//
//  1. Bytes are canonical msgpack, and Hash is their SHA-256: the same content
//     has the same hash on every machine.
//  2. Parse accepts exactly one encoding: if it reports no problem, Bytes
//     returns the bytes that it read.
//  3. Parse reports every problem of a manifest that decodes, in the order of
//     Compare. If a manifest does not decode, it reports the first fault.
//  4. Nothing here panics, and no result depends on a clock, a machine or the
//     order of a map.
//
// # Glossary
//
//   - workspace: a space without tools. pack: a space with tools.
//   - prompt pack: an ordered list of parts shown to a model before the transcript.
//   - catalog: a list of tools to offer, with other descriptions for some of them.
//   - need: a requirement of a tool or a skill: a secret, an environment
//     variable, a program, an operating system.
//   - selector: 1, 1.4 or 1.4.2; matches the versions whose numbers begin like it.
//
// # Limits
//
// All of them are in limits.go.
//
// # Testing
//
// testdata holds manifests and templates as text with the problems that Parse
// must report. Parse and the templates have fuzz targets, and golang.org/x/mod
// is the oracle of the comparison of versions.
package space
