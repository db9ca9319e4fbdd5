package session

import "github.com/refold/refold/codec"

// ReadEnvelope decodes an event's payload.
func ReadEnvelope(payload []byte) (env Envelope, err error) {
	canonical, err := codec.Canonicalize(payload)
	if err != nil {
		return Envelope{}, err
	}
	err = codec.Decode(canonical, &env)
	return env, err
}
