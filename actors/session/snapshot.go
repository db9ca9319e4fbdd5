package session

import (
	"fmt"

	"github.com/refold/refold/actors/spaces"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// Snapshot is a state at a sequence, under the key s.<session> in REFOLD_SNAPSHOTS, in
// msgpack. A cache for session-actors: it counts only if the log's event at seq has
// the hash leaf.
type Snapshot struct {
	// BLAKE2b-256 of the bytes of state.
	Hash codec.Hash `msgpack:"hash"`
	// SHA-256 of the canonical bytes of the pinned install record.
	Install codec.Hash `msgpack:"install"`
	// BLAKE2b-256 of the latest folded event: its sequence and timestamp (8 bytes each,
	// big-endian), the door, a zero byte, the payload.
	Leaf codec.Hash `msgpack:"leaf"`
	// Version of the rules that the session follows.
	Rules int `msgpack:"rules" lim:"1.."`
	// Sequence of that event.
	Seq uint64 `msgpack:"seq" lim:"1.."`
	// The state. Its fields are no part of the protocol: read the view.
	State codec.Raw `msgpack:"state" lim:"object"`
	// Version of the protocol.
	V int `msgpack:"v" lim:"=1"`
}

// Bytes returns the state's canonical bytes. Equal histories give equal bytes
// on every machine.
func (s *State) Bytes() []byte {
	return encode(&s.Record)
}

// Hash returns the BLAKE2b-256 of the state's canonical bytes.
func (s *State) Hash() codec.Hash { return codec.Digest(s.Bytes()) }

// Snapshot returns a snapshot of the state.
func (s *State) Snapshot() Snapshot {
	state := s.Bytes()
	return Snapshot{
		Hash: codec.Digest(state), Install: s.Install, Leaf: s.Leaf, Rules: int(s.Rules), Seq: s.Seq, State: state, V: Version,
	}
}

// ParseSnapshot decodes a snapshot and checks its hash. Restore validates the state's
// bytes.
func ParseSnapshot(data []byte) (Snapshot, error) {
	var snap Snapshot
	if err := codec.Unmarshal(data, &snap); err != nil {
		return Snapshot{}, fmt.Errorf("snapshot: %w", err)
	}
	if snap.V != Version {
		return Snapshot{}, fmt.Errorf("snapshot: v is %d, this release reads %d", snap.V, Version)
	}
	if got := codec.Digest(snap.State); got != snap.Hash {
		return Snapshot{}, fmt.Errorf("snapshot at %d: its state hashes to %s, it names %s", snap.Seq, got, snap.Hash)
	}
	return snap, nil
}

// Bytes returns the snapshot's canonical bytes.
func (snap Snapshot) Bytes() []byte { return encode(snap) }

// Restore returns the state of a snapshot.
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
	s.turnRegistry = s.install.Registry
	if s.registry, err = s.registryAt(s.Registry, from); err == nil && s.Turn != nil {
		s.turnRegistry, err = s.registryAt(s.Turn.Registry, from)
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

// registryAt returns the registry of a pin, the install record's if pin is nil.
func (s *State) registryAt(pin *spaces.RegistryPin, from Source) (*planner.Registry, error) {
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
