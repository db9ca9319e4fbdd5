// Package planner decides which tools a model is offered in a turn, whether a
// call that it makes may run, and which calls may run at once. Each is a pure
// function of what it is given: no clock, no world, nothing remembered.
//
// # Path
//
// A registry comes from an install record or an event: NewRegistry validates
// it as a whole and fixes its bytes and hash. When a turn is asked, Select
// computes its Toolset from the registry, what the lists of the step, the run,
// the session and the workspace say, and the facts of that moment. When the
// model has answered, Check holds each of its calls against that Toolset, and
// Schedule puts those that may run into groups. At the moment when a call is
// asked, Recheck looks at it again.
//
// # Laws
//
//  1. Everything is total: for any input there is a result, and no panic.
//  2. The same input gives the same bytes, on every machine. No library's text
//     and no order of a Go map reaches a result.
//  3. A registry's bytes do not depend on the order in which it was given.
//  4. Deny wins: what the session or the run disables is not offered.
//     What denies at the moment when a call is asked denies that call.
//  5. Force adds what a list left out; it never passes an availability rule or
//     a missing capability.
//  6. Two calls that conflict are in different groups, the earlier call in the
//     earlier one. No call could stand in an earlier group than it does.
//     Inside a group, calls stand in call order.
//  7. A rejected call is in no group and does not split one.
//  8. A check takes a bounded number of steps, whatever the schema and the
//     arguments are; so does a match, whatever the rules and the facts are.
//     What a registry takes is counted before it is compiled: one that goes
//     beyond its limits is refused before it has cost much.
//  9. The first step rule whose when holds applies. What stands after it
//     changes nothing; a when that fails or costs too much doesn't hold.
//  10. A registry that passes the Floor of an install record binds no tool more
//     loosely than that record, and no tool of it is offered without the
//     capabilities that the record requires.
//
// # Glossary
//
//   - descriptor: what a model is shown of a tool. Its content is JSON with
//     sorted keys, and its Ref the SHA-256 of that.
//   - alternate: another descriptor for the same tool. Variant n of a tool is
//     its nth alternate, variant 0 its own descriptor.
//   - binding: what may happen when the tool is called. It stands in the
//     registry alone.
//   - floor: what an install record demands of a registry that a session sets.
//   - verdict: what became of a tool in a turn: offered, or what removed it.
//   - step rule: what is offered in a step, and how, if its when holds.
//   - when: a condition in a part of CEL. It sees a run at the beginning of a
//     step and nothing else.
//   - context: an object that a step rule leaves for later steps.
//   - key: what a call uses. A bare key overlaps all of its parts. A part is
//     text, or a path relative to the host session's working directory.
//
// # Argument schemas
//
// A schema is a self-contained object of JSON Schema draft 2020-12. It refers
// to itself by '#/…' or an anchor only, has no $id inside, and its patterns
// compile as RE2. format and content* are annotations. Arguments that fail are
// reported by the least (instance path, keyword) in byte order: of anyOf,
// oneOf, not, contains and propertyNames the keyword itself, not what fails
// inside; unevaluated* only when all else holds.
//
// # The language of when
//
// step (0-based), last (the names called in the last step), context,
// usage.input_tokens, .output_tokens, .cached_tokens, .reasoning_tokens;
// used("tool"), fact("name") ("" if there is none), role("name"). The tool is a
// literal, by tool_id or tool_name, and is looked up when the rule arrives.
//
// Booleans, integers of 64 bits, doubles, texts, null, and lists of them;
// && || ! ?: == != < <= > >= + - * / % in [], size, contains, startsWith,
// endsWith, int and double, has, all, exists and exists_one over lists.
// Not: times, maps and messages, bytes, unsigned integers, regular
// expressions, types. A context can be asked for a member by field or by key,
// and whether it has one; it can't be gone through.
//
// A member or an item that is not there, and a value of the wrong type, are
// failures, as an overflow and a division by zero are. || and && look no
// further than they must.
// An evaluation costs a step for each operation, and more by the size of what a
// call is given.
//
// # Limits
//
// All of them are in limits.go.
//
// # Testing
//
// testdata holds the rules as text, one case after the other, with the reasons
// between them; run the tests with -rewrite and read the difference. Beside
// them: laws on random input (rapid), an oracle written the slow way for
// Select and two for Schedule, the JSON Schema library as the oracle of the
// evaluation, and fuzzing of arguments, schemas and conditions. The laws of
// choosing and scheduling are held against 10,000 cases; -rapid.checks sets
// another number.
package planner
