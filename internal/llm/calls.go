package llm

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
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

// Object returns a call's arguments as an object: servers refuse a conversation
// with arguments that are not one, or that they can't read. {"_invalid": …} with
// the text replaces those that the session itself can't read, and {} those that
// the model left out.
func Object(arguments string) json.RawMessage {
	text := strings.TrimSpace(arguments)
	if arguments == "" {
		return json.RawMessage("{}")
	}
	if !strings.HasPrefix(text, "{") {
		return invalid(arguments)
	}
	if _, err := codec.FromJSON([]byte(text)); err != nil {
		return invalid(arguments)
	}
	return json.RawMessage(text)
}

func invalid(arguments string) json.RawMessage {
	return JSON(map[string]string{"_invalid": arguments})
}
