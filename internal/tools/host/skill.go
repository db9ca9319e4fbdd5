package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/tools/sessiontools"
)

// ToolSkillUnpack is a session tool that hosts carry out: it writes the files
// of a skill.
const ToolSkillUnpack = "refold.skill.unpack"

// skillsDir is where skills are unpacked, in the working directory.
const skillsDir = ".refold/skills"

// UseBlobs sets the function that returns the content of a blob, for unpacking
// skills. It must be called before the first call. Without it ToolSkillUnpack is
// refused.
func (h *Host) UseBlobs(blobs sessiontools.Blobs) {
	h.blobs = blobs
}

type unpackArguments struct {
	Skill string `json:"skill"`
}

// unpack writes the files of a skill into the working directory. A repeat gives
// the same result.
func (h *Host) unpack(ctx context.Context, p *workdir, call executor.Call) (string, error) {
	var args unpackArguments
	if err := decode(call.Arguments, &args); err != nil {
		return "", err
	}
	if h.blobs == nil {
		return "", refuse(CodeToolUnbound, "this host unpacks no skills; read their files with skill_read")
	}
	m, skill, err := sessiontools.FindSkill(ctx, call, args.Skill, h.blobs.ReadManifest)
	switch {
	case err != nil:
		return "", err
	case skill == nil:
		return "", refuse(CodeInvalidArguments, "there is no skill %q", args.Skill)
	}
	l := h.lock(p)
	l.Lock()
	defer l.Unlock()
	dir := path.Join(skillsDir, skill.Skill)
	lines := []string{"unpacked into " + dir + ":"}
	for _, f := range m.SkillFiles(skill) {
		content, err := h.blobs(ctx, call.Session, f.Ref.String())
		switch {
		case err != nil:
			return "", fmt.Errorf("%s: %w", f.Path, err)
		case codec.RefOf(content) != f.Ref:
			return "", refuse(CodeIO, "the store holds other bytes as %s", f.Path)
		}
		name := path.Join(dir, f.Path)
		if err := p.writeSkillFile(ctx, name, string(content)); err != nil {
			return "", err
		}
		lines = append(lines, fmt.Sprintf("%s (%d bytes)", name, f.Size))
	}
	return strings.Join(lines, "\n"), nil
}

// writeSkillFile writes one file. A script, which begins with #!, is executable.
func (p *workdir) writeSkillFile(ctx context.Context, name, content string) error {
	rel, err := p.target(name)
	if err != nil {
		return err
	}
	mode := fs.FileMode(0o644)
	if strings.HasPrefix(content, "#!") {
		mode = 0o755
	}
	err = p.commit(ctx, []write{{path: rel, content: content, mode: mode}})
	if errors.Is(err, fs.ErrExist) {
		return refuse(CodeNotDirectory, "%s can't be written: a file stands where a directory is needed", name)
	}
	return err
}
