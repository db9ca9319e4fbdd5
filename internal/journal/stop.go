package journal

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Stop is what the snapshots' bucket holds about a quarantined session. Who
// deletes it releases the session.
type Stop struct {
	Seq    uint64 `json:"seq"` // of the first event that is not done
	Reason string `json:"reason"`
	Kills  int    `json:"kills,omitempty"` // session-actors that ended while they worked on it
}

// stopReasonMax is how many bytes of a reason are kept: what a panic or a
// library says may be of any length, and what can't be stored stops nobody.
const stopReasonMax = 4 << 10

// NewStop returns the quarantine of a session from the event at seq on; of a very
// long reason it has the beginning.
func NewStop(seq uint64, reason string) Stop {
	if len(reason) > stopReasonMax {
		reason = fmt.Sprintf("%s… (%d bytes in all)", strings.ToValidUTF8(reason[:stopReasonMax], ""), len(reason))
	}
	return Stop{Seq: seq, Reason: reason}
}

// ParseStop reads what is stored of a quarantine. Whatever that is, the session is
// quarantined: by what can't be read, as if somebody put the key by hand, from its
// first event on.
func ParseStop(body []byte) Stop {
	var s Stop
	if err := json.Unmarshal(body, &s); err != nil {
		s = NewStop(1, fmt.Sprintf("stopped by what is no quarantine (%v): %q", err, body[:min(len(body), 256)]))
	}
	s.Seq = max(s.Seq, 1)
	return s
}

// Bytes returns what is stored of it.
func (s Stop) Bytes() ([]byte, error) { return json.Marshal(s) }
