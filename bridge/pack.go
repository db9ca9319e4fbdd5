package bridge

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/bridge/function"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/spacefiles"
	"github.com/refold/refold/internal/worker"
	"github.com/refold/refold/space"
)

// codeToolChanged is the code of a call whose session has another manifest than
// this program, and whose arguments do not fit the tool here.
const codeToolChanged = "tool_changed"

// Pack holds Go functions and files that running sessions may adopt: a factory
// pack. Bridge.Pack serves it.
type Pack struct {
	Name    string // such as crm: the tool_ids of all its tools begin with crm.
	Version string // MAJOR.MINOR.PATCH, with or without - and a pre-release

	Description string // for people, and for models that may enable it
	DisplayName string
	Category    string

	// Tools are executed by the program that serves the pack. Their target is
	// <name>-v<major>, so that two majors can be served concurrently.
	Tools []*function.Function
	// Files are skills, prompts and context, nil if there are none. An
	// agent.workspace.json in it may list them, and nothing else; without it the
	// pack's skills are skills/*/SKILL.md.
	Files fs.FS
	Needs []string // of the whole pack: see the option Needs

	// Target is the target from which sessions read the pack; empty: Name. Two
	// majors of one pack need different targets, also in two programs: bridges
	// that share a target must be able to read the same versions.
	Target string

	// Signatures are signatures of the manifest, over the bytes that SignedText
	// returns; nil: the operator's grant has its Hash among its digests.
	Signatures []space.Signature
}

type builtPack struct {
	spacefiles.Built
	manifest *space.Manifest
	target   string
	tools    function.Set
	signed   []space.Signature
}

// Hash returns the hash of the pack's manifest, as in a grant's digests. The error
// reports every problem of the pack.
func (p Pack) Hash() (string, error) {
	built, err := p.build()
	if err != nil {
		return "", err
	}
	return built.manifest.Hash().String(), nil
}

// SignedText returns the bytes that each of Signatures signs, with a NATS nkey.
func (p Pack) SignedText() ([]byte, error) {
	built, err := p.build()
	if err != nil {
		return nil, err
	}
	return space.SignedText(built.manifest.Bytes()), nil
}

// Pack makes this bridge serve a pack: it reads the pack for syncs, under the
// target space/<name> or Pack.Target, and executes its tools, under the target
// tool/<name>-v<major>. It must be called before Run, once for each pack.
//
// A session adopts the pack if its grant trusts the manifest, by its hash or by
// one of Signatures.
func (b *Bridge) Pack(p Pack, options ...ServeOption) error {
	built, err := p.build()
	if err != nil {
		return err
	}
	if err := b.Space(cmp.Or(p.Target, p.Name), built, options...); err != nil {
		return err
	}
	if len(built.tools) > 0 {
		if err := b.Tool(built.target, built, options...); err != nil {
			return err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.packs = append(b.packs, built)
	return nil
}

// build builds the manifest. The error reports every problem.
func (p Pack) build() (*builtPack, error) {
	version, ok := space.ParseVersion(p.Version)
	switch {
	case !space.IsSpaceName(p.Name, space.Pack):
		return nil, fmt.Errorf("pack %q: its name is 1 to %d of A-Za-z0-9_-, and not refold, host or none", p.Name, space.PackNameBytesMax)
	case !ok:
		return nil, fmt.Errorf("pack %s: its version %q is not MAJOR.MINOR.PATCH, with or without - and a pre-release", p.Name, p.Version)
	}
	b := &builtPack{target: p.Name + "-v" + strconv.FormatUint(uint64(version.Major), 10), tools: function.Set{}, signed: p.Signatures}
	var specs []json.RawMessage
	var all []error
	for i, f := range p.Tools {
		if f == nil {
			all = append(all, fmt.Errorf("tools[%d]: is nil", i))
			continue
		}
		packed, err := f.InPack(p.Name, b.target)
		if err != nil {
			all = append(all, err)
			continue
		}
		if b.tools[f.ToolID()] != nil {
			all = append(all, fmt.Errorf("tool %s: is listed twice", f.ToolID()))
		}
		spec, err := packed.Spec()
		all = append(all, err)
		specs, b.tools[f.ToolID()] = append(specs, spec), packed
	}
	if err := errors.Join(all...); err != nil {
		return nil, fmt.Errorf("pack %s: %w", p.Name, err)
	}
	head := spacefiles.PackHead{Name: p.Name, Version: p.Version, Description: p.Description, DisplayName: p.DisplayName, Category: p.Category}
	added, err := spacefiles.PackFiles(p.Files, head, specs, p.Needs)
	if err == nil {
		files := spacefiles.Overlay(p.Files, added)
		b.Built, err = spacefiles.Read(context.Background(), func(context.Context) (fs.FS, error) { return files, nil },
			func() spacefiles.Options { return spacefiles.Options{Space: p.Name, Kind: space.Pack} })
	}
	if err == nil && b.Manifest == nil {
		all := make([]error, len(b.Problems))
		for i, problem := range b.Problems {
			all[i] = errors.New(problem.String())
		}
		err = errors.Join(all...)
	}
	if err != nil {
		return nil, fmt.Errorf("pack %s: %w", p.Name, err)
	}
	b.manifest = b.Manifest
	return b, nil
}

// ReadSpace returns the pack, if its version matches the request.
func (b *builtPack) ReadSpace(_ context.Context, r executor.SpaceRequest) (executor.SpaceContent, error) {
	version, _ := space.ParseVersion(b.manifest.Version)
	selector, ok := space.ParseSelector(r.Version)
	switch {
	case r.Space != b.manifest.Space:
		return executor.SpaceContent{}, &executor.Error{Code: worker.CodeSpaceUnknown, Detail: fmt.Sprintf("this program has the pack %s, and no space %s", b.manifest.Space, r.Space)}
	case r.Kind != string(space.Pack):
		return executor.SpaceContent{}, &executor.Error{Code: worker.CodeSpaceUnknown, Detail: fmt.Sprintf("%s is a pack, and a %s was asked for", r.Space, r.Kind)}
	case r.Version != "" && (!ok || !selector.Matches(version)):
		return executor.SpaceContent{}, &executor.Error{Code: worker.CodeVersionUnknown, Detail: fmt.Sprintf("this program has %s %s, and not %s", r.Space, b.manifest.Version, r.Version)}
	}
	return executor.SpaceContent{Manifest: b.Manifest, Blobs: b.Files, Warnings: b.Warnings, Source: sourceFactory, Signatures: b.signed}, nil
}

// ToolIDs returns the ids of the pack's tools, sorted.
func (b *builtPack) ToolIDs() []string { return b.tools.ToolIDs() }

// Tries returns the option Tries of one of the pack's tools.
func (b *builtPack) Tries(toolID string) int { return b.tools.Tries(toolID) }

// Execute executes a call of one of the pack's tools. The session may have pinned
// another version: its call is executed if this version has the tool and the
// arguments fit it.
func (b *builtPack) Execute(ctx context.Context, call executor.Call) (executor.Result, error) {
	own := codec.Ref{Hash: b.manifest.Hash()}.String()
	i := slices.IndexFunc(call.Spaces, func(s executor.CallSpace) bool { return s.Space == b.manifest.Space })
	if i < 0 || call.Spaces[i].Manifest == own {
		return b.tools.Execute(ctx, call)
	}
	f := b.tools[call.ToolID]
	if f != nil && f.Accepts(call.Arguments) {
		return f.Execute(ctx, call)
	}
	return executor.Result{Error: &executor.Error{Code: codeToolChanged, Detail: fmt.Sprintf(
		"the session has %s %s, this program has %s, and %s is not the same in both: sync the pack again, or serve that version",
		b.manifest.Space, call.Spaces[i].Version, b.manifest.Version, call.ToolID)}}, nil
}
