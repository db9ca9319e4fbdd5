package llm

import (
	"context"
	"unicode/utf8"
)

// The sizes of the pieces that Stream makes, in bytes. A piece ends after a
// space once it is long enough, and anywhere between two characters when no
// space comes.
const (
	pieceBytesMin = 16
	pieceBytesMax = 64
)

// Stream hands text to delta in pieces, in order and without a wait: joined,
// they are the text. It stops between two pieces when ctx is cancelled, and
// returns ctx's error then.
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
