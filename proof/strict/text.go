package strict

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"
)

// requestUnicode is a rule for every request.
const requestUnicode providerRule = "request: its text is Unicode text"

// depthMax is how deeply a value in a request may be nested, and geminiDepthMax
// the same for Gemini, whose values are protocol buffers.
const (
	depthMax       = 64
	geminiDepthMax = 32
)

// escape is an escape in JSON: of a surrogate pair, of one code unit, or another one.
var escape = regexp.MustCompile(`\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.`)

// half is the escape of a half surrogate pair, or of NUL.
var half = regexp.MustCompile(`^\\u([dD][89a-fA-F][0-9a-fA-F]{2}|0000)$`)

// Unicode returns an error if JSON has text that strict parsers refuse.
func Unicode(body []byte) error {
	if !utf8.Valid(body) || strings.IndexByte(string(body), 0) >= 0 {
		return breaks(requestUnicode, "it has bytes that are no UTF-8, or NUL")
	}
	for _, e := range escape.FindAll(body, -1) {
		if half.Match(e) {
			return breaks(requestUnicode, "it has %s", e)
		}
	}
	return nil
}

// objectFault returns why a server can't read arguments, nil if it can: they are
// an object, of text that is Unicode and of numbers that a double can hold.
func objectFault(text string, depthMax int) error {
	if !IsObject(text) {
		return fmt.Errorf("%.60q is no JSON object", text)
	}
	if err := Unicode([]byte(text)); err != nil {
		return err
	}
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	for depth := 0; ; {
		token, err := dec.Token()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		switch v := token.(type) {
		case json.Number:
			if _, err := v.Float64(); err != nil {
				return err
			}
		case json.Delim:
			if v == '}' || v == ']' {
				depth--
			} else if depth++; depth > depthMax {
				return fmt.Errorf("nested more than %d times", depthMax)
			}
		}
	}
}
