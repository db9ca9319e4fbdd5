package journal

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Stop stops one session, under the key q.<session> in REFOLD_SNAPSHOTS, as JSON.
//
// A released one stays stored until the session is resumed: without it, an owner that
// follows one that died would not know that the outputs of the events since Seq are not
// stored.
type Stop struct {
	// Sequence of the first event that is not done. It and all later events count as
	// stored, and are not folded.
	Seq uint64 `json:"seq" lim:"1.."`
	// Why the session is stopped.
	Reason string `json:"reason" lim:"any"`
	// Number of session-actors that ended while they worked on that event.
	Kills int `json:"kills,omitempty" lim:"1.."`

	// The session could not be loaded, or its outputs could not be stored, while others
	// could. That is tried again each minute, and its success releases the session.
	Retried bool `json:"retried,omitempty" lim:"=true"`

	// People have released the session. Its session-actor resumes it, and then deletes the
	// key.
	Released bool `json:"released,omitempty" lim:"=true"`
}

// stopReasonMax is how many bytes of a reason are kept. The text of a panic or a
// library may have any length, and a quarantine that is too large to store has no effect.
const stopReasonMax = 4 << 10

// NewStop returns the quarantine of a session from the event at seq on. It truncates a
// very long reason.
func NewStop(seq uint64, reason string) Stop {
	if len(reason) > stopReasonMax {
		reason = fmt.Sprintf("%s… (%d bytes in all)", strings.ToValidUTF8(reason[:stopReasonMax], ""), len(reason))
	}
	return Stop{Seq: seq, Reason: reason}
}

// ParseStop parses a stored quarantine. The session is quarantined even if the body
// does not parse (somebody may have put the key by hand): then from its first event on.
func ParseStop(body []byte) Stop {
	var s Stop
	if err := json.Unmarshal(body, &s); err != nil {
		s = NewStop(1, fmt.Sprintf("the stored quarantine does not parse (%v): %q", err, body[:min(len(body), 256)]))
	}
	s.Seq = max(s.Seq, 1)
	return s
}

// StaysStored reports whether the quarantine stays stored until its session is
// resumed: that may kill its owner, or the owner may die before. Otherwise somebody
// has deleted it.
func (s Stop) StaysStored() bool { return s.Kills > 0 || s.Retried || s.Released }

// Bytes returns the stored form of s.
func (s Stop) Bytes() ([]byte, error) { return json.Marshal(s) }
