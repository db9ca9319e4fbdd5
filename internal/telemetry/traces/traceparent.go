package traces

import "encoding/hex"

// Context is a W3C trace context: the caller's span.
type Context struct {
	Trace [16]byte
	Span  [8]byte
	Flags byte
}

// traceparentBytes is the length of every traceparent of version 00.
const traceparentBytes = 55

// ParseTraceparent reads a traceparent of version 00. It is the sender's
// unverified claim: no decision may depend on it.
func ParseTraceparent(text string) (c Context, ok bool) {
	if len(text) != traceparentBytes || text[:3] != "00-" || text[35] != '-' || text[52] != '-' {
		return Context{}, false
	}
	var flags [1]byte
	for _, part := range []struct {
		text string
		into []byte
	}{{text[3:35], c.Trace[:]}, {text[36:52], c.Span[:]}, {text[53:], flags[:]}} {
		for i := range len(part.text) {
			if ch := part.text[i]; (ch < '0' || ch > '9') && (ch < 'a' || ch > 'f') {
				return Context{}, false // hex.Decode accepts capitals, which the standard forbids
			}
		}
		if _, err := hex.Decode(part.into, []byte(part.text)); err != nil {
			return Context{}, false
		}
	}
	c.Flags = flags[0]
	return c, c.Trace != [16]byte{} && c.Span != [8]byte{}
}

// String returns the traceparent.
func (c Context) String() string {
	var b [traceparentBytes]byte
	copy(b[:], "00-")
	hex.Encode(b[3:], c.Trace[:])
	b[35] = '-'
	hex.Encode(b[36:], c.Span[:])
	b[52] = '-'
	hex.Encode(b[53:], []byte{c.Flags})
	return string(b[:])
}
