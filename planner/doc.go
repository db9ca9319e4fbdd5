// Package planner decides which tools a turn offers the model, which of its
// calls may run, and which may run at the same time. All functions are pure: no
// clock, no I/O, no memory.
//
// # Path
//
// NewRegistry validates a registry from an install record or an event as a
// whole, and fixes its bytes and hash. When a turn is opened, Select computes
// its Toolset from the registry, from the lists of the step, the run, the
// session and the workspace, and from the facts of that moment. Check checks
// each call of the model's answer against that Toolset, and Schedule puts the
// permitted calls into groups. When a call is opened, Recheck checks it again.
//
// # Laws
//
//  1. Every function is total: it returns a result for any input, without panic.
//  2. The same input gives the same bytes, on every machine. No library's text
//     and no iteration order of a Go map reaches a result.
//  3. A registry's bytes do not depend on the order in which it was given.
//  4. Deny wins: a tool that the session or the run disables is not offered. A
//     call is denied by what holds when the call is opened.
//  5. Force adds what a list left out; it overrides neither an availability
//     rule nor a missing capability.
//  6. Two calls that conflict are in different groups, the earlier call in the
//     earlier group. Each call is in the first group that this allows. Within a
//     group, calls are in call order.
//  7. A rejected call is in no group and does not split one.
//  8. A check takes a bounded number of steps for any schema and arguments; so
//     does a match, for any rules and facts. A registry's cost is counted
//     before it is compiled, so a registry beyond the limits is refused
//     cheaply.
//  9. The first step rule whose when holds applies, and later rules have no
//     effect. A when that fails or costs too much doesn't hold.
//  10. A registry that passes the Floor of an install record binds no tool more
//     loosely than that record, and offers no tool without the capabilities
//     that the record requires.
//
// # Glossary
//
//   - descriptor: a tool as the model sees it. Its content is JSON with sorted
//     keys, and its Ref is the SHA-256 of that JSON.
//   - alternate: another descriptor for the same tool. Variant n of a tool is
//     its nth alternate, variant 0 its own descriptor.
//   - binding: how a tool is called, and under which conditions. Only the
//     registry holds it.
//   - floor: an install record's demands on a registry that a session sets.
//   - verdict: whether a tool was offered in a turn, or what removed it.
//   - step rule: what is offered in a step, and how, if its when holds.
//   - when: a condition in a subset of CEL. It sees a run as it is at the
//     beginning of a step, and nothing else.
//   - context: an object that a step rule stores for later steps.
//   - key: a resource that a call uses. A bare key overlaps all of its parts. A
//     part is text, or a path relative to the host session's working directory.
//
// # Argument schemas
//
// A schema is a self-contained object of JSON Schema draft 2020-12. It refers
// only to itself, by '#/…' or an anchor. It has no nested $id, and its patterns
// compile as RE2. format and content* are annotations. Of all failures, the
// least (instance path, keyword) in byte order is reported. For anyOf, oneOf,
// not, contains and propertyNames that is the keyword itself, not the failure
// inside. unevaluated* is reported only if everything else holds.
//
// # The language of when
//
// docs/semantics.md describes it, under "What a when can say": a subset of CEL.
// Tools are named by literals and looked up when the rule arrives. An
// evaluation costs one step for each operation, and more for large arguments of
// a function.
//
// # Limits
//
// All of them are in limits.go.
//
// # Testing
//
// testdata holds the rules as text, case by case with reasons; run the tests
// with -rewrite and read the difference. Properties are tested on random input
// (rapid). Select has a slow oracle, Schedule has two, and the JSON Schema
// library is the oracle of the evaluation. Arguments, schemas and conditions
// are fuzzed. The laws of choosing and scheduling run 10,000 cases;
// -rapid.checks sets another number.
package planner
