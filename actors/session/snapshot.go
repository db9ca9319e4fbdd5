package session

import (
	"bytes"
	"fmt"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// Snapshot is the canonical bytes of a state at a sequence, with its hash. It
// is a cache and never the truth: it counts only if the log's message at Seq
// is the one that it names by Leaf (see LeafOf).
type Snapshot struct {
	Hash    codec.Hash `msgpack:"hash"`    // BLAKE2b-256 of State
	Install codec.Hash `msgpack:"install"` // SHA-256 of the pinned install record
	Leaf    codec.Hash `msgpack:"leaf"`    // BLAKE2b-256 of the latest event folded
	Rules   int        `msgpack:"rules"`
	Seq     uint64     `msgpack:"seq"`   // stream sequence of that event
	State   codec.Raw  `msgpack:"state"` // canonical bytes of the Record
	V       int        `msgpack:"v"`
}

// Bytes returns the state's canonical bytes. Equal histories give equal bytes
// on every machine.
func (s *State) Bytes() []byte {
	s.computeLazyHashes()
	return encode(&s.Record)
}

// Hash returns the BLAKE2b-256 of the state's canonical bytes.
func (s *State) Hash() codec.Hash { return codec.Digest(s.Bytes()) }

// Snapshot returns the snapshot of the state as it is.
func (s *State) Snapshot() Snapshot {
	state := s.Bytes()
	return Snapshot{
		Hash: codec.Digest(state), Install: s.Install, Leaf: s.Leaf, Rules: int(s.Rules), Seq: s.Seq, State: state, V: Version,
	}
}

// ParseSnapshot reads a snapshot's bytes and checks its hash. What it returns
// may share data's memory. Whether the bytes of its state are a state's is for
// Restore to see, which looks at each of them.
func ParseSnapshot(data []byte) (Snapshot, error) {
	snap, ok := readSnapshot(data)
	if !ok {
		snap = Snapshot{}
		if err := codec.Unmarshal(data, &snap); err != nil {
			return Snapshot{}, fmt.Errorf("snapshot: %w", err)
		}
	}
	if snap.V != Version {
		return Snapshot{}, fmt.Errorf("snapshot: v is %d, this release reads %d", snap.V, Version)
	}
	if got := codec.Digest(snap.State); got != snap.Hash {
		return Snapshot{}, fmt.Errorf("snapshot at %d: its state hashes to %s, it names %s", snap.Seq, got, snap.Hash)
	}
	return snap, nil
}

// readSnapshot reads what surrounds a snapshot's state and takes all bytes between
// as the state: to find the end of a long state takes as long as reading it.
func readSnapshot(data []byte) (snap Snapshot, ok bool) {
	begin, end := codec.AppendMap(nil, snapshotFields), codec.AppendInt(codec.AppendString(nil, "v"), Version)
	if len(data) > codec.BytesMax || !bytes.HasPrefix(data, begin) || !bytes.HasSuffix(data, end) {
		return snap, false
	}
	r := snap.readHead(data)
	r.Must("state")
	at, ok := r.End()
	if !ok || at > len(data)-len(end) {
		return snap, false
	}
	snap.State, snap.V = data[at:len(data)-len(end)], Version
	return snap, true
}

const snapshotFields = 7

// readHead reads what stands before the state.
func (snap *Snapshot) readHead(data []byte) codec.Reader {
	r := codec.Read(data)
	r.Map()
	r.Must("hash")
	snap.Hash = r.Hash()
	r.Must("install")
	snap.Install = r.Hash()
	r.Must("leaf")
	snap.Leaf = r.Hash()
	r.Must("rules")
	snap.Rules = int(r.Int())
	r.Must("seq")
	snap.Seq = number(&r, 0)
	return r
}

// SnapshotSeq returns the sequence that a snapshot's bytes name, before
// ParseSnapshot has looked at all of them; ok is false if they are none.
func SnapshotSeq(data []byte) (seq uint64, ok bool) {
	var snap Snapshot
	r := snap.readHead(data)
	_, ok = r.End()
	return snap.Seq, ok && snap.Seq > 0
}

// Bytes returns the snapshot's canonical bytes.
func (snap Snapshot) Bytes() []byte { return encode(snap) }

// Restore returns the state that a snapshot holds.
func Restore(snap Snapshot, from Source) (*State, error) {
	if snap.Rules < 1 || snap.Rules > RulesVersion {
		return nil, &UnknownRulesError{Rules: snap.Rules}
	}
	s := &State{}
	if err := codec.Unmarshal(snap.State, &s.Record); err != nil {
		return nil, fmt.Errorf("snapshot at %d: %w", snap.Seq, err)
	}
	var err error
	if s.install, err = from.Install(snap.Install); err != nil {
		return nil, fmt.Errorf("snapshot at %d: install record %s: %w", snap.Seq, snap.Install, err)
	}
	s.turnsOwn = s.install.Registry
	if s.registry, err = s.registryAt(s.Registry, from); err == nil && s.Turn != nil {
		s.turnsOwn, err = s.registryAt(s.Turn.Registry, from)
	}
	if err == nil {
		err = s.restoreSpaces(from)
	}
	if err != nil {
		return nil, fmt.Errorf("snapshot at %d: %w", snap.Seq, err)
	}
	if s.Seq != snap.Seq || s.Leaf != snap.Leaf || s.Install != snap.Install || int(s.Rules) != snap.Rules {
		return nil, fmt.Errorf("snapshot at %d: it disagrees with its own state", snap.Seq)
	}
	if err := s.Check(); err != nil {
		return nil, fmt.Errorf("snapshot at %d: %w", snap.Seq, err)
	}
	return s, nil
}

// registryAt finds the registry that a pin names, the install record's if
// there is none.
func (s *State) registryAt(pin *RegistryPin, from Source) (*planner.Registry, error) {
	if pin == nil {
		return s.install.Registry, nil
	}
	registry, err := from.Registry(pin.Seq, pin.Hash)
	if err != nil {
		return nil, fmt.Errorf("registry %s: %w", pin.Hash, err)
	}
	if registry.Hash() != pin.Hash {
		return nil, fmt.Errorf("registry %s: event %d set %s", pin.Hash, pin.Seq, registry.Hash())
	}
	return registry, nil
}
