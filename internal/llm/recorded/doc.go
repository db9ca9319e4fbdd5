// Package recorded runs conversations that were held before: its Model says
// what the recorded model said, and its Executor answers calls with what the
// recorded tools returned.
//
// # Path
//
// [Load] reads a file of OpenAI chat JSONL, one conversation a line, as
// {"id", "messages"}, and splits each conversation into runs: a user message,
// then the model's turns, each with its calls and their results.
// [Recording.Install] makes the install record that offers the recorded tools.
// A driver publishes each of [Conversation.Users] as one run to the session
// that [Conversation.Session] names. Model and Executor find the conversation
// by the session's name, and the place in it by what the request shows and by
// the effect's name: r2t1c0 is the first call of the first turn after the
// second user message.
//
// # Laws
//
//   - The Model keeps nothing between two generations. It says the next turn
//     only if all it is shown equals the recording up to there: users' texts,
//     its own words, names and arguments of calls, results. Else it fails with
//     recording_mismatch, which says what was expected and what was shown.
//   - A turn that the file lacks fails with recording_ended. A conversation
//     that ends with a user message or a result ends so; [Conversation.Ends]
//     says how each one does.
//   - Calls are known by position. Ids in the file are data and may repeat.
//   - The Executor appends an execution to the [Ledger], and has it on disk,
//     before it returns the result: what was settled with a result is in the
//     ledger, whoever is killed when.
//
// # The ledger
//
// One JSON object a line:
//
//	{"session","effect","tool","arguments","idempotency_key","start","retry_safe"}
//
// arguments is the call's JSON object, start the ULID of that start of the
// effect. [Conversation.Ledger] says what should be there, [Tally] compares:
// an effect that may not run twice stands there once, or, if it was settled
// outcome_unknown, at most once. Several processes may append to one file.
//
// # Sessions
//
// A conversation's session is its id; characters that no session name has
// become "_". "--" and anything after it, as in warehouse-audit--again, is a
// further session of the same conversation.
//
// # Limits
//
// limits.go has the limits of a file.
//
// # Testing
//
// Tests run the recordings of testdata/recordings at the repository's root,
// and those of the folder that REFOLD_RECORDINGS names if it is set.
package recorded
