package session

import (
	"strconv"
	"strings"
)

// place is a parsed effect name: an effect's name is its place.
type place struct {
	run, turn, wake uint32
	attempt         uint32 // of a generation, from 0
	call            int32  // -1: the generation itself, or its step
	step            bool
}

func (p place) class() Class {
	switch {
	case p.wake > 0:
		return ClassWake
	case p.call >= 0:
		return ClassTool
	case p.step:
		return ClassStep
	}
	return ClassLLM
}

// parseName reads an effect's name: r1t2, r1t2c0, r1t2s, w1.
func parseName(name string) (place, bool) {
	if rest, ok := strings.CutPrefix(name, "w"); ok {
		n, ok := parseNumber(rest)
		return place{wake: n, call: -1}, ok && n > 0
	}
	rest, ok := strings.CutPrefix(name, "r")
	if !ok {
		return place{}, false
	}
	runText, rest, ok := strings.Cut(rest, "t")
	if !ok {
		return place{}, false
	}
	turnText, callText, hasCall := strings.Cut(rest, "c")
	p := place{call: -1}
	if !hasCall {
		turnText, p.step = strings.CutSuffix(turnText, "s")
	}
	if base, attemptText, again := strings.Cut(turnText, "a"); again && !hasCall && !p.step {
		n, ok := parseNumber(attemptText)
		if !ok || n < 2 || n > AttemptsMax {
			return place{}, false
		}
		turnText, p.attempt = base, n-1
	}
	var okRun, okTurn bool
	p.run, okRun = parseNumber(runText)
	p.turn, okTurn = parseNumber(turnText)
	if !okRun || !okTurn || p.run == 0 || p.turn == 0 {
		return place{}, false
	}
	if hasCall {
		n, ok := parseNumber(callText)
		if !ok || n >= CallsMax {
			return place{}, false
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

// turnName, callName, stepName and wakeName spell the names of effects.
func turnName(run, turn uint32) string {
	return "r" + strconv.FormatUint(uint64(run), 10) + "t" + strconv.FormatUint(uint64(turn), 10)
}

// name returns the name of the turn's generation, as its latest attempt is
// asked.
func (t *Turn) name() string {
	name := turnName(t.Run, t.Number)
	if t.Attempt > 0 {
		name += "a" + strconv.FormatUint(uint64(t.Attempt)+1, 10)
	}
	return name
}

func callName(run, turn uint32, call int) string {
	return turnName(run, turn) + "c" + strconv.Itoa(call)
}

func stepName(run, turn uint32) string { return turnName(run, turn) + "s" }

func wakeName(n uint32) string { return "w" + strconv.FormatUint(uint64(n), 10) }
