package session

import (
	"slices"

	"github.com/refold/refold/codec"
)

// Class is the kind of bridge that executes an effect.
type Class string

const (
	ClassLLM   Class = "llm"
	ClassTool  Class = "tool"
	ClassWake  Class = "wake"
	ClassStep  Class = "step"
	ClassSpace Class = "space" // syncs
)

// ClassInfo is a row of the table of classes: what all code that handles effects
// must know of a class. The door for a class's settlements has the same name.
type ClassInfo struct {
	Class   Class
	Role    string // of the users that execute it, by its name in internal/roles
	About   string // the events of its door, for people
	Bridged bool   // bridges pull its effects; else session-actors schedule them

	prefix byte   // first letter of its effects' names, before a number; 0: they are named by their turn
	folds  folder // how the fold handles it
}

// kind is the index of a class in the table.
type kind uint8

const (
	kindLLM kind = iota
	kindTool
	kindWake
	kindStep
	kindSpace
)

// classes is the table of classes, in the order of their doors. A new class needs a
// row here, the events that request and settle it below, its folder, a field of
// Record for what is open, its operations in internal/worker/class.go, a method of
// bridge.Bridge, and its subjects and consumer in streams.conf.
var classes = [...]ClassInfo{
	kindLLM:   {Class: ClassLLM, Role: "models", About: "what models answered", Bridged: true, folds: generations{}},
	kindTool:  {Class: ClassTool, Role: "tools", About: "what tools answered", Bridged: true, folds: calls{}},
	kindWake:  {Class: ClassWake, Role: "session-actor", About: "what came due", prefix: 'w', folds: wakes{}},
	kindStep:  {Class: ClassStep, Role: "step-hooks", About: "what step hooks decided", Bridged: true, folds: steps{}},
	kindSpace: {Class: ClassSpace, Role: "space-readers", About: "what spaces hold", Bridged: true, prefix: 'y', folds: syncs{}},
}

// numberedClass is a class whose effects are numbered.
type numberedClass struct {
	numbered
	kind kind
}

// numberedClasses are the classes whose effects are numbered, in the order in which
// Open returns their effects: wakes last.
var numberedClasses = func() (all []numberedClass) {
	for k := range classes {
		if of, ok := classes[k].folds.(numbered); ok && kind(k) != kindWake {
			all = append(all, numberedClass{of, kind(k)})
		}
	}
	return append(all, numberedClass{wakes{}, kindWake})
}()

// Classes returns the table of classes, in the order of their doors.
func Classes() []ClassInfo { return slices.Clone(classes[:]) }

// folder handles the effects of one class in the fold.
type folder interface {
	// decode decodes the data of a settlement of a type, and returns a pointer to its
	// body and the name of its effect.
	decode(typ string, data codec.Raw) (body any, effect string, bad *refusal)
	// status returns an effect's status, and the hash of its settlement.
	status(s *State, p Place) (codec.Hash, effectStatus)
	// settle folds the settlement of an open effect.
	settle(s *State, p Place, b *settlement) *refusal
	// effect encodes an open effect, in room if that is large enough.
	effect(s *State, p Place, room []byte) Effect
}

// numbered is a folder of effects that are named by a prefix and a number.
type numbered interface {
	folder
	// open returns the number of the open effect at an index; false: the index is
	// past the last one.
	open(s *State, index int) (number uint32, ok bool)
	// deadline returns the earliest deadline of the open effects in Unix ms, or
	// noDeadline.
	deadline(s *State) int64
	// settleOverdue ends the open effects whose deadline has come.
	settleOverdue(s *State)
}

// eventType is a row of the table of events.
type eventType struct {
	name       string
	doors      []Door
	afterClose bool // a closed session accepts it
	settles    bool // it settles an effect of class kind
	kind       kind
	fold       eventFold // nil for a settlement
}

// Which events come through which doors. Operators may request what clients may.
var (
	byClients   = []Door{DoorIn, DoorCtl}
	byOperators = []Door{DoorCtl}
)

// eventTypes is the table of events. A closed session accepts settlements, which
// change nothing any more, wakes, and run requests, which may be repeats.
var eventTypes = [...]eventType{
	{name: TypeRunRequested, doors: byClients, afterClose: true, fold: (*State).foldRunRequested},
	{name: TypeSteerRequested, doors: byClients, fold: contentBody((*State).steerRequested)},
	{name: TypeRunCancelRequested, doors: byClients, fold: body((*State).runCancelRequested)},
	{name: TypeRunInterrupt, doors: byClients, fold: body((*State).runInterruptRequested)},
	{name: TypeRunPauseRequested, doors: byClients, fold: body((*State).runPauseRequested)},
	{name: TypeRunResumeRequested, doors: byClients, fold: (*State).runResumeRequested},
	{name: TypeRunEdited, doors: byClients, fold: contentBody((*State).runEdited)},
	{name: TypeRunCompleted, doors: byClients, fold: body((*State).runCompleted)},
	{name: TypeRunFailed, doors: byClients, fold: body((*State).runFailed)},
	{name: TypeSessionConfigured, doors: byOperators, fold: rawBody((*State).sessionConfigured)},
	{name: TypeSessionClosed, doors: byOperators, fold: body((*State).sessionClosed)},
	{name: TypeToolRegistrySet, doors: byOperators, fold: rawBody((*State).toolRegistrySet)},
	{name: TypeToolProfileSelected, doors: byOperators, fold: body((*State).toolProfileSelected)},
	{name: TypeToolOverridesSet, doors: byOperators, fold: body((*State).toolOverridesSet)},
	{name: TypeHostSessionUpdated, doors: byOperators, fold: body((*State).hostSessionUpdated)},
	{name: TypeFactsSet, doors: byOperators, fold: body((*State).factsSet)},
	{name: TypeApprovalDecided, doors: []Door{DoorApprove}, fold: body((*State).approvalDecided)},
	settlementOf(kindLLM, TypeToolCallsObserved),
	settlementOf(kindLLM, TypeGenerationSettled),
	settlementOf(kindTool, TypeToolCallSettled),
	{name: TypeToolBatchSettled, doors: []Door{DoorTool}, afterClose: true, fold: rawBody((*State).toolBatchSettled)},
	settlementOf(kindStep, TypeStepPrepared),
	settlementOf(kindWake, TypeWakeSettled),
	{name: TypeWorkspaceSyncRequested, doors: byOperators, fold: rawBody((*State).workspaceSyncRequested)},
	{name: TypeWorkspaceApplyRequested, doors: byOperators, fold: body((*State).workspaceApplyRequested)},
	{name: TypeWorkspaceDetached, doors: byOperators, fold: body((*State).workspaceDetached)},
	settlementOf(kindSpace, TypeWorkspaceSnapshotReady),
	settlementOf(kindSpace, TypeWorkspaceSyncUnchanged),
	settlementOf(kindSpace, TypeWorkspaceSyncFailed),
}

func settlementOf(k kind, name string) eventType {
	return eventType{name: name, doors: []Door{Door(classes[k].Class)}, afterClose: true, settles: true, kind: k}
}

// typeIndexes are the indexes of the names in the table of events.
var typeIndexes = func() map[string]int {
	places := make(map[string]int, len(eventTypes))
	for i := range eventTypes {
		places[eventTypes[i].name] = i
	}
	return places
}()

// eventTypeOf returns the row of a type, nil if there is none.
func eventTypeOf(name string) *eventType {
	if i, ok := typeIndexes[name]; ok {
		return &eventTypes[i]
	}
	return nil
}

// EventTypes returns the names of all events that this release folds.
func EventTypes() []string {
	names := make([]string, len(eventTypes))
	for i := range eventTypes {
		names[i] = eventTypes[i].name
	}
	return names
}
