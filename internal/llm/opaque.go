package llm

import (
	"encoding/json"

	"github.com/refold/refold/bridge/executor"
)

// Piece is one piece of a model's answer, in the order in which the model
// produced it: one of Item, Text and Call.
type Piece struct {
	Item string `json:"item,omitempty"` // JSON that only its provider can read, kept byte for byte
	Text int    `json:"text,omitempty"` // the length of text in bytes
	Call int    `json:"call,omitempty"` // the number of a call, from 1
	Mark string `json:"mark,omitempty"` // data of this text or call that only its provider can read
}

// opaque is the content of an Answer's Opaque.
type opaque struct {
	Of       string   `json:"of"`
	Pieces   []Piece  `json:"pieces"`
	Thoughts Thoughts `json:"thoughts,omitempty"` // how the request sent earlier thoughts
}

// Seal returns an Answer's Opaque, from which later requests to the provider of
// send its own data back in its place. It returns nil if no piece has such
// data. It drops items at the end: providers accept a model's thoughts only
// before the output that followed them.
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

// Pieces returns the pieces of an assistant's message for the provider of. They
// are the sealed ones if that provider sealed them, they fit the message, and
// thoughts are sent; otherwise the text, if any, and then the calls.
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

// openOpaque returns what the provider of sealed in a message, or nil.
func openOpaque(of string, m *executor.Message) *opaque {
	if o := readOpaque(m); o != nil && o.Of == of {
		return o
	}
	return nil
}

// readOpaque returns what any provider sealed in a message, or nil.
func readOpaque(m *executor.Message) *opaque {
	var o opaque
	if len(m.Opaque) == 0 || json.Unmarshal(m.Opaque, &o) != nil {
		return nil
	}
	return &o
}

// fits reports whether the pieces make up the message: its text to the last
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
