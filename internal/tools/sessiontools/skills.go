package sessiontools

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/space"
)

// ReadManifest reads a manifest from the blob of that name.
func (read Blobs) ReadManifest(ctx context.Context, sid, name string) (*space.Manifest, error) {
	data, err := read(ctx, sid, name)
	if err != nil {
		return nil, err
	}
	if codec.RefOf(data).String() != name {
		return nil, errors.New("the store holds other bytes under " + name)
	}
	m, problems := space.Parse(data)
	if m == nil {
		return nil, errors.New(problems[0].String())
	}
	return m, nil
}

// FindSkill returns the first skill of that name in the spaces of a call, with
// its manifest, or nil.
func FindSkill(ctx context.Context, call executor.Call, name string, manifest func(ctx context.Context, sid, name string) (*space.Manifest, error)) (*space.Manifest, *space.Skill, error) {
	for _, s := range call.Spaces {
		m, err := manifest(ctx, call.Session, s.Manifest)
		if err != nil {
			return nil, nil, fmt.Errorf("manifest of %s: %w", s.Space, err)
		}
		if skill := m.Skill(name); skill != nil {
			return m, skill, nil
		}
	}
	return nil, nil, nil
}

func (t *Tools) skill(ctx context.Context, tool string, call executor.Call, a arguments) (executor.Result, error) {
	m, s, err := FindSkill(ctx, call, a.Skill, t.manifest)
	switch {
	case err != nil:
		return executor.Result{}, err
	case s == nil: // unexpected: the session has checked the name
		return refused("there is no skill %q", a.Skill), nil
	case tool == "load":
		return t.loadSkill(ctx, call.Session, m, s, a)
	}
	return t.readSkill(ctx, call.Session, m, s, a)
}

// loadSkill returns a skill's text and lists its files.
func (t *Tools) loadSkill(ctx context.Context, sid string, m *space.Manifest, s *space.Skill, a arguments) (executor.Result, error) {
	files := m.SkillFiles(s)
	body, err := t.blobs(ctx, sid, files[0].Ref.String())
	if err != nil {
		return executor.Result{}, fmt.Errorf("%s: %w", files[0].Path, err)
	}
	text, ok := withArguments(string(body), a.Arguments)
	if !ok {
		return refused("with these arguments the skill has more than %d KiB: give shorter ones", space.SkillFilledBytesMax>>10), nil
	}
	var b strings.Builder
	b.WriteString(strings.TrimSpace(text))
	if len(files) > 1 {
		b.WriteString("\n\nFiles of this skill, to read with skill_read:\n")
		for _, f := range files[1:] {
			fmt.Fprintf(&b, "- %s (%d bytes)\n", f.Path, f.Size)
		}
	}
	return executor.Result{Output: strings.TrimRight(b.String(), "\n")}, nil
}

// withArguments fills in the arguments, or appends them to a text without
// placeholders. ok is false if the result is too long.
func withArguments(text, given string) (filled string, ok bool) {
	filled, found, ok := space.FillArguments(text, given)
	if !found && strings.TrimSpace(given) != "" {
		filled = strings.TrimRight(text, "\n") + "\n\nARGUMENTS: " + given
	}
	return filled, ok
}

func (t *Tools) readSkill(ctx context.Context, sid string, m *space.Manifest, s *space.Skill, a arguments) (executor.Result, error) {
	name := path.Clean(a.Path)
	for _, f := range m.SkillFiles(s) {
		if f.Path != name {
			continue
		}
		content, err := t.blobs(ctx, sid, f.Ref.String())
		if err != nil {
			return executor.Result{}, fmt.Errorf("%s: %w", f.Path, err)
		}
		if f.IsText() || f.MediaType == "application/json" && utf8.Valid(content) {
			return executor.Result{Output: excerpt(content, a)}, nil
		}
		return executor.Result{Output: f.Path, Files: []executor.File{{MediaType: f.MediaType, Data: content}}}, nil
	}
	return refused("the skill %s has no file %q: skill_load lists which there are", s.Skill, a.Path), nil
}
