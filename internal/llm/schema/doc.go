// Package schema turns the schema of a tool's arguments into a form that a
// provider's API accepts. All functions are pure.
//
// # Path
//
// [Dialect.Adapt] decides which tools of a request an API is sent, and under
// which names. [Dialect.Normalize] rewrites the schema of one of them. The model
// is shown the result; its arguments are renamed back, and checked against the
// original schema. [Dialect.Answer] gives the schema of an answer its form.
//
// # Laws
//
//   - Normalize has a result for every schema of a registry, unless no object
//     can be valid: its only error is [ErrNoObject].
//   - The API accepts the result: proof/strict has its rules.
//   - A result is a fixed point: normalized again, it does not change.
//   - A schema that an API accepts as it is keeps its content.
//   - A constraint that an API does not take is dropped, and named in the
//     description. So the result allows what the original allows, unless the
//     original refers to itself or is beyond a limit: then it allows more.
//   - Names and property keys are renamed one to one within a tool. Keys of an
//     answer are not renamed.
//   - The form of an answer that an API holds the model to is closed. It allows
//     less than the original only in that: without other properties.
//
// # Dialects
//
// Anthropic and OpenAI take JSON Schema with a few exceptions. Gemini and the
// servers of chat completions get a plain subset, in which every value has one
// type, or is anyOf such values. docs/models.md has the table.
package schema
