package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/space"
	"github.com/refold/refold/subjects"
)

// packBytesMax is the max_msg_size of the stream of packs in streams.conf.
const packBytesMax = 768 << 10

// Published is one version of a pack in the stream of packs. Any publisher may have
// published it: only signatures show who vouches for the manifest.
type Published struct {
	Pack, Version string
	Seq           uint64
	Manifest      []byte            // as published
	Signatures    []space.Signature // that sign Manifest, by key
}

var (
	// ErrVersion means that versions of the pack are published, and none matches.
	ErrVersion = errors.New("no such version is published")
	// ErrUntrusted means that published versions match, and none of them is trusted.
	ErrUntrusted = errors.New("no matching version is trusted")
)

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

// PublishPack stores a manifest as a version of a pack, and then those of its
// signatures that are not stored yet. It returns the version with all signatures,
// also those of other publishers. If again is true, the same manifest was stored
// before. The files of the manifest should be stored first. The error is a
// *VersionTakenError if the version has another manifest; then nothing was stored.
func (j *Journal) PublishPack(ctx context.Context, p Published) (current Published, again bool, err error) {
	subject, err := j.names.Pack(p.Pack, p.Version)
	if err != nil {
		return Published{}, false, err
	}
	signed := make([]string, len(p.Signatures))
	for i, by := range p.Signatures {
		if signed[i], err = j.names.PackSignature(p.Pack, p.Version, by); err != nil {
			return Published{}, false, err
		}
	}
	_, err = j.leaderGet(ctx, j.names.PacksStream(), getRequest{LastFor: subject})
	if again = err == nil; !again && !errors.Is(err, natsio.ErrNotFound) {
		return Published{}, false, fmt.Errorf("%s %s: %w", p.Pack, p.Version, err)
	}
	if !again {
		err = j.storePack(ctx, &write{subject: subject, data: p.Manifest, headers: []string{subjects.HeaderContentType, subjects.ContentTypeMsgpack}})
		if err != nil {
			return Published{}, false, fmt.Errorf("publish %s %s: %w", p.Pack, p.Version, err)
		}
	}
	current, err = j.Pack(ctx, p.Pack, p.Version)
	if hash := codec.Sum(current.Manifest); err == nil && hash != codec.Sum(p.Manifest) {
		err = &VersionTakenError{Pack: p.Pack, Version: p.Version, Seq: current.Seq, Hash: hash}
	}
	if err != nil {
		return Published{}, false, err
	}
	added := false
	for i, by := range p.Signatures {
		if slices.Contains(current.Signatures, by) {
			continue
		}
		if err := j.storePack(ctx, &write{subject: signed[i]}); err != nil {
			return Published{}, again, fmt.Errorf("publish the signature of %s %s: %w", p.Pack, p.Version, err)
		}
		added = true
	}
	if added {
		current, err = j.Pack(ctx, p.Pack, p.Version)
	}
	return current, again, err
}

// storePack stores a message of the stream of packs, unless its subject has one.
func (j *Journal) storePack(ctx context.Context, w *write) error {
	w.fenced, w.alone = true, true
	err := j.check(w, packBytesMax)
	if err == nil {
		err = j.packs.commitOne(ctx, w)
	}
	return natsio.Typed(err)
}

// Pack returns one version of a pack, from the stream's leader. The error wraps
// ErrNotFound if it is not published.
func (j *Journal) Pack(ctx context.Context, pack, version string) (Published, error) {
	all, err := j.versions(ctx, pack)
	if err != nil {
		return Published{}, err
	}
	return j.version(ctx, pack, version, all[pack][version])
}

// version reads one version, with those of the given signatures that hold.
func (j *Journal) version(ctx context.Context, pack, version string, signatures []space.Signature) (Published, error) {
	subject, err := j.names.Pack(pack, version)
	if err != nil {
		return Published{}, err
	}
	m, err := j.leaderGet(ctx, j.names.PacksStream(), getRequest{LastFor: subject})
	if err != nil {
		return Published{}, fmt.Errorf("%s %s: %w", pack, version, err)
	}
	p := Published{Pack: pack, Version: version, Seq: m.seq, Manifest: m.data}
	for _, by := range signatures {
		if by.Signs(p.Manifest) {
			p.Signatures = append(p.Signatures, by)
		}
	}
	return p, nil
}

// Packs returns every version of a pack, or of all packs if pack is empty, in the
// order of their publication.
func (j *Journal) Packs(ctx context.Context, pack string) (all []Published, err error) {
	packs, err := j.versions(ctx, pack)
	if err != nil {
		return nil, err
	}
	for pack, versions := range packs {
		for version, signatures := range versions {
			p, err := j.version(ctx, pack, version, signatures)
			if errors.Is(err, natsio.ErrNotFound) {
				continue // only signatures of it are published
			}
			if err != nil {
				return nil, fmt.Errorf("list packs: %w", err)
			}
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b Published) int { return cmp.Compare(a.Seq, b.Seq) })
	return all, nil
}

// FindPack returns the newest published version of a pack that a selector (1, 1.4,
// 1.4.2) matches and that trust admits, with the signature that makes it trusted.
// Without a selector it is the newest of trust's version, else the newest release;
// without trust the newest of anybody's. The error wraps ErrNotFound if no version
// is published, ErrVersion if none matches, and ErrUntrusted if none of those that
// match is admitted.
func (j *Journal) FindPack(ctx context.Context, pack, selector string, trust *space.Trust) (Published, error) {
	all, err := j.versions(ctx, pack)
	if err != nil {
		return Published{}, err
	}
	return j.newest(ctx, pack, all[pack], selector, trust)
}

// newest is FindPack among the given versions.
func (j *Journal) newest(ctx context.Context, pack string, versions signedVersions, selector string, trust *space.Trust) (Published, error) {
	if len(versions) == 0 {
		return Published{}, fmt.Errorf("%s: %w", pack, natsio.ErrNotFound)
	}
	matching := versions.matching(selector, trust)
	if len(matching) == 0 {
		return Published{}, fmt.Errorf("%s %s: %w", pack, selector, ErrVersion)
	}
	for _, version := range matching {
		signatures := slices.Clone(versions[version])
		if trust != nil {
			signatures = slices.DeleteFunc(signatures, func(by space.Signature) bool { return !slices.Contains(trust.Keys, by.Key) })
			if len(signatures) == 0 && len(trust.Digests) == 0 {
				continue // nothing can make it trusted: the manifest need not be read
			}
		}
		p, err := j.version(ctx, pack, version, signatures)
		switch {
		case errors.Is(err, natsio.ErrNotFound):
			continue // only signatures of it are published
		case err != nil || trust == nil:
			return p, err
		}
		// A trusted manifest may be published under another version, by anybody.
		m, by := trust.Admit(pack, p.Manifest, p.Signatures...)
		if m == nil || m.Version != version {
			continue
		}
		if p.Signatures = nil; by != nil {
			p.Signatures = []space.Signature{*by}
		}
		return p, nil
	}
	return Published{}, fmt.Errorf("%s %s: %w", pack, selector, ErrUntrusted)
}

// signedVersions is the signatures of each published version, not verified.
type signedVersions map[string][]space.Signature

// matching returns the versions that a selector, or else trust's, matches: the
// newest first.
func (v signedVersions) matching(selector string, trust *space.Trust) (all []string) {
	granted := ""
	if trust != nil {
		granted = trust.Version
	}
	selector = cmp.Or(selector, granted)
	for text := range v {
		version, _ := space.ParseVersion(text)
		if (selector != "" || version.Pre == "") && (selector == "" || space.Selects(selector, text)) && (granted == "" || space.Selects(granted, text)) {
			all = append(all, text)
		}
	}
	slices.SortFunc(all, func(a, b string) int {
		v, _ := space.ParseVersion(a)
		w, _ := space.ParseVersion(b)
		return w.Compare(v)
	})
	return all
}

// NewestPacks returns the result of FindPack for each published pack whose name begins
// with prefix and of which a version is admitted: the first max by name.
func (j *Journal) NewestPacks(ctx context.Context, prefix string, trust *space.Trust, max int) (all []Published, err error) {
	packs, err := j.versions(ctx, "")
	if err != nil {
		return nil, err
	}
	for _, pack := range slices.Sorted(maps.Keys(packs)) {
		if !strings.HasPrefix(pack, prefix) || len(all) == max {
			continue
		}
		p, err := j.newest(ctx, pack, packs[pack], "", trust)
		switch {
		case errors.Is(err, ErrVersion), errors.Is(err, ErrUntrusted):
		case err != nil:
			return nil, err
		default:
			all = append(all, p)
		}
	}
	return all, nil
}

// versions returns the published versions of a pack, or of all packs if pack is
// empty, by pack. A version may have signatures and no manifest.
func (j *Journal) versions(ctx context.Context, pack string) (map[string]signedVersions, error) {
	filter := j.names.PackEverything()
	if pack != "" {
		var err error
		if filter, err = j.names.PackVersions(pack); err != nil {
			return nil, err
		}
	}
	state, err := j.state(ctx, j.names.PacksStream(), filter)
	if err != nil {
		return nil, fmt.Errorf("versions of packs: %w", err)
	}
	all := map[string]signedVersions{}
	for _, subject := range slices.Sorted(maps.Keys(state.Subjects)) {
		pack, version, by, err := j.names.ParsePack(subject)
		if err != nil {
			continue
		}
		if all[pack] == nil {
			all[pack] = signedVersions{}
		}
		signatures := all[pack][version]
		if by.Key != "" {
			signatures = append(signatures, by)
		}
		all[pack][version] = signatures
	}
	return all, nil
}
