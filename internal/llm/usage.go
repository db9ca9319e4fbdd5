package llm

import "github.com/refold/refold/actors/session"

// Count returns a count of tokens, or 0 if n is not a possible one.
func Count(n int64) int64 {
	if n < 0 || n > session.TokensMax {
		return 0
	}
	return n
}
