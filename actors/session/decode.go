package session

import (
	"strconv"

	"github.com/refold/refold/codec"
)

// mayBeSaid reports whether a type is known, and whether its events may come
// through door. What clients may ask, operators may ask too.
func mayBeSaid(typ string, door Door) (known, through bool) {
	switch typ {
	case TypeRunRequested, TypeSteerRequested, TypeRunCancelRequested, TypeRunInterrupt, TypeRunPauseRequested,
		TypeRunResumeRequested, TypeRunEdited, TypeRunCompleted, TypeRunFailed:
		return true, door == DoorIn || door == DoorCtl
	case TypeSessionConfigured, TypeSessionClosed, TypeToolRegistrySet, TypeToolProfileSelected, TypeToolOverridesSet, TypeHostSessionUpdated, TypeFactsSet,
		TypeWorkspaceSyncRequested, TypeWorkspaceApplyRequested, TypeWorkspaceDetached:
		return true, door == DoorCtl
	case TypeApprovalDecided:
		return true, door == DoorApprove
	case TypeToolCallsObserved, TypeGenerationSettled:
		return true, door == DoorLLM
	case TypeToolCallSettled, TypeToolBatchSettled:
		return true, door == DoorTool
	case TypeStepPrepared:
		return true, door == DoorStep
	case TypeWakeSettled:
		return true, door == DoorWake
	case TypeWorkspaceSnapshotReady, TypeWorkspaceSyncUnchanged, TypeWorkspaceSyncFailed:
		return true, door == DoorSpace
	}
	return false, false
}

// isReserved reports whether a later release will have events of this type.
func isReserved(typ string) bool {
	return typ == "SessionUpgraded"
}

// EventTypes returns the names of all events that this release folds.
func EventTypes() []string {
	return []string{
		TypeRunRequested, TypeSteerRequested, TypeRunCancelRequested, TypeRunInterrupt, TypeRunPauseRequested,
		TypeRunResumeRequested, TypeRunEdited, TypeRunCompleted, TypeRunFailed, TypeSessionConfigured, TypeSessionClosed,
		TypeToolRegistrySet, TypeToolProfileSelected, TypeToolOverridesSet, TypeHostSessionUpdated, TypeFactsSet,
		TypeApprovalDecided, TypeToolCallsObserved, TypeGenerationSettled, TypeToolCallSettled,
		TypeToolBatchSettled, TypeStepPrepared, TypeWakeSettled, TypeWorkspaceSyncRequested, TypeWorkspaceApplyRequested,
		TypeWorkspaceDetached, TypeWorkspaceSnapshotReady, TypeWorkspaceSyncUnchanged, TypeWorkspaceSyncFailed,
	}
}

// open decodes the envelope of e and checks all that holds for every type. With
// a refusal it returns an envelope that holds the type, if that could be read.
func open(e Event) (Envelope, *refusal) { return openCanonical(e, nil) }

// openCanonical is open for a caller that may already have the canonical bytes
// of e's payload; nil if it does not.
func openCanonical(e Event, canonical []byte) (Envelope, *refusal) {
	if len(e.Payload) > EventBytesMax {
		return Envelope{}, refuse(RejectLimitExceeded,
			"an event is at most "+strconv.Itoa(EventBytesMax)+" bytes, this one has "+strconv.Itoa(len(e.Payload)))
	}
	if canonical == nil {
		canonical = e.Payload
	}
	env, err := decodeEnvelope(canonical)
	if err != nil {
		return Envelope{}, refuse(RejectUndecodable, err.Error())
	}
	env.Type = clip(env.Type, IDBytesMax)
	known, through := mayBeSaid(env.Type, e.Door)
	switch {
	case env.V != 0 && env.V != Version:
		return env, refuse(RejectUnsupportedVersion, "v is "+strconv.Itoa(env.V)+", this session reads "+strconv.Itoa(Version))
	case !known && isReserved(env.Type):
		return env, refuse(RejectReservedType, env.Type+" is an event of a later release")
	case !known:
		return env, refuse(RejectUnknownType, "no event is called "+quoted(env.Type))
	case !through:
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

// body decodes an event's data and folds it. Absent data is an empty object.
func body[T any](data codec.Raw, fold func(*T) *refusal) *refusal {
	var b T
	if bad := decodeBody(data, &b); bad != nil {
		return bad
	}
	return fold(&b)
}

// contentBody is body for a body with an input.
func contentBody[T any](data codec.Raw, fold func(*T) *refusal) *refusal {
	var b T
	if bad := decodeContent(data, "input", &b); bad != nil {
		return bad
	}
	return fold(&b)
}

// decodeBody decodes data into b.
func decodeBody(data codec.Raw, b any) *refusal {
	if len(data) == 0 {
		data = emptyObject()
	}
	if err := codec.Decode(data, b); err != nil {
		return refuse(RejectInvalidData, "data: "+err.Error())
	}
	return nil
}

// fieldOf returns one field of an object, whatever else is in it.
func fieldOf(object codec.Raw, name string) (codec.Raw, bool) {
	var fields codec.Pairs
	if !codec.IsMap(object) || codec.Decode(object, &fields) != nil {
		return nil, false
	}
	for _, f := range fields {
		if f.Key == name {
			return f.Value, true
		}
	}
	return nil, false
}

// emptyObject returns the canonical encoding of {}.
func emptyObject() codec.Raw { return codec.Raw{0x80} }
