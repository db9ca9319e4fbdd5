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

// isSound reports whether the fields that were read without open are what open
// takes.
func (e *Envelope) isSound() bool {
	return len(e.ID) <= IDBytesMax && (e.V == 0 || e.V == Version) && e.At >= 0 && e.At <= NumberMax
}

// scanEnvelope decodes what is canonical, as our own bridges write it, and without a
// fault, in one pass and without copies. It leaves all else to codec.Decode,
// which also knows what is wrong.
func scanEnvelope(payload []byte) (env Envelope, ok bool) {
	if !codec.IsMap(payload) {
		return Envelope{}, false // most likely it is JSON
	}
	var room [6]codec.Entry
	entries, err := codec.Entries(room[:0], payload)
	if err != nil {
		return Envelope{}, false
	}
	for i := range entries {
		token, _, err := codec.Next(entries[i].Value)
		if err != nil {
			return Envelope{}, false
		}
		ok := token.Kind == codec.Text
		switch string(entries[i].Key) {
		case "at":
			env.At, ok = token.Int64()
		case "by":
			env.By = string(token.Bytes)
		case "data":
			env.Data, ok = entries[i].Value, token.Kind == codec.Map
		case "id":
			env.ID = string(token.Bytes)
		case "type":
			env.Type = typeName(token.Bytes)
		case "v":
			var v int64
			v, ok = token.Int64()
			env.V = int(v)
		default:
			ok = false
		}
		if !ok {
			return Envelope{}, false
		}
	}
	return env, env.Type != ""
}

// typeName returns a type's name; those of known types are not allocated.
func typeName(b []byte) string {
	switch string(b) {
	case TypeRunRequested:
		return TypeRunRequested
	case TypeToolCallsObserved:
		return TypeToolCallsObserved
	case TypeGenerationSettled:
		return TypeGenerationSettled
	case TypeToolCallSettled:
		return TypeToolCallSettled
	case TypeToolBatchSettled:
		return TypeToolBatchSettled
	case TypeStepPrepared:
		return TypeStepPrepared
	case TypeWakeSettled:
		return TypeWakeSettled
	}
	return string(b)
}
