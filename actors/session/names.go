package session

import (
	"strconv"
	"strings"
)

// Place is a parsed effect name: an effect's name is its place. Places can be
// compared, which costs less than spelling names to compare those.
type Place struct {
	run, turn, wake uint32
	sync            uint32 // of a space
	attempt         uint32 // of a generation, from 0
	call            int32  // -1: the generation itself, or its step
	step            bool
}

// String spells the name.
func (p Place) String() string {
	var room [nameRoom]byte
	return string(p.Append(room[:0]))
}

// Append appends the name to b.
func (p Place) Append(b []byte) []byte {
	switch {
	case p.sync > 0:
		return strconv.AppendUint(append(b, 'y'), uint64(p.sync), 10)
	case p.wake > 0:
		return strconv.AppendUint(append(b, 'w'), uint64(p.wake), 10)
	case p.call >= 0:
		return strconv.AppendInt(append(appendTurn(b, p.run, p.turn), 'c'), int64(p.call), 10)
	case p.step:
		return append(appendTurn(b, p.run, p.turn), 's')
	}
	b = appendTurn(b, p.run, p.turn)
	if p.attempt > 0 {
		b = strconv.AppendUint(append(b, 'a'), uint64(p.attempt)+1, 10)
	}
	return b
}

// IsWake reports whether the effect is a wake, which no bridge carries out.
func (p Place) IsWake() bool { return p.wake > 0 }

func (p Place) class() Class {
	switch {
	case p.wake > 0:
		return ClassWake
	case p.sync > 0:
		return ClassSpace
	case p.call >= 0:
		return ClassTool
	case p.step:
		return ClassStep
	}
	return ClassLLM
}

// parseName reads an effect's name: r1t2, r1t2c0, r1t2s, w1, y1.
func parseName(name string) (Place, bool) {
	if rest, ok := strings.CutPrefix(name, "w"); ok {
		n, ok := parseNumber(rest)
		return Place{wake: n, call: -1}, ok && n > 0
	}
	if rest, ok := strings.CutPrefix(name, "y"); ok {
		n, ok := parseNumber(rest)
		return Place{sync: n, call: -1}, ok && n > 0
	}
	rest, ok := strings.CutPrefix(name, "r")
	if !ok {
		return Place{}, false
	}
	runText, rest, ok := strings.Cut(rest, "t")
	if !ok {
		return Place{}, false
	}
	turnText, callText, hasCall := strings.Cut(rest, "c")
	p := Place{call: -1}
	if !hasCall {
		turnText, p.step = strings.CutSuffix(turnText, "s")
	}
	if base, attemptText, again := strings.Cut(turnText, "a"); again && !hasCall && !p.step {
		n, ok := parseNumber(attemptText)
		if !ok || n < 2 || n > AttemptsMax {
			return Place{}, false
		}
		turnText, p.attempt = base, n-1
	}
	var okRun, okTurn bool
	p.run, okRun = parseNumber(runText)
	p.turn, okTurn = parseNumber(turnText)
	if !okRun || !okTurn || p.run == 0 || p.turn == 0 {
		return Place{}, false
	}
	if hasCall {
		n, ok := parseNumber(callText)
		if !ok || n >= CallsMax {
			return Place{}, false
		}
		p.call = int32(n)
	}
	return p, true
}

// parseNumber reads a decimal number that has only one spelling.
func parseNumber(text string) (uint32, bool) {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || strconv.FormatUint(n, 10) != text {
		return 0, false
	}
	return uint32(n), true
}

// nameRoom is more than the longest name takes: three numbers of ten digits.
const nameRoom = 40

func appendTurn(b []byte, run, turn uint32) []byte {
	b = strconv.AppendUint(append(b, 'r'), uint64(run), 10)
	return strconv.AppendUint(append(b, 't'), uint64(turn), 10)
}

// turnName, generationName, callName, stepName and wakeName spell the names of
// effects, each with one allocation: every effect has one.
func turnName(run, turn uint32) string {
	var room [nameRoom]byte
	return string(appendTurn(room[:0], run, turn))
}

func generationName(run, turn, attempt uint32) string {
	return Place{run: run, turn: turn, attempt: attempt, call: -1}.String()
}

func callName(run, turn uint32, call int) string {
	return Place{run: run, turn: turn, call: int32(call)}.String()
}

func stepName(run, turn uint32) string {
	return Place{run: run, turn: turn, step: true, call: -1}.String()
}

func wakeName(n uint32) string { return Place{wake: n, call: -1}.String() }

// name returns the name of the turn's generation, as its latest attempt is
// asked.
func (t *Turn) name() string { return generationName(t.Run, t.Number, uint32(t.Attempt)) }
