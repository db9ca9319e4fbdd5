package llm

// Short messages that are sent where strict servers require one. Chat templates
// and validators refuse two messages of one role in a row, a user's message
// right after a result, or a conversation that the user does not begin.
const (
	Interrupted = "(interrupted)" // the assistant's, where the model did not answer
	GoOn        = "(go on)"       // the user's, where nobody asked
)
