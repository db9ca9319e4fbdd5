package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/refold/refold/codec"
)

// position returns the place of codec's error in a JSON text, as :line:column, so
// that an editor finds it; "" if it is not known.
func position(text []byte, err error) string {
	var fault *codec.Error
	if !errors.As(err, &fault) {
		return ""
	}
	at := -1
	switch {
	case errors.Is(fault, codec.ErrJSON):
		at = fault.Offset
	case errors.Is(fault, codec.ErrUnknownField):
		at = keyAt(text, fault.Path, fault.Field)
	}
	if at < 0 || at > len(text) {
		return ""
	}
	before := text[:at]
	return fmt.Sprintf(":%d:%d", bytes.Count(before, []byte("\n"))+1, at-bytes.LastIndexByte(before, '\n'))
}

// keyAt returns the offset of a key in the object at a path such as
// tools[3].executor; -1 if there is none.
func keyAt(text []byte, path, key string) int {
	w := &keyWalk{decoder: json.NewDecoder(bytes.NewReader(text)), path: path, key: key, found: -1}
	_ = w.value("") // text that is not JSON has no such key
	if w.found < 0 {
		return -1
	}
	return bytes.LastIndexByte(text[:w.found-1], '"')
}

// keyWalk looks for a key.
type keyWalk struct {
	decoder   *json.Decoder
	path, key string
	found     int // offset after the key
}

var errFound = errors.New("found")

// value reads the value at a path.
func (w *keyWalk) value(path string) error {
	token, err := w.decoder.Token()
	if err != nil {
		return err
	}
	open, _ := token.(json.Delim)
	for i := 0; (open == '{' || open == '[') && w.decoder.More(); i++ {
		inner := fmt.Sprintf("%s[%d]", path, i)
		if open == '{' {
			token, err := w.decoder.Token()
			if err != nil {
				return err
			}
			key, _ := token.(string)
			if path == w.path && key == w.key {
				w.found = int(w.decoder.InputOffset())
				return errFound
			}
			inner = key
			if path != "" {
				inner = path + "." + key
			}
		}
		if err := w.value(inner); err != nil {
			return err
		}
	}
	if open == '{' || open == '[' {
		_, err = w.decoder.Token()
	}
	return err
}
