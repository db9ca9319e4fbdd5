package natsio

import (
	"fmt"
	"strings"
)

// Durability says what must fail before an acknowledged event is lost.
type Durability uint8

const (
	// DurabilityUnknown: nobody stated it, and no server reported it.
	DurabilityUnknown Durability = iota
	// DurabilityInterval: servers sync periodically. A power failure of one machine
	// loses what was acknowledged since the last sync.
	DurabilityInterval
	// DurabilityReplicated: every stream is on three or more servers, and not all of
	// them sync every write. Only a simultaneous power failure of most of them loses
	// anything.
	DurabilityReplicated
	// DurabilityAlways: servers sync before they acknowledge.
	DurabilityAlways
)

var durabilityTexts = [...]string{"unknown", "interval", "replicated", "always"}

func (d Durability) String() string {
	if int(d) < len(durabilityTexts) {
		return durabilityTexts[d]
	}
	return fmt.Sprintf("durability %d", uint8(d))
}

// ParseDurability parses what an operator requires: interval, always or replicated.
// Empty is DurabilityUnknown, which requires nothing.
func ParseDurability(text string) (Durability, error) {
	for d, known := range durabilityTexts {
		if d > 0 && text == known {
			return Durability(d), nil
		}
	}
	if text == "" {
		return DurabilityUnknown, nil
	}
	return DurabilityUnknown, fmt.Errorf("durability %q: use %s", text, strings.Join(durabilityTexts[1:], ", "))
}
