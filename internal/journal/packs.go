package journal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/space"
	"github.com/refold/refold/subjects"
)

// packBytesMax is the max_msg_size of the stream of packs in streams.conf.
const packBytesMax = 768 << 10

// Published is one version of a pack in the stream of packs. Only its subject is
// verified: it names a pack and a version.
type Published struct {
	Pack, Version string
	Seq           uint64
	Manifest      []byte            // as published
	Signature     session.Signature // zero: none
}

// VersionTakenError means that another manifest was published under this version.
// Nothing was stored.
type VersionTakenError struct {
	Pack, Version string
	Seq           uint64     // of the stored message
	Hash          codec.Hash // of the stored manifest
}

func (e *VersionTakenError) Error() string {
	return fmt.Sprintf("%s %s is published already, at sequence %d, with the manifest %s: a published version never changes; publish this content as another version", e.Pack, e.Version, e.Seq, e.Hash)
}

// PublishPack stores a manifest as a version of a pack, and returns the stored
// version. If again is true, the same manifest was already stored and nothing changed,
// even if the signature differs. The files of the manifest should be stored first. The
// error is a *VersionTakenError if the version has another manifest.
func (j *Journal) PublishPack(ctx context.Context, p Published) (current Published, again bool, err error) {
	subject, err := j.names.Pack(p.Pack, p.Version)
	if err != nil {
		return Published{}, false, err
	}
	current, err = j.Pack(ctx, p.Pack, p.Version)
	if !errors.Is(err, natsio.ErrNotFound) {
		return current, err == nil, p.differs(current, err)
	}
	w := &write{subject: subject, data: p.Manifest, fenced: true, alone: true, headers: []string{subjects.HeaderContentType, subjects.ContentTypeMsgpack}}
	if p.Signature != (session.Signature{}) {
		w.headers = append(w.headers, subjects.HeaderSignatureKey, p.Signature.Key, subjects.HeaderSignature, p.Signature.Sig)
	}
	if err = j.check(w, packBytesMax); err == nil {
		err = j.packs.commitOne(ctx, w)
	}
	if err != nil {
		return Published{}, false, fmt.Errorf("publish %s %s: %w", p.Pack, p.Version, natsio.Typed(err))
	}
	current, err = j.Pack(ctx, p.Pack, p.Version)
	return current, false, p.differs(current, err)
}

// differs returns a *VersionTakenError if current has another manifest, and err if
// current could not be read.
func (p *Published) differs(current Published, err error) error {
	if hash := codec.Sum(current.Manifest); err == nil && hash != codec.Sum(p.Manifest) {
		return &VersionTakenError{Pack: p.Pack, Version: p.Version, Seq: current.Seq, Hash: hash}
	}
	return err
}

// Pack returns one version of a pack, from the stream's leader. The error wraps
// ErrNotFound if it is not published.
func (j *Journal) Pack(ctx context.Context, pack, version string) (Published, error) {
	subject, err := j.names.Pack(pack, version)
	if err != nil {
		return Published{}, err
	}
	m, err := j.leaderGet(ctx, j.names.PacksStream(), getRequest{LastFor: subject})
	if err != nil {
		return Published{}, fmt.Errorf("%s %s: %w", pack, version, err)
	}
	return j.published(m)
}

func (j *Journal) published(m stored) (p Published, err error) {
	p = Published{Seq: m.seq, Manifest: m.data}
	p.Signature = session.Signature{Key: m.header.Get(subjects.HeaderSignatureKey), Sig: m.header.Get(subjects.HeaderSignature)}
	p.Pack, p.Version, err = j.names.ParsePack(m.subject)
	return p, err
}

// Packs returns every version that was published before the call, oldest first.
// Messages whose subject names no version are left out.
func (j *Journal) Packs(ctx context.Context) (all []Published, err error) {
	for m, err := range j.read(ctx, j.names.PacksStream(), j.names.PackAll(), 1, 0, true) {
		if err != nil {
			return nil, fmt.Errorf("list packs: %w", err)
		}
		if p, err := j.published(m); err == nil {
			all = append(all, p)
		}
	}
	return all, nil
}

// FindPack returns the newest published version of a pack that the selector (1, 1.4,
// 1.4.2) matches; without a selector, the newest release. known has all published
// versions, in no order. The error wraps ErrNotFound if none matches.
func (j *Journal) FindPack(ctx context.Context, pack, selector string) (p Published, known []string, err error) {
	filter, err := j.names.PackVersions(pack)
	if err != nil {
		return Published{}, nil, err
	}
	versions, err := j.packNames(ctx, filter)
	if err != nil {
		return Published{}, nil, fmt.Errorf("versions of %s: %w", pack, err)
	}
	known = versions[pack]
	version := newest(known, selector)
	if version == "" {
		return Published{}, known, fmt.Errorf("%s %s: %w", pack, selector, natsio.ErrNotFound)
	}
	p, err = j.Pack(ctx, pack, version)
	return p, known, err
}

// newest returns the newest version that a selector matches, "" if none does.
func newest(versions []string, selector string) (best string) {
	s, ok := space.ParseSelector(selector)
	if !ok && selector != "" {
		return ""
	}
	var latest space.Version
	for _, text := range versions {
		v, _ := space.ParseVersion(text)
		if selector == "" && v.Pre != "" || selector != "" && !s.Matches(v) {
			continue
		}
		if best == "" || v.Compare(latest) > 0 {
			best, latest = text, v
		}
	}
	return best
}

// NewestPacks returns the result of FindPack for each published pack whose name begins
// with prefix and of which a version matches: the first max by name.
func (j *Journal) NewestPacks(ctx context.Context, prefix, selector string, max int) (all []Published, err error) {
	versions, err := j.packNames(ctx, j.names.PackAll())
	if err != nil {
		return nil, fmt.Errorf("names of packs: %w", err)
	}
	for _, pack := range slices.Sorted(maps.Keys(versions)) {
		version := newest(versions[pack], selector)
		if version == "" || !strings.HasPrefix(pack, prefix) || len(all) == max {
			continue
		}
		p, err := j.Pack(ctx, pack, version)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// packNames returns the published versions whose subjects match a filter, by pack.
func (j *Journal) packNames(ctx context.Context, filter string) (map[string][]string, error) {
	state, err := j.state(ctx, j.names.PacksStream(), filter)
	if err != nil {
		return nil, err
	}
	all := map[string][]string{}
	for subject := range state.Subjects {
		if pack, version, err := j.names.ParsePack(subject); err == nil {
			all[pack] = append(all[pack], version)
		}
	}
	return all, nil
}
