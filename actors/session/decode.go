package session

import (
	"slices"
	"strconv"

	"github.com/refold/refold/codec"
)

// isReserved reports whether a later release will have events of this type.
func isReserved(typ string) bool {
	return typ == "SessionUpgraded"
}

// open decodes the envelope of e and makes the checks that are common to all types.
// With a refusal it returns an envelope that has the type, if that could be read.
func open(e Event) (Envelope, *refusal) {
	if len(e.Payload) > EventBytesMax {
		return Envelope{}, refuse(RejectLimitExceeded,
			"an event is at most "+strconv.Itoa(EventBytesMax)+" bytes, this one has "+strconv.Itoa(len(e.Payload)))
	}
	env, err := ReadEnvelope(e.Payload)
	if err != nil {
		return Envelope{}, refuse(RejectUndecodable, err.Error())
	}
	env.Type = clip(env.Type, IDBytesMax)
	of := eventTypeOf(env.Type)
	switch {
	case env.V != 0 && env.V != Version:
		return env, refuse(RejectUnsupportedVersion, "v is "+strconv.Itoa(env.V)+", this session reads "+strconv.Itoa(Version))
	case of == nil && isReserved(env.Type):
		return env, refuse(RejectReservedType, env.Type+" is an event of a later release")
	case of == nil:
		return env, refuse(RejectUnknownType, "no event is called "+quoted(env.Type))
	case !slices.Contains(of.doors, e.Door):
		return env, refuse(RejectWrongDoor, env.Type+" is not said through the door "+string(e.Door))
	case len(env.ID) > IDBytesMax:
		return env, refuse(RejectInvalidData, "id: at most "+strconv.Itoa(IDBytesMax)+" bytes")
	case env.At < 0 || env.At > NumberMax:
		return env, refuse(RejectInvalidData, "at: "+numberRange)
	case len(env.By) > ByBytesMax:
		return env, refuse(RejectInvalidData, "by: at most "+strconv.Itoa(ByBytesMax)+" bytes")
	}
	return env, nil
}

// eventFold folds the data of an event that came through a door.
type eventFold func(s *State, door Door, data codec.Raw) *refusal

// body returns the fold of an event whose data is a T. Absent data is an empty
// object.
func body[T any](fold func(*State, *T) *refusal) eventFold {
	return func(s *State, _ Door, data codec.Raw) *refusal {
		var b T
		if bad := decodeBody(data, &b); bad != nil {
			return bad
		}
		return fold(s, &b)
	}
}

// contentBody is body for a T with an input.
func contentBody[T any](fold func(*State, *T) *refusal) eventFold {
	return func(s *State, _ Door, data codec.Raw) *refusal {
		var b T
		if bad := decodeContent(data, "input", &b); bad != nil {
			return bad
		}
		return fold(s, &b)
	}
}

// rawBody is body for a fold that decodes the data itself.
func rawBody(fold func(*State, codec.Raw) *refusal) eventFold {
	return func(s *State, _ Door, data codec.Raw) *refusal { return fold(s, data) }
}

func decodeBody(data codec.Raw, b any) *refusal {
	if len(data) == 0 {
		data = emptyObject()
	}
	if err := codec.Decode(data, b); err != nil {
		return refuse(RejectInvalidData, "data: "+err.Error())
	}
	return nil
}

// fieldOf returns one field of an object. It shares the object's memory.
func fieldOf(object codec.Raw, name string) (codec.Raw, bool) {
	var room [24]codec.Entry
	entries, err := codec.Entries(room[:0], object)
	field := find(entries, func(e *codec.Entry) bool { return string(e.Key) == name })
	if err != nil || field == nil {
		return nil, false
	}
	return field.Value, true
}

func emptyObject() codec.Raw { return codec.Raw{0x80} }
