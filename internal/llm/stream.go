package llm

import (
	"context"
	"unicode/utf8"
)

// The sizes of the pieces that Stream makes, in bytes. A piece ends after the
// first space beyond the minimum, or between two characters at the maximum.
const (
	pieceBytesMin = 16
	pieceBytesMax = 64
)

// Stream passes text to delta in pieces, in order and without waiting. If ctx
// is cancelled, it stops between two pieces and returns ctx's error.
func Stream(ctx context.Context, text string, delta func(text string)) error {
	for text != "" {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := piece(text)
		delta(text[:n])
		text = text[n:]
	}
	return ctx.Err()
}

// piece returns the length of text's first piece.
func piece(text string) int {
	if len(text) <= pieceBytesMin {
		return len(text)
	}
	for i := pieceBytesMin; i < len(text) && i < pieceBytesMax; i++ {
		if text[i] == ' ' || text[i] == '\n' {
			return i + 1
		}
	}
	if len(text) <= pieceBytesMax {
		return len(text)
	}
	end := pieceBytesMax
	for end > pieceBytesMin && !utf8.RuneStart(text[end]) {
		end--
	}
	return end
}
