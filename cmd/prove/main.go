//go:build js && wasm

// Command prove is the program of package prove for a browser. It gives the page's worker
// one function, refoldProve, which takes what to do and bytes, and returns JSON. make wasm
// builds it.
package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"syscall/js"

	"github.com/refold/refold/internal/prove"
)

// commit is that of the source, which make wasm sets.
var commit = "unknown"

// progress is how far a proof is.
type progress struct {
	Events int    `json:"events"`
	Next   uint64 `json:"next"` // sequence with which the next page begins; 0: all pages came
}

func main() {
	var p *prove.Session
	do := func(what string, a, b js.Value) (value any, err error) {
		defer func() {
			if v := recover(); v != nil {
				err = fmt.Errorf("the program panicked: %v", v)
			}
		}()
		switch {
		case what == "build":
			return map[string]string{"commit": commit, "go": runtime.Version()}, nil
		case what == "begin":
			p, err = prove.Begin(bytesOf(a), bytesOf(b))
			return nil, err
		case p == nil:
			return nil, fmt.Errorf("%s: no session was begun", what)
		case what == "page":
			events, next := p.Page(bytesOf(a))
			return progress{events, next}, nil
		}
		report := p.End()
		p = nil
		return report, nil
	}
	js.Global().Set("refoldProve", js.FuncOf(func(_ js.Value, args []js.Value) any {
		value, err := do(args[0].String(), args[1], args[2])
		answer := map[string]any{"value": value}
		if err != nil {
			answer = map[string]any{"error": err.Error()}
		}
		text, err := json.Marshal(answer)
		if err != nil {
			return `{"error": "the answer can't be written"}`
		}
		return string(text)
	}))
	select {}
}

// bytesOf returns a copy of an Uint8Array.
func bytesOf(v js.Value) []byte {
	b := make([]byte, v.Length())
	js.CopyBytesToGo(b, v)
	return b
}
