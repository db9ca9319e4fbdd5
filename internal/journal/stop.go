package journal

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Stop is the quarantine of a session in the snapshots' bucket.
type Stop struct {
	Seq    uint64 `json:"seq"` // of the first event without stored outputs
	Reason string `json:"reason"`
	Kills  int    `json:"kills,omitempty"` // session-actors that died while they worked on the session

	// Retried reports that the load or store that fails is tried again, and that its
	// success releases the session.
	Retried bool `json:"retried,omitempty"`

	// Released reports that people have released the session. The quarantine stays
	// stored until the session is resumed: without it, an owner that follows one that
	// died would not know that the outputs of the events since Seq are not stored.
	Released bool `json:"released,omitempty"`
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
