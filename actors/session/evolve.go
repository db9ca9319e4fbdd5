package session

import (
	"encoding/binary"
	"errors"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/refold/refold/actors/sentence"
	"github.com/refold/refold/codec"
)

// Fold returns the state after history: the session's own events in stream order,
// under install. It emits nothing, so folding twice does nothing twice. Rejected
// events are part of a history and are folded like any other.
func Fold(install *Install, sid string, history iter.Seq[Event]) *State {
	s := New(install, sid)
	s.SetQuiet(true)
	for e := range history {
		_, _ = s.Evolve(e)
	}
	s.SetQuiet(false)
	return s
}

// Evolve folds one event, the session's next in stream order, and returns its
// notices. Afterwards Open returns the open effects, and Withdrawals those that
// ended without a settlement. The caller must store all three before the event
// counts as stored. Progress returns what may be published in addition, and is not
// stored. An error is a Rejection; then only the head has changed: sequence, count, chain,
// clock and notice number. Or it is that of Foldable; then nothing has. The caller owns the notices. The state may
// keep the payload while the session is active, so it must not be written to any
// more.
func (s *State) Evolve(e Event) ([]Notice, error) {
	if err := s.Foldable(); err != nil {
		return nil, err
	}
	if s.scratch == nil {
		s.scratch = newScratch()
	}
	s.withdrawn, s.messages, s.progress, s.itemsBefore = s.withdrawn[:0], nil, nil, len(s.Items)
	var before standing
	if !s.quiet {
		before = s.standing()
	}
	limits := s.lastingLimits()
	if s.IsErased() || s.Count == 0 && e.Door == DoorWake {
		s.beforeTombstone(e)
	}
	s.advance(e)
	if s.Count == 1 {
		notify(s, NoticeSessionOpened, SessionOpened{Install: s.Install, Rules: int(s.Rules)})
	}
	s.original = e.Original
	typ, bad := s.apply(e)
	s.lastType, s.original = 0, nil
	if i, known := typeIndexes[typ]; known {
		s.lastType = uint8(i + 1)
	}
	if bad != nil {
		notify(s, NoticeEventRejected, EventRejected{Seq: e.Seq, Type: typ, Code: bad.code, Detail: bad.detail})
		return s.takeNotices(), bad.code
	}
	s.warn(&limits)
	if !s.quiet && len(s.notices) == 0 && s.standing() != before {
		s.addNotice(0, NoticeSessionChanged, SessionChanged{})
	}
	return s.takeNotices(), nil
}

// LastType returns the type of the event that was folded last. It is empty
// after a load and for an event of unknown type.
func (s *State) LastType() string {
	if s.lastType == 0 {
		return ""
	}
	return eventTypes[s.lastType-1].name
}

// takeNotices returns the notices of the event being folded, the last of them with the
// summary, and keeps none, since they may hold a run's whole output. An idle session releases its scratch.
func (s *State) takeNotices() []Notice {
	notices := s.notices
	if n := len(notices); n > 0 {
		summary := s.Summary()
		notices[n-1].Summary = &summary
	}
	s.notices, s.text, s.ended, s.head = nil, nil, nil, nil
	if s.isIdle() {
		if len(s.progress) == 0 { // else Progress does
			s.releaseScratch()
		}
		s.clipItems()
	}
	return notices
}

// SetQuiet turns notices and progress off or on. While they are off, Evolve numbers
// notices but does not build them; nothing else differs. Replays use it to save
// time: building a notice copies text.
func (s *State) SetQuiet(on bool) {
	switch {
	case on && s.scratch == nil:
		s.scratch = newScratch()
	case !on && s.scratch == nil:
		return
	}
	s.quiet = on
	if !on && s.isIdle() {
		s.scratch = nil
	}
}

// newScratch returns the scratch data with which an active state begins.
func newScratch() *scratch { return &scratch{toolsMoved: true} }

func (s *State) isIdle() bool { return s.Run == nil && len(s.withdrawn) == 0 && len(s.messages) == 0 }

// releaseScratch drops what an idle session does not need.
func (s *State) releaseScratch() {
	if !s.quiet {
		s.scratch = nil
		return
	}
	*s.scratch = scratch{toolsMoved: true, quiet: true, withdrawn: s.withdrawn[:0]}
}

// advance moves the head over e: the changes that are made even when e is rejected.
func (s *State) advance(e Event) {
	s.Seq = e.Seq
	s.Count++
	s.Clock = max(s.Clock, e.Time)
	s.Leaf = LeafOf(e)
	var link [2 * len(s.Chain)]byte
	copy(link[:], s.Chain[:])
	copy(link[len(s.Chain):], s.Leaf[:])
	s.Chain = codec.Digest(link[:])
}

// hashRoom is the size up to which an event is hashed without a heap allocation.
// Most events are smaller.
const hashRoom = 1 << 10

// LeafOf returns the BLAKE2b-256 of one event alone: of its sequence and
// timestamp (eight bytes each, big-endian), the door, a zero byte and the
// payload; of a redacted one, of the event as it was published. A snapshot names its last
// event by this hash.
func LeafOf(e Event) codec.Hash {
	if e.Original != nil {
		return e.Original.Leaf
	}
	var room [hashRoom]byte
	b := room[:0]
	b = binary.BigEndian.AppendUint64(b, e.Seq)
	b = binary.BigEndian.AppendUint64(b, uint64(e.Time))
	b = append(b, e.Door...)
	b = append(b, 0)
	b = append(b, e.Payload...)
	return codec.Digest(b)
}

// notify adds a notice about the event being folded, unless the state is quiet.
func notify[T any](s *State, typ string, data T) {
	s.NoticeN++
	if !s.quiet {
		s.addNotice(uint64(s.NoticeN), typ, data)
	}
}

func (s *State) addNotice(n uint64, typ string, data any) {
	s.notices = append(s.notices, Notice{N: n, Type: typ, Seq: s.Seq, At: s.Clock, Session: s.Session, Data: data})
}

// apply decodes e and folds its body. It returns the event's type if it could be
// read, and the refusal if there is one.
func (s *State) apply(e Event) (string, *refusal) {
	env, bad := open(e)
	switch {
	case s.IsErased() && bad == nil && s.answersErased(env):
		return env.Type, nil
	case s.IsErased() && (bad != nil || env.Type != TypeSessionTombstone):
		return typeOfErased(env.Type), erasedRefusal()
	case bad != nil:
		return env.Type, bad
	}
	if env.ID != "" && s.seen(env.ID) {
		return env.Type, refuse(RejectDuplicateEvent, "the session has already accepted an event with this id")
	}
	if bad := s.applyType(eventTypeOf(env.Type), e.Door, env); bad != nil {
		return env.Type, bad
	}
	s.needScheduleWake()
	if next, any := s.nextDeadline(); any {
		s.needWake(next)
	}
	if env.ID != "" && !s.IsErased() {
		s.remember(env.ID)
	}
	return env.Type, nil
}

func (s *State) applyType(of *eventType, door Door, env Envelope) *refusal {
	switch {
	case s.Closed && !of.afterClose:
		return sessionClosedRefusal()
	case door == DoorIn && s.parent() != nil && (of.name == TypeRunRequested || of.name == TypeSteerRequested):
		return refuse(RejectNotPermitted, "the session carries out a call of "+s.Tree.Parent.Parent+": only operators give it other input")
	case !of.settles:
		return of.fold(s, door, env.Data)
	}
	b, bad := decodeSettlement(of, env)
	if bad != nil {
		return bad
	}
	return s.settle(b)
}

func sessionClosedRefusal() *refusal {
	return refuse(RejectSessionClosed, "the session was closed: open another one")
}

func (s *State) seen(id string) bool { return slices.Contains(s.IDs, id) }

func (s *State) remember(id string) {
	if len(s.IDs) == IDsMax {
		copy(s.IDs, s.IDs[1:])
		s.IDs = s.IDs[:IDsMax-1]
	}
	s.IDs = append(s.IDs, id)
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

// EventBody returns a pointer to an empty body of an event type, into which codec.Decode
// reads the event's data. It is nil for a type that this release does not fold.
func EventBody(name string) any {
	if of := eventTypeOf(name); of != nil {
		return of.data()
	}
	return nil
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
	env.Type = sentence.Clip(env.Type, IDBytesMax)
	of := eventTypeOf(env.Type)
	switch {
	case env.V != 0 && env.V != Version:
		return env, refuse(RejectUnsupportedVersion, "v is "+strconv.Itoa(env.V)+", this session reads "+strconv.Itoa(Version))
	case of == nil:
		return env, refuse(RejectUnknownType, "no event is called "+sentence.Quoted(env.Type))
	case !slices.Contains(of.doors, e.Door):
		return env, refuse(RejectWrongDoor, env.Type+" is not accepted through the door "+string(e.Door))
	}
	return env, env.limits()
}

// eventBody says what the data of an event is, and how it is folded.
type eventBody struct {
	data func() any                                         // a pointer to a new body
	fold func(s *State, door Door, data codec.Raw) *refusal // nil for a settlement
}

func newOf[T any]() any { return new(T) }

// body is for an event whose data is a T. Absent data is an empty object.
func body[T any](fold func(*State, *T) *refusal) eventBody {
	return eventBody{newOf[T], func(s *State, _ Door, data codec.Raw) *refusal {
		var b T
		if bad := decodeBody(data, &b); bad != nil {
			return bad
		}
		return fold(s, &b)
	}}
}

// contentBody is body for a T with an input.
func contentBody[T any](fold func(*State, *T) *refusal) eventBody {
	return eventBody{newOf[T], func(s *State, _ Door, data codec.Raw) *refusal {
		var b T
		if bad := decodeContent(data, "input", &b); bad != nil {
			return bad
		}
		return fold(s, &b)
	}}
}

// doorBody is body for a fold that decodes the data itself, and depends on the door.
func doorBody[T any](fold func(*State, Door, codec.Raw) *refusal) eventBody {
	return eventBody{newOf[T], fold}
}

// rawBody is body for a fold that decodes the data itself.
func rawBody[T any](fold func(*State, codec.Raw) *refusal) eventBody {
	return doorBody[T](func(s *State, _ Door, data codec.Raw) *refusal { return fold(s, data) })
}

func decodeBody(data codec.Raw, b any) *refusal {
	if len(data) == 0 {
		data = emptyObject()
	}
	if err := codec.Decode(data, b); err != nil {
		bad := refuse(RejectInvalidData, "data: "+err.Error())
		bad.at = placeOf(err)
		return bad
	}
	if of, ok := b.(interface{ limits() *refusal }); ok {
		return of.limits()
	}
	return nil
}

// placeOf returns the field at which a decoder failed, as far as it is known.
func placeOf(err error) string {
	at := (*codec.Error)(nil)
	if !errors.As(err, &at) {
		return ""
	}
	place := at.Path
	if at.Field != "" {
		place = strings.TrimPrefix(place+"."+at.Field, ".")
	}
	if quote := sentence.Quoted(place); len(quote) > len(place)+len(`""`) { // it is no plain name
		return quote
	}
	return place
}

// fieldOf returns one field of an object. It shares the object's memory.
func fieldOf(object codec.Raw, name string) (codec.Raw, bool) {
	var room [24]codec.Entry
	entries, err := codec.Entries(room[:0], object)
	i := slices.IndexFunc(entries, func(e codec.Entry) bool { return string(e.Key) == name })
	if err != nil || i < 0 {
		return nil, false
	}
	return entries[i].Value, true
}

func emptyObject() codec.Raw { return codec.Raw{0x80} }

// ReadEnvelope decodes an event's payload.
func ReadEnvelope(payload []byte) (env Envelope, err error) {
	canonical, err := codec.Canonicalize(payload)
	if err != nil {
		return Envelope{}, err
	}
	err = codec.Decode(canonical, &env)
	return env, err
}

// settle folds a settlement. The first one of an effect counts. An identical repeat
// (same type, same canonical data) is a silent no-op, a different one is
// `effect_settled`, and one of an effect that ended long ago is `stale`. A wake may
// fire more than once: a repeat of an old wake is a silent no-op. A settlement that
// names an open effect but is otherwise unusable settles it as `bad_settlement`, so
// that a fault in a bridge never hangs a session.
func (s *State) settle(b *settlement) *refusal {
	place, ok := parseName(b.effect)
	if !ok || place.kind != b.kind {
		return refuse(RejectUnknownEffect, "this session has opened no effect "+sentence.Quoted(b.effect)+
			" of the class that "+b.typ+" settles")
	}
	_, status := s.statusOf(place)
	if status != effectOpen && s.settleOwed(b) {
		return nil
	}
	switch status {
	case effectOpen:
	case effectSettled:
		if settled, _ := s.statusOf(place); settled == settlementHash(b.typ, b.data) {
			return nil
		}
		return refuse(RejectEffectSettled, b.effect+" was already settled with other content")
	case effectOver:
		if place.Class() == ClassWake {
			return nil // all its settlements are identical
		}
		return refuse(RejectStale, b.effect+" ended long ago")
	case effectNotBegun:
		return refuse(RejectIllegalTransition, b.effect+" has not begun: it waits for its group, or for a person")
	case effectBySync:
		return refuse(RejectIllegalTransition, b.effect+" is no effect: the settlement of its sync gives its result")
	case effectNone:
		return refuse(RejectIllegalTransition, b.effect+" is no effect: it waits for a reply or for a time")
	default:
		return refuse(RejectUnknownEffect, "this session has not opened "+b.effect)
	}
	return classes[place.kind].folds.settle(s, place, b)
}

// settlement is a decoded settlement, or why it is unusable although it names its
// effect.
type settlement struct {
	typ    string
	kind   kind
	data   codec.Raw
	effect string
	body   any // a pointer to the body of its type; zero if the settlement is unusable
	bad    *refusal
}

// decodeSettlement decodes a settlement of a type. It refuses only one that names no
// effect.
func decodeSettlement(of *eventType, env Envelope) (*settlement, *refusal) {
	b := &settlement{typ: env.Type, kind: of.kind, data: env.Data}
	b.body, b.effect, b.bad = classes[of.kind].folds.decode(env.Type, env.Data)
	if b.bad != nil {
		var ok bool
		if b.effect, ok = effectOf(env.Data); !ok {
			return nil, refuse(RejectInvalidData, "data.effect: is missing or no text")
		}
	}
	return b, nil
}

func settlementHash(typ string, data codec.Raw) codec.Hash {
	var room [hashRoom]byte
	return codec.Digest(append(append(room[:0], typ...), data...))
}

// effectOf decodes the field `effect` of a settlement's data and ignores the rest.
func effectOf(data codec.Raw) (string, bool) {
	var name string
	field, ok := fieldOf(data, "effect")
	if !ok || codec.Decode(field, &name) != nil {
		return "", false
	}
	return name, true
}

// effectStatus is the status of an effect in a session.
type effectStatus int

const (
	effectUnknown  effectStatus = iota // never opened
	effectOpen                         // opened, not settled
	effectSettled                      // settled, with a known hash
	effectOver                         // of an earlier turn
	effectNotBegun                     // a call for a host loop, in a later group
	effectBySync                       // a call that the session runs by a sync
	effectNone                         // a call of the kinds reply and sleep
)

// statusOf returns the status of an effect and the hash of its settlement.
func (s *State) statusOf(p Place) (codec.Hash, effectStatus) {
	return classes[p.kind].folds.status(s, p)
}

// ofTurn is the common part of the folders whose effects are named by their turn.
type ofTurn struct{}

func (ofTurn) status(s *State, p Place) (codec.Hash, effectStatus) {
	t := s.Turn
	switch {
	case t == nil || p.run > t.Run || p.run == t.Run && p.turn > t.Number:
		return codec.Hash{}, effectUnknown
	case p.run < t.Run || p.turn < t.Number:
		return codec.Hash{}, effectOver
	case p.kind == kindStep:
		return t.stepStatus()
	case p.compacts:
		return s.Window.compactionStatus(t, p.n)
	case p.kind == kindLLM && p.n < uint32(t.Attempt):
		return codec.Hash{}, effectOver
	case p.kind == kindLLM && p.n > uint32(t.Attempt):
		return codec.Hash{}, effectUnknown
	case p.kind == kindLLM && t.Open && !s.isCompacting():
		return codec.Hash{}, effectOpen
	case p.kind == kindLLM && !s.wasOpened():
		return codec.Hash{}, effectUnknown // its step is open, or ended the run
	case p.kind == kindLLM:
		return t.Settled, effectSettled
	case t.Batch == nil || int(p.n) >= len(t.Batch.Calls):
		return codec.Hash{}, effectUnknown
	}
	c := &t.Batch.Calls[p.n]
	switch {
	case c.Sync > 0:
		return codec.Hash{}, effectBySync
	case s.needsNobody(c):
		return codec.Hash{}, effectNone
	case c.Status == CallOpen:
		return codec.Hash{}, effectOpen
	case !c.done() && s.isHostLoop(c):
		return codec.Hash{}, effectNotBegun
	case !c.done() || c.RunMS == 0:
		return codec.Hash{}, effectUnknown // never opened
	}
	return c.Settled, effectSettled
}

func (t *Turn) stepOpen() bool { return t.Step != nil && t.Step.Open }

func (t *Turn) stepStatus() (codec.Hash, effectStatus) {
	switch {
	case t.Step == nil || t.Step.RunMS == 0:
		return codec.Hash{}, effectUnknown // no hook was called
	case t.Step.Open:
		return codec.Hash{}, effectOpen
	}
	return t.Step.Settled, effectSettled
}
