package bridge

import (
	"encoding/json"
	"unicode/utf8"
)

// delta is one streaming delta. It is gone when read; the log never has it.
type delta struct {
	Effect string `json:"effect"`
	Start  string `json:"start"` // which start of the effect says it
	N      int    `json:"n"`     // from 0, per start, without gaps
	Text   string `json:"text"`
}

// liveDeltas publishes what a model says while it says it. One start of one
// generation has one.
type liveDeltas struct {
	wire               wire
	sid, effect, start string
	n                  int
}

// say publishes text, in pieces if it is long. Nobody waits for a delta, so a
// failure is nobody's business: the settlement has the whole text.
func (l *liveDeltas) say(text string) {
	text = valid(text)
	for text != "" {
		piece := text
		if len(piece) > deltaBytesMax {
			end := deltaBytesMax
			for !utf8.RuneStart(text[end]) {
				end--
			}
			piece = text[:end]
		}
		text = text[len(piece):]
		payload, err := json.Marshal(delta{Effect: l.effect, Start: l.start, N: l.n, Text: piece})
		if err != nil {
			return
		}
		l.n++
		_ = l.wire.Live(l.sid, payload)
	}
}
