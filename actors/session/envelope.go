package session

import "github.com/refold/refold/codec"

// ReadEnvelope decodes an event's payload. Data shares its memory.
func ReadEnvelope(payload []byte) (Envelope, error) { return decodeEnvelope(payload) }

// decodeEnvelope decodes an event's payload. Data shares its memory; nothing
// that is decoded from Data does.
func decodeEnvelope(payload []byte) (Envelope, error) {
	if env, ok := scanEnvelope(payload); ok {
		return env, nil
	}
	canonical, err := codec.Canonicalize(payload)
	if err != nil {
		return Envelope{}, err
	}
	if env, ok := scanEnvelope(canonical); ok { // it was JSON
		return env, nil
	}
	var env Envelope
	err = codec.Decode(canonical, &env)
	return env, err
}

// scanEnvelope decodes a valid canonical envelope in one pass. All others are left
// to codec.Decode, which also reports faults.
func scanEnvelope(payload []byte) (env Envelope, ok bool) {
	if !codec.IsMap(payload) || len(payload) > codec.BytesMax {
		return Envelope{}, false // most likely JSON
	}
	var r envelopeReader
	r.begin(payload)
	if r.Has("data") {
		r.data = r.Value(1)
	}
	env, ok = r.end()
	env.By = string(r.by)
	return env, ok && env.Type != "" && (env.Data == nil || codec.IsMap(env.Data))
}

// envelopeReader reads a canonical envelope in one pass, without copies. Its caller
// reads the body between begin and end.
type envelopeReader struct {
	codec.Reader
	payload []byte
	at      int64
	by      []byte
	data    codec.Raw
	from    int // where data begins
	outer   int
}

// begin reads the fields before the body.
func (r *envelopeReader) begin(payload []byte) {
	r.Reader, r.payload = codec.Read(payload), payload
	r.outer = r.Map()
	if r.Has("at") {
		r.at = r.Int()
	}
	if r.Has("by") {
		r.by = r.Text()
	}
}

func (r *envelopeReader) beginBody() {
	r.Must("data")
	r.from = r.Pos()
}

// endBody sets data to the bytes read since beginBody, if they were valid.
func (r *envelopeReader) endBody() bool {
	to, ok := r.End()
	if ok {
		r.data = r.payload[r.from:to]
	}
	return ok
}

// end reads the fields after the body. It does not set the envelope's author.
func (r *envelopeReader) end() (env Envelope, ok bool) {
	env.At, env.Data = r.at, r.data
	if r.Has("id") {
		env.ID = r.Str()
	}
	r.Must("type")
	env.Type = typeName(r.Text())
	if r.Has("v") {
		env.V = int(r.Int())
	}
	r.EndMap(r.outer)
	if n, ok := r.End(); !ok || n < len(r.payload) {
		return Envelope{}, false
	}
	return env, true
}

// endSound is end that also makes the checks of open: the type and the limits.
func (r *envelopeReader) endSound(typ string) (env Envelope, ok bool) {
	env, ok = r.end()
	if !ok || env.Type != typ || len(r.by) > ByBytesMax || len(env.ID) > IDBytesMax ||
		env.V != 0 && env.V != Version || env.At < 0 || env.At > NumberMax {
		return Envelope{}, false
	}
	return env, true
}

// typeName returns a type's name, without an allocation for a known type.
func typeName(b []byte) string {
	if i, ok := typeIndexes[string(b)]; ok {
		return eventTypes[i].name
	}
	return string(b)
}
