// Package planner decides which tools a model is offered in a turn, which of
// its calls may run, and which may run at once. All functions are pure: no
// clock, no I/O, no memory.
//
// # Path
//
// A registry comes from an install record or an event: NewRegistry validates it
// as a whole and fixes its bytes and hash. When a turn is asked, Select
// computes its Toolset from the registry, from the lists of the step, the run,
// the session and the workspace, and from the facts of that moment. When the
// model has answered, Check checks each call against that Toolset, and Schedule
// puts the permitted calls into groups. When a call is asked, Recheck checks it
// again.
//
// # Laws
//
//  1. Every function is total: any input has a result, and none panics.
//  2. The same input gives the same bytes, on every machine. No library's text
//     and no order of a Go map reaches a result.
//  3. A registry's bytes do not depend on the order in which it was given.
//  4. Deny wins: a tool that the session or the run disables is not offered. A
//     call is denied by what holds when the call is asked.
//  5. Force adds what a list left out; it never passes an availability rule or
//     a missing capability.
//  6. Two calls that conflict are in different groups, the earlier call in the
//     earlier one. No call could stand in an earlier group than it does.
//     Inside a group, calls stand in call order.
//  7. A rejected call is in no group and does not split one.
//  8. A check takes a bounded number of steps, whatever the schema and the
//     arguments are; so does a match, whatever the rules and the facts are. A
//     registry's cost is counted before it is compiled, so one beyond the
//     limits is refused cheaply.
//  9. The first step rule whose when holds applies, and later rules change
//     nothing. A when that fails or costs too much doesn't hold.
//  10. A registry that passes the Floor of an install record binds no tool more
//     loosely than that record, and no tool of it is offered without the
//     capabilities that the record requires.
//
// # Glossary
//
//   - descriptor: a tool as a model is shown it. Its content is JSON with
//     sorted keys, and its Ref the SHA-256 of that.
//   - alternate: another descriptor for the same tool. Variant n of a tool is
//     its nth alternate, variant 0 its own descriptor.
//   - binding: how a tool is called, and under which conditions. Only the
//     registry has it.
//   - floor: an install record's demands on a registry that a session sets.
//   - verdict: whether a tool was offered in a turn, or what removed it.
//   - step rule: what is offered in a step, and how, if its when holds.
//   - when: a condition in a part of CEL. It sees a run at the beginning of a
//     step and nothing else.
//   - context: an object that a step rule leaves for later steps.
//   - key: a resource that a call uses. A bare key overlaps all of its parts. A
//     part is text, or a path relative to the host session's working directory.
//
// # Argument schemas
//
// A schema is a self-contained object of JSON Schema draft 2020-12. It refers
// to itself by '#/…' or an anchor only, has no $id inside, and its patterns
// compile as RE2. format and content* are annotations. A failure is reported by
// the least (instance path, keyword) in byte order. For anyOf, oneOf, not,
// contains and propertyNames that is the keyword itself, not the failure
// inside; unevaluated* only when all else holds.
//
// # The language of when
//
// docs/semantics.md has it, under "What a when can say": a part of CEL. A tool in
// it is a literal, and is looked up when the rule arrives. An evaluation costs a
// step for each operation, and more for large arguments of a function.
//
// # Limits
//
// All of them are in limits.go.
//
// # Testing
//
// testdata holds the rules as text, case by case with reasons; run the tests
// with -rewrite and read the difference. There are laws on random input
// (rapid), a slow oracle for Select and two for Schedule, the JSON Schema
// library as the oracle of the evaluation, and fuzzing of arguments, schemas
// and conditions. The laws of choosing and scheduling run 10,000 cases;
// -rapid.checks sets another number.
package planner
