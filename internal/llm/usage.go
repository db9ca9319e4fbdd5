package llm

import "github.com/refold/refold/actors/session"

// Count returns a count of tokens; what no count can be is taken as none.
func Count(n int64) int64 {
	if n < 0 || n > session.TokensMax {
		return 0
	}
	return n
}
