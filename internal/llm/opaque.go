package llm

import (
	"encoding/json"

	"github.com/refold/refold/bridge/executor"
)

// Piece is one piece of what a model said, in the order in which it said it:
// one of Item, Text and Call.
type Piece struct {
	Item string `json:"item,omitempty"` // what only its provider can read, JSON, byte for byte
	Text int    `json:"text,omitempty"` // so many bytes of its words
	Call int    `json:"call,omitempty"` // its nth call, from 1
	Mark string `json:"mark,omitempty"` // what only its provider can read of these words, or of this call
}

// opaque is what an Answer's Opaque holds.
type opaque struct {
	Of       string   `json:"of"`
	Pieces   []Piece  `json:"pieces"`
	Thoughts Thoughts `json:"thoughts,omitempty"` // how earlier ones were sent when this was answered
}

// Seal returns what an Answer's Opaque is to hold, so that the provider of is
// sent what was its own, in its place. nil if nothing in pieces is anybody's
// own. Items in the end, of which nothing came, are left out: providers take
// back what a model thought only before what it said then.
func Seal(of string, pieces []Piece) json.RawMessage {
	for len(pieces) > 0 && pieces[len(pieces)-1].Item != "" {
		pieces = pieces[:len(pieces)-1]
	}
	own := false
	for _, p := range pieces {
		own = own || p.Item != "" || p.Mark != ""
	}
	if !own {
		return nil
	}
	return JSON(opaque{Of: of, Pieces: pieces})
}

// Pieces returns what an assistant's message is made of, for the provider of:
// as it was sealed, if that provider did it, it fits the message, and thoughts
// are sent; else its words, if there are any, and then its calls.
func Pieces(of string, thoughts Thoughts, m *executor.Message) []Piece {
	if o := openOpaque(of, m); o != nil && thoughts != ThoughtsLeftOut && o.fits(m) {
		return o.Pieces
	}
	var pieces []Piece
	if m.Text != "" {
		pieces = append(pieces, Piece{Text: len(m.Text)})
	}
	for i := range m.Calls {
		pieces = append(pieces, Piece{Call: i + 1})
	}
	return pieces
}

// openOpaque returns what the provider of sealed in a message, nil for nothing.
func openOpaque(of string, m *executor.Message) *opaque {
	var o opaque
	if len(m.Opaque) == 0 || json.Unmarshal(m.Opaque, &o) != nil || o.Of != of {
		return nil
	}
	return &o
}

// fits reports whether the pieces are all of the message: its words to the last
// byte, and each call once, in order.
func (o *opaque) fits(m *executor.Message) bool {
	text, calls := 0, 0
	for _, p := range o.Pieces {
		kinds := 0
		if p.Item != "" {
			kinds++
			if !json.Valid([]byte(p.Item)) {
				return false
			}
		}
		if p.Text != 0 {
			kinds++
			if p.Text < 0 || p.Text > len(m.Text)-text {
				return false
			}
			text += p.Text
		}
		if p.Call != 0 {
			kinds++
			if calls++; p.Call != calls {
				return false
			}
		}
		if kinds != 1 {
			return false
		}
	}
	return text == len(m.Text) && calls == len(m.Calls)
}
