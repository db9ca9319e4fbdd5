package codec

// The Append functions write the parts of a canonical value one after another, for
// the few places where Marshal is too slow (docs/adr/0052). The caller must order the
// keys, and write as many entries or items as it has announced.

// AppendMap begins a map of n entries: n times a key, its value.
func AppendMap(out []byte, n int) []byte { return appendMapHead(out, n) }

// AppendArray begins an array of n items.
func AppendArray(out []byte, n int) []byte { return appendArrayHead(out, n) }

// AppendString writes a text, which must be valid UTF-8.
func AppendString(out []byte, text string) []byte { return appendText(out, text) }

// AppendBool writes a truth value.
func AppendBool(out []byte, b bool) []byte { return appendBool(out, b) }

// AppendInt writes an integer.
func AppendInt(out []byte, i int64) []byte { return appendInt(out, i) }

// AppendUint writes an integer that is not negative.
func AppendUint(out []byte, u uint64) []byte { return appendUint(out, u) }
