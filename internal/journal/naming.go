package journal

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/natsio"
)

// naming finds the blobs that something stored names.
//
// What has the form of a name counts as one, wherever it stands: 64 hex digits in a text,
// and in msgpack a binary of 32 bytes. Three things don't spell what they name: an event
// that has a manifest names the blob with the manifest; an install record and a published
// pack do, too; and an imported conversation names blobs in its content.
type naming struct {
	j       *Journal
	all     []described // by hash
	content []codec.Ref // blobs whose content names others
}

// nameBlobs notes which of the blobs something names.
func (j *Journal) nameBlobs(ctx context.Context, all []described) error {
	n := naming{j: j, all: all}
	for _, of := range []struct {
		stream string
		read   func(stored) error
	}{{j.names.LogStream(), n.event}, {j.names.PacksStream(), n.pack}, {j.names.SnapshotsStream(), n.message}, {j.names.EffectsStream(), n.message}} {
		if err := j.each(ctx, of.stream, of.read); err != nil {
			return fmt.Errorf("read what names blobs: %w", err)
		}
	}
	for _, ref := range n.content {
		content, err := j.GetBlobUpTo(ctx, ref, session.ImportedBytesMax)
		switch {
		case err == nil:
			n.in(content)
		case !errors.Is(err, natsio.ErrNotFound) && !errors.Is(err, ErrOtherBytes) && !errors.Is(err, ErrTooLarge):
			return fmt.Errorf("read what names blobs: %w", err)
		}
	}
	return nil
}

// each calls fn for each message that a stream has now. Unlike scan it creates no consumer,
// which erasers may not do.
func (j *Journal) each(ctx context.Context, stream string, fn func(stored) error) error {
	state, err := j.state(ctx, stream, "")
	if err != nil || state.LastSeq == 0 {
		return err
	}
	for m, err := range j.read(ctx, stream, ">", 1, state.LastSeq, true) {
		if err == nil {
			err = fn(m)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", stream, err)
		}
	}
	return nil
}

// message notes what a message names.
func (n *naming) message(m stored) error {
	n.in(unescaped(m.data))
	return nil
}

// pack notes what the message of a published pack names.
func (n *naming) pack(m stored) error {
	n.is(codec.Sum(m.data))
	return n.message(m)
}

// event notes what an event of the log names.
func (n *naming) event(m stored) error {
	text := unescaped(m.data)
	n.in(text)
	e, err := n.j.event(m)
	if err != nil {
		return nil //nolint:nilerr // nobody folds it
	}
	if e.Door == session.DoorInstall {
		return n.install(e)
	}
	if bytes.Contains(text, []byte(session.TypeWorkspaceSnapshotReady)) {
		if _, hash, err := session.ParseSnapshotReady(e); err == nil {
			n.is(hash)
		}
	}
	if bytes.Contains(text, []byte(session.TypeTranscriptImported)) {
		for hash := range hashesIn(text) {
			n.content = append(n.content, codec.Ref{Hash: hash})
		}
	}
	return nil
}

// install notes the manifests of an install record.
func (n *naming) install(e session.Event) error {
	install, err := session.ParseInstall(e.Payload)
	var unknown *session.UnknownRulesError
	switch {
	case errors.As(err, &unknown):
		return fmt.Errorf("install record at %d: %w: sweep with the latest release that runs", e.Seq, err)
	case err != nil:
		return nil // no session pins it
	}
	for _, manifest := range install.Manifests() {
		n.is(codec.Sum(manifest.Bytes()))
	}
	return nil
}

// in notes what bytes name.
func (n *naming) in(data []byte) {
	for hash := range hashesIn(data) {
		n.is(hash)
	}
}

// unescaped returns JSON with escaped characters in msgpack, which has none, and
// everything else as it is.
func unescaped(data []byte) []byte {
	if bytes.Contains(data, []byte(`\u00`)) {
		if plain, err := codec.FromJSON(data); err == nil {
			return plain
		}
	}
	return data
}

// is notes that a blob is named.
func (n *naming) is(hash codec.Hash) {
	if i, found := slices.BinarySearchFunc(n.all, hash, func(d described, h codec.Hash) int { return d.compare(h) }); found {
		n.all[i].named = true
	}
}

// binaryHash begins a hash in msgpack.
var binaryHash = []byte{0xc4, byte(len(codec.Hash{}))}

// hashesIn yields everything in data that has the form of a hash.
func hashesIn(data []byte) func(yield func(codec.Hash) bool) {
	return func(yield func(codec.Hash) bool) {
		var h codec.Hash
		digits := hex.EncodedLen(len(h))
		run := 0 // of hex digits up to here
		for i, c := range data {
			if run++; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
				run = 0
			}
			if run < digits {
				continue
			}
			_, _ = hex.Decode(h[:], data[i+1-digits:i+1])
			if !yield(h) {
				return
			}
		}
		for rest := data; ; {
			at := bytes.Index(rest, binaryHash)
			if at < 0 || len(rest) < at+len(binaryHash)+len(h) {
				return
			}
			rest = rest[at+1:]
			copy(h[:], rest[len(binaryHash)-1:])
			if !yield(h) {
				return
			}
		}
	}
}
