package llm

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/refold/refold/actors/session"
)

// callIDBytes is the length of a call's id. Mistral's servers and templates
// require nine letters and digits; all others accept them.
const callIDBytes = 9

// CallID returns a call's id as it is sent to every provider: nine letters and
// digits that follow from the name of its effect. r1t2c0 becomes r1t2c0xxx; a
// longer name becomes x and its numbers in base 36. No two calls of a transcript
// have the same id.
func CallID(effect string) string {
	var run, turn, call uint64
	_, err := fmt.Sscanf(effect, "r%dt%dc%d", &run, &turn, &call)
	switch {
	case err != nil || fmt.Sprintf("r%dt%dc%d", run, turn, call) != effect: // no session names a call so
		digest := sha256.Sum256([]byte(effect))
		return "y" + base36(binary.BigEndian.Uint64(digest[:]))
	case len(effect) <= callIDBytes:
		return effect + strings.Repeat("x", callIDBytes-len(effect))
	}
	return "x" + base36((run*(session.TurnsMax+1)+turn)*session.CallsSeenMax+call)
}

// base36 returns the last digits of n.
func base36(n uint64) string {
	text := strings.Repeat("0", callIDBytes) + strconv.FormatUint(n, 36)
	return text[len(text)-(callIDBytes-1):]
}

// argumentsDepthMax is how deeply arguments may be nested. The JSON parsers of
// some servers accept 128 levels in a whole request.
const argumentsDepthMax = 100

// Object returns a call's arguments as an object: servers refuse a conversation
// with arguments that are not one, or that they can't read. {"_invalid": …} with
// the text replaces them, and {} arguments that the model left out.
func Object(arguments string) json.RawMessage {
	text := strings.TrimSpace(arguments)
	switch {
	case arguments == "":
		return json.RawMessage("{}")
	case strings.HasPrefix(text, "{") && json.Valid([]byte(text)) && IsReadable(text, argumentsDepthMax):
		return json.RawMessage(text)
	}
	return InvalidObject(arguments)
}

// InvalidObject returns the object that replaces arguments.
func InvalidObject(arguments string) json.RawMessage {
	return JSON(map[string]string{"_invalid": arguments})
}

// IsReadable reports whether valid JSON is nested at most that deep, and a double
// can hold its numbers.
func IsReadable(text string, depthMax int) bool {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			for i++; text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case c == '{' || c == '[':
			if depth++; depth > depthMax {
				return false
			}
		case c == '}' || c == ']':
			depth--
		case c == '-' || '0' <= c && c <= '9':
			end := i + 1
			for end < len(text) && strings.IndexByte("+-.0123456789Ee", text[end]) >= 0 {
				end++
			}
			if _, err := strconv.ParseFloat(text[i:end], 64); err != nil {
				return false
			}
			i = end - 1
		}
	}
	return true
}
