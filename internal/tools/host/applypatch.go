package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/refold/refold/internal/tools/patch"
)

type applyPatchArguments struct {
	Patch string `json:"patch"`
}

// applyPatch changes all files that a patch names, or none.
func (h *Host) applyPatch(ctx context.Context, p *workdir, args applyPatchArguments) (string, error) {
	if len(args.Patch) > patchBytesMax {
		return "", refuse(CodeTooLarge, "the patch has %d bytes; send several of at most %d", len(args.Patch), patchBytesMax)
	}
	parsed, err := patch.Parse(args.Patch)
	if err != nil {
		return "", patchFailed(err)
	}
	l := h.lock(p)
	l.Lock()
	defer l.Unlock()
	if err := p.canonical(parsed); err != nil {
		return "", patchFailed(err)
	}
	changes, err := parsed.Changes(ctx, func(name string) (string, bool, error) {
		content, err := p.content(ctx, name)
		if errors.Is(err, fs.ErrNotExist) {
			return "", false, nil
		}
		return content, err == nil, err
	})
	if err != nil {
		return "", patchFailed(err)
	}
	writes := make([]write, 0, len(changes))
	modes := p.movedModes(parsed)
	for _, c := range changes {
		if len(c.After) > fileBytesMax {
			return "", patchFailed(refuse(CodeTooLarge, "%s would have %d bytes; files over %d can't be patched", c.Path, len(c.After), fileBytesMax))
		}
		writes = append(writes, write{path: c.Path, remove: !c.Exists, content: c.After, existed: c.Existed, before: c.Before})
		if !c.Existed {
			writes[len(writes)-1].mode = modes[c.Path]
		}
	}
	if err := p.commit(ctx, writes); err != nil {
		return "", patchFailed(err)
	}
	return summary(parsed, len(changes)), nil
}

// patchFailed gives an error of a patch its code. Errors of files keep their own.
func patchFailed(err error) error {
	var wrong *patch.Error
	if errors.As(err, &wrong) {
		return refuse(CodePatchFailed, "nothing was changed. %v", wrong)
	}
	return err
}

// canonical rewrites the paths of a patch, so that each file has one name. A
// file to delete or move must not be a link: it is unclear whether the link or
// its target is meant.
func (p *workdir) canonical(parsed *patch.Patch) error {
	for i := range parsed.Sections {
		s := &parsed.Sections[i]
		if s.Kind == patch.Delete || s.MoveTo != "" {
			rel, err := p.local(s.Path)
			if err != nil {
				return err
			}
			if _, isLink, err := p.link(rel); err == nil && isLink {
				return regular(s.Path, fs.ModeSymlink)
			}
		}
		for _, name := range []*string{&s.Path, &s.MoveTo} {
			if *name == "" {
				continue
			}
			rel, err := p.target(*name)
			if err != nil {
				return err
			}
			*name = rel
		}
	}
	return nil
}

// movedModes returns the permissions that moved files keep at their new paths.
func (p *workdir) movedModes(parsed *patch.Patch) map[string]fs.FileMode {
	modes := map[string]fs.FileMode{}
	for _, s := range parsed.Sections {
		if s.MoveTo == "" {
			continue
		}
		mode, ok := modes[s.Path] // moved here by an earlier section
		if !ok {
			if mode, ok = p.mode(s.Path); !ok {
				continue
			}
		}
		modes[s.MoveTo] = mode
	}
	return modes
}

// summary lists what each section did.
func summary(parsed *patch.Patch, changed int) string {
	var b strings.Builder
	if changed == 0 {
		b.WriteString("the patch applies, but changes nothing:\n")
	}
	for _, s := range parsed.Sections {
		switch {
		case s.MoveTo != "":
			fmt.Fprintf(&b, "moved %s to %s\n", s.Path, s.MoveTo)
		case s.Kind == patch.Add:
			fmt.Fprintf(&b, "added %s\n", s.Path)
		case s.Kind == patch.Delete:
			fmt.Fprintf(&b, "deleted %s\n", s.Path)
		default:
			fmt.Fprintf(&b, "updated %s\n", s.Path)
		}
	}
	return b.String()
}
