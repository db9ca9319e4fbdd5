// Package recorded plays back recorded conversations: its Model answers as the
// recorded model did, and its Executor returns the recorded results.
//
// # Path
//
// [Load] reads a file of OpenAI chat JSONL, one conversation a line, as {"id",
// "messages"}, and splits each conversation into runs: a user message, then the
// model's turns, each with its calls and their results. [Recording.Install] returns
// the install record that offers the recorded tools. A driver publishes each of
// [Conversation.Users] as one run of the session [Conversation.Session]. Model and
// Executor find the conversation by the session's name, and the position in it by
// the request's content and the effect's name: r2t1c0 is the first call of the
// first turn after the second user message.
//
// # Laws
//
//   - The Model keeps nothing between two generations. It returns the next turn
//     only if the whole request equals the recording so far: users' texts, its
//     own text, names and arguments of calls, results. Otherwise it fails with
//     recording_mismatch, and the detail quotes both.
//   - A turn that the file lacks fails with recording_ended. A conversation
//     that ends with a user message or a result ends so; [Conversation.Ends]
//     returns how each one ends.
//   - Calls are identified by position. Ids in the file are data and may repeat.
//   - The Executor appends an execution to the [Ledger], on disk, before it
//     returns the result. So every call that was settled with a result is in
//     the ledger, whichever process is killed.
//
// # The ledger
//
// One JSON object a line:
//
//	{"session","effect","tool","arguments","idempotency_key","start","retry_safe"}
//
// arguments is the call's JSON object, start the ULID of that start of the
// effect. [Conversation.Ledger] returns the expected entries, and [Tally]
// compares. An effect that may not run twice has one entry, or at most one if
// it was settled outcome_unknown. Several processes may append to one file.
//
// # Sessions
//
// The session of a conversation is named by its id; other characters than those
// of session names become "_". A name with "--" and a suffix, as in
// warehouse-audit--again, is another session of the same conversation.
//
// # Limits
//
// limits.go has the limits of a file.
//
// # Testing
//
// Tests run the recordings of testdata/recordings at the repository's root, and
// those of the folder that REFOLD_RECORDINGS names if it is set.
package recorded
