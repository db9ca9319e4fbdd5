package natsio

import (
	"fmt"
	"strings"
)

// Durability says what must fail before an acknowledged event is lost.
type Durability uint8

const (
	// DurabilityUnknown is what nobody has said and nothing has shown.
	DurabilityUnknown Durability = iota
	// DurabilityInterval syncs now and then: a power failure of one machine
	// takes what was acknowledged since.
	DurabilityInterval
	// DurabilityReplicated has every stream on three servers or more, that don't
	// all sync: it takes a power failure of most of them at once.
	DurabilityReplicated
	// DurabilityAlways syncs before it acknowledges.
	DurabilityAlways
)

var durabilityTexts = [...]string{"unknown", "interval", "replicated", "always"}

func (d Durability) String() string {
	if int(d) < len(durabilityTexts) {
		return durabilityTexts[d]
	}
	return fmt.Sprintf("durability %d", uint8(d))
}

// ParseDurability reads what an operator wants: interval, always or replicated;
// empty is DurabilityUnknown, which wants nothing.
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
