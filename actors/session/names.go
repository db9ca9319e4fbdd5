package session

import (
	"strconv"
	"strings"
)

// Place is a parsed effect name, and equivalent to it. Comparing Places costs less
// than comparing names.
type Place struct {
	kind      kind
	run, turn uint32
	n         uint32 // of a wake or a sync: its number; of a generation: attempts before it; of a call: its index
}

// String returns the name.
func (p Place) String() string {
	var room [nameRoom]byte
	return string(p.Append(room[:0]))
}

// Append appends the name to b.
func (p Place) Append(b []byte) []byte {
	if prefix := classes[p.kind].prefix; prefix != 0 {
		return strconv.AppendUint(append(b, prefix), uint64(p.n), 10)
	}
	b = appendTurn(b, p.run, p.turn)
	switch {
	case p.kind == kindTool:
		b = strconv.AppendUint(append(b, 'c'), uint64(p.n), 10)
	case p.kind == kindStep:
		b = append(b, 's')
	case p.n > 0:
		b = strconv.AppendUint(append(b, 'a'), uint64(p.n)+1, 10)
	}
	return b
}

// IsWake reports whether the effect is a wake, which no bridge carries out.
func (p Place) IsWake() bool { return p.kind == kindWake }

// parseName parses an effect's name: r1t2, r1t2c0, r1t2s, w1, y1.
func parseName(name string) (Place, bool) {
	rest, ok := strings.CutPrefix(name, "r")
	if !ok {
		return parseNumbered(name)
	}
	runText, rest, ok := strings.Cut(rest, "t")
	if !ok {
		return Place{}, false
	}
	turnText, callText, hasCall := strings.Cut(rest, "c")
	var p Place
	if hasCall {
		p.kind = kindTool
	} else if cut, isStep := strings.CutSuffix(turnText, "s"); isStep {
		turnText, p.kind = cut, kindStep
	}
	if base, attemptText, again := strings.Cut(turnText, "a"); again && p.kind == kindLLM {
		n, ok := parseNumber(attemptText)
		if !ok || n < 2 || n > AttemptsMax {
			return Place{}, false
		}
		turnText, p.n = base, n-1
	}
	var okRun, okTurn bool
	p.run, okRun = parseNumber(runText)
	p.turn, okTurn = parseNumber(turnText)
	if !okRun || !okTurn || p.run == 0 || p.turn == 0 {
		return Place{}, false
	}
	if hasCall {
		if p.n, ok = parseNumber(callText); !ok || p.n >= CallsMax {
			return Place{}, false
		}
	}
	return p, true
}

// parseNumbered parses a name that is a prefix and a number.
func parseNumbered(name string) (Place, bool) {
	for k := range classes {
		if prefix := classes[k].prefix; prefix != 0 && name != "" && name[0] == prefix {
			n, ok := parseNumber(name[1:])
			return Place{kind: kind(k), n: n}, ok && n > 0
		}
	}
	return Place{}, false
}

// parseNumber parses a decimal number in its only valid form.
func parseNumber(text string) (uint32, bool) {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || strconv.FormatUint(n, 10) != text {
		return 0, false
	}
	return uint32(n), true
}

// nameRoom exceeds the longest name: three numbers of ten digits.
const nameRoom = 40

func appendTurn(b []byte, run, turn uint32) []byte {
	b = strconv.AppendUint(append(b, 'r'), uint64(run), 10)
	return strconv.AppendUint(append(b, 't'), uint64(turn), 10)
}

// turnName, callName and wakeName return names, each with one allocation: every
// effect has one.
func turnName(run, turn uint32) string {
	var room [nameRoom]byte
	return string(appendTurn(room[:0], run, turn))
}

func callName(run, turn uint32, call int) string {
	return Place{kind: kindTool, run: run, turn: turn, n: uint32(call)}.String()
}

func wakeName(n uint32) string { return Place{kind: kindWake, n: n}.String() }

// generation, step and call return Places of the turn: of the latest attempt at its
// generation, of its step, and of a call.
func (t *Turn) generation() Place { return Place{run: t.Run, turn: t.Number, n: uint32(t.Attempt)} }

func (t *Turn) step() Place { return Place{kind: kindStep, run: t.Run, turn: t.Number} }

func (t *Turn) call(i int) Place {
	return Place{kind: kindTool, run: t.Run, turn: t.Number, n: uint32(i)}
}

// name returns the effect's name of the latest attempt at the turn.
func (t *Turn) name() string { return t.generation().String() }
