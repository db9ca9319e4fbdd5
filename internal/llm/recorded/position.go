package recorded

import "fmt"

// position identifies a call: run and turn count from 1, calls from 0.
type position struct{ run, turn, call int }

// parsePosition reads the name of a tool call's effect, as in r1t2c0.
func parsePosition(effect string) (p position, ok bool) {
	_, err := fmt.Sscanf(effect, "r%dt%dc%d", &p.run, &p.turn, &p.call)
	return p, err == nil && p.String() == effect && p.run > 0 && p.turn > 0 && p.call >= 0
}

// String returns the name of the call's effect.
func (p position) String() string { return fmt.Sprintf("r%dt%dc%d", p.run, p.turn, p.call) }
