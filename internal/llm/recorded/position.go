package recorded

import (
	"strconv"
	"strings"
)

// position identifies a call: run and turn count from 1, calls from 0.
type position struct{ run, turn, call int }

// parsePosition reads the name of a tool call's effect: r1t2c0, or r1t2c0a2 for
// its second attempt, which has the same position.
func parsePosition(effect string) (position, bool) {
	effect, attempt, again := strings.Cut(effect, "a")
	if again {
		if n, ok := number(attempt); !ok || n < 2 {
			return position{}, false
		}
	}
	rest, ok := strings.CutPrefix(effect, "r")
	if !ok {
		return position{}, false
	}
	run, rest, _ := strings.Cut(rest, "t")
	turn, call, _ := strings.Cut(rest, "c")
	var p position
	var okRun, okTurn, okCall bool
	p.run, okRun = number(run)
	p.turn, okTurn = number(turn)
	p.call, okCall = number(call)
	return p, okRun && okTurn && okCall && p.run > 0 && p.turn > 0
}

// number reads a decimal number of at most nine digits without leading zeros.
func number(text string) (int, bool) {
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= 0 && len(text) <= 9 && strconv.Itoa(n) == text
}

// String returns the name of the effect's first attempt.
func (p position) String() string {
	return "r" + strconv.Itoa(p.run) + "t" + strconv.Itoa(p.turn) + "c" + strconv.Itoa(p.call)
}
