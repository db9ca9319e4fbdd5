package codec

import (
	"errors"
	"strconv"
	"unicode/utf8"
)

// The kinds of fault. Every error of this package, except those of ParseHash and
// ParseRef, is an *Error that wraps exactly one of them, for errors.Is.
var (
	ErrTruncated    = errors.New("codec: truncated")           // the bytes end inside a value
	ErrTrailing     = errors.New("codec: trailing bytes")      // bytes follow the value
	ErrNotCanonical = errors.New("codec: not canonical")       // a value in another than its canonical form
	ErrDuplicateKey = errors.New("codec: duplicate key")       // a map has a key twice
	ErrKeyType      = errors.New("codec: key is not text")     // a map has a key of another type
	ErrUnsupported  = errors.New("codec: unsupported type")    // an extension type or a reserved byte
	ErrUTF8         = errors.New("codec: invalid text")        // text that is not valid UTF-8
	ErrNumber       = errors.New("codec: number")              // NaN, an infinity, or too large for a float64
	ErrDepth        = errors.New("codec: too deep")            // containers nested deeper than DepthMax
	ErrSize         = errors.New("codec: too large")           // more bytes than the limit
	ErrJSON         = errors.New("codec: invalid JSON")        // not the grammar of RFC 8259
	ErrNotObject    = errors.New("codec: not an object")       // Canonicalize got neither an object nor a map
	ErrUnknownField = errors.New("codec: unknown field")       // a key that the Go struct does not have
	ErrMissingField = errors.New("codec: missing field")       // a key that the Go struct always writes is absent
	ErrMismatch     = errors.New("codec: mismatch")            // a value that the Go variable cannot hold
	ErrGoType       = errors.New("codec: unsupported Go type") // a Go type without an encoding: a bug of the caller
)

// Error is a fault of some bytes or of a Go value. Its text depends only on the input
// and has at most a few short excerpts of it, so it may be stored.
type Error struct {
	Kind   error  // one of the Err values
	Offset int    // byte at which the faulty value begins; when encoding, in the output so far
	Path   string // field names and indexes, as far as known: config.tools[3]
	What   string // what is wrong, as part of a sentence
	Field  string // of ErrUnknownField and ErrMissingField: the key, not part of the text
	Cause  error  // the error of the type's own method, if one was called; not part of the text
}

// Error returns the text.
func (e *Error) Error() string {
	text := "codec: " + e.What + " at byte " + strconv.Itoa(e.Offset)
	if e.Path != "" {
		text += ", in " + e.Path
	}
	return text
}

// Unwrap returns the kind, and the cause if there is one.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Cause}
}

func fault(kind error, offset int, what string) error {
	return &Error{Kind: kind, Offset: offset, What: what}
}

// pathBytesMax bounds Error.Path; outer parts are dropped first.
const pathBytesMax = 96

// inField adds the named field to the path of err.
func inField(err error, name string) error { return inside(err, clip(name)) }

// inElement adds the i-th element to the path of err.
func inElement(err error, i int) error { return inside(err, "["+strconv.Itoa(i)+"]") }

func inside(err error, outer string) error {
	if e, ok := err.(*Error); ok {
		if e.Path != "" && e.Path[0] != '[' {
			outer += "."
		}
		if len(outer)+len(e.Path) <= pathBytesMax {
			e.Path = outer + e.Path
		}
	}
	return err
}

// clipBytes is how much of a foreign text an error quotes.
const clipBytes = 32

// clip shortens text for use in an error, between two runes.
func clip(text string) string {
	if len(text) <= clipBytes {
		return text
	}
	end := clipBytes
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}

// quote quotes text for use in an error.
func quote[T string | []byte](text T) string { return strconv.QuoteToASCII(clip(string(text))) }
