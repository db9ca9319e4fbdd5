// Package sessiontools carries out the tools that every session with a grant
// has: refold.space.list, read and search for the context files of its
// workspace, refold.skill.load and read for skills, and refold.extensions.list
// and status for packs. They read by the hashes in the effect, so a run reads
// what was applied when its turn began, even if the source has changed. And it
// carries out refold.result.read, which every run with a context has.
package sessiontools

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/spacefiles"
	"github.com/refold/refold/space"
)

// Target is the target of the tools.
const Target = "refold"

// The limits of results.
const (
	listMax        = 1_000    // files in the result of list
	readBytesMax   = 64 << 10 // bytes in the result of read
	resultsMax     = 100      // lines in the result of search
	resultsDefault = 50
	lineBytesMax   = 300 // of a line in the result of search
	manifestsMax   = 64  // cached manifests
)

// Blobs returns the content of a blob by its name, for a call of a session.
type Blobs func(ctx context.Context, sid, name string) ([]byte, error)

// Tools carries out the session tools. It is safe for concurrent use.
type Tools struct {
	// Packs finds packs that a session may adopt. If it is nil, every pack that
	// a grant names counts as available.
	Packs Packs
	// Results finds results of earlier calls. If it is nil, none can be read.
	Results Results

	blobs Blobs

	mu        sync.Mutex
	manifests map[string]*space.Manifest // by the name of their blob
}

// New returns the tools, which read from blobs.
func New(blobs Blobs) *Tools {
	return &Tools{blobs: blobs, manifests: make(map[string]*space.Manifest)}
}

type file struct {
	space string
	*space.File
}

type arguments struct {
	Space      string `json:"space"`
	Path       string `json:"path"`
	PathGlob   string `json:"path_glob"`
	Pattern    string `json:"pattern"`
	Offset     int    `json:"offset"`
	MaxBytes   int    `json:"max_bytes"`
	MaxResults int    `json:"max_results"`
	Skill      string `json:"skill"`
	Arguments  string `json:"arguments"`

	Call        string `json:"call"`
	LinesAround int    `json:"lines_around"`

	IncludeUnavailable bool `json:"includeUnavailable"`
}

// Execute carries out one call.
func (t *Tools) Execute(ctx context.Context, call executor.Call) (executor.Result, error) {
	var a arguments
	if err := json.Unmarshal(call.Arguments, &a); err != nil {
		return refused("%v", err), nil
	}
	name, _ := strings.CutPrefix(call.ToolID, Target+".")
	switch name {
	case "skill.load", "skill.read":
		return t.skill(ctx, strings.TrimPrefix(name, "skill."), call, a)
	case "extensions.list":
		return t.extensions(ctx, call, a.IncludeUnavailable)
	case "extensions.status":
		return status(call)
	case "result.read":
		return t.readResult(ctx, call.Session, a)
	}
	files, err := t.files(ctx, call, a.Space)
	if err != nil {
		return executor.Result{}, err
	}
	if a.PathGlob != "" {
		matches, ok := spacefiles.Glob(a.PathGlob)
		if !ok {
			return refused("path_glob: %q is no glob", a.PathGlob), nil
		}
		files = slices.DeleteFunc(files, func(f file) bool { return !matches(f.Path) })
	}
	switch name {
	case "space.list":
		return list(files)
	case "space.read":
		return t.read(ctx, call.Session, files, a)
	case "space.search":
		return t.search(ctx, call.Session, files, a)
	}
	return executor.Result{Error: &executor.Error{Code: "tool_not_served", Detail: "this bridge has no session tool " + call.ToolID + ": upgrade it"}}, nil
}

// refused returns the result for invalid arguments.
func refused(format string, args ...any) executor.Result {
	return executor.Result{Error: &executor.Error{Code: "invalid_arguments", Detail: fmt.Sprintf(format, args...)}}
}

// files returns the context files in the spaces of a call, in order, without
// duplicates.
func (t *Tools) files(ctx context.Context, call executor.Call, only string) (files []file, err error) {
	for _, s := range call.Spaces {
		if only != "" && s.Space != only {
			continue
		}
		m, err := t.manifest(ctx, call.Session, s.Manifest)
		if err != nil {
			return nil, fmt.Errorf("manifest of %s: %w", s.Space, err)
		}
		shown := make([]bool, len(m.Files))
		for _, g := range m.Context {
			for _, i := range g.Files {
				shown[i] = true
			}
		}
		for i := range m.Files {
			if shown[i] {
				files = append(files, file{space: s.Space, File: &m.Files[i]})
			}
		}
	}
	return files, nil
}

// manifest returns a manifest by the name of its blob.
func (t *Tools) manifest(ctx context.Context, sid, name string) (*space.Manifest, error) {
	t.mu.Lock()
	m, ok := t.manifests[name]
	t.mu.Unlock()
	if ok {
		return m, nil
	}
	m, err := t.blobs.ReadManifest(ctx, sid, name)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.manifests) >= manifestsMax {
		clear(t.manifests)
	}
	t.manifests[name] = m
	return m, nil
}

// listed is a file in the result of list.
type listed struct {
	Path      string `json:"path"`
	Size      int64  `json:"size"`
	MediaType string `json:"media_type"`
	Space     string `json:"space"`
}

func list(files []file) (executor.Result, error) {
	out := struct {
		Files     []listed `json:"files"`
		Truncated bool     `json:"truncated,omitempty"`
	}{Files: []listed{}, Truncated: len(files) > listMax}
	for _, f := range files[:min(len(files), listMax)] {
		out.Files = append(out.Files, listed{f.Path, f.Size, f.MediaType, f.space})
	}
	text, err := json.Marshal(out)
	return executor.Result{Output: string(text)}, err
}

func (t *Tools) read(ctx context.Context, sid string, files []file, a arguments) (executor.Result, error) {
	found := slices.DeleteFunc(slices.Clone(files), func(f file) bool { return f.Path != a.Path })
	switch {
	case len(found) == 0:
		return refused("there is no context file %q: workspace_list shows which there are", a.Path), nil
	case len(found) > 1:
		return refused("%q is in %s and %s: say which with space", a.Path, found[0].space, found[1].space), nil
	}
	f := found[0]
	if !f.IsText() && !f.IsMedia() {
		text, err := json.Marshal(map[string]any{"path": f.Path, "media_type": f.MediaType, "size": f.Size, "sha256": f.Ref.Hash.String()})
		return executor.Result{Output: string(text)}, err
	}
	content, err := t.blobs(ctx, sid, f.Ref.String())
	if err != nil {
		return executor.Result{}, fmt.Errorf("%s: %w", f.Path, err)
	}
	if f.IsMedia() {
		return executor.Result{Output: f.Path, Files: []executor.File{{MediaType: f.MediaType, Data: content}}}, nil
	}
	return executor.Result{Output: excerpt(content, a)}, nil
}

// excerpt returns the requested part of a text, with a note unless it is the
// whole text.
func excerpt(content []byte, a arguments) string {
	start := min(max(a.Offset, 0), len(content))
	limit := readBytesMax
	if a.MaxBytes > 0 {
		limit = min(a.MaxBytes, limit)
	}
	end := min(start+limit, len(content))
	for start < end && !utf8.RuneStart(content[start]) {
		start++
	}
	for end < len(content) && end > start && !utf8.RuneStart(content[end]) {
		end--
	}
	text := string(content[start:end])
	if start > 0 || end < len(content) {
		text += fmt.Sprintf("\n[bytes %d to %d of %d]", start, end, len(content))
	}
	return text
}

func (t *Tools) search(ctx context.Context, sid string, files []file, a arguments) (executor.Result, error) {
	pattern, err := regexp.Compile(a.Pattern)
	if err != nil {
		return refused("pattern: %v", err), nil
	}
	most := resultsDefault
	if a.MaxResults > 0 {
		most = min(a.MaxResults, resultsMax)
	}
	var lines []string
	for _, f := range files {
		if !f.IsText() {
			continue
		}
		content, err := t.blobs(ctx, sid, f.Ref.String())
		if err != nil {
			return executor.Result{}, fmt.Errorf("%s: %w", f.Path, err)
		}
		n := 0
		for line := range strings.Lines(string(content)) {
			n++
			if line = strings.TrimRight(line, "\r\n"); !pattern.MatchString(line) {
				continue
			}
			if len(lines) == most {
				return executor.Result{Output: strings.Join(lines, "\n") + fmt.Sprintf("\n[more than %d lines match: narrow the pattern or path_glob]", most)}, nil
			}
			lines = append(lines, fmt.Sprintf("%s:%d: %s", f.Path, n, clipped(line)))
		}
	}
	if len(lines) == 0 {
		return executor.Result{Output: "no line matches"}, nil
	}
	return executor.Result{Output: strings.Join(lines, "\n")}, nil
}

func clipped(line string) string {
	if len(line) <= lineBytesMax {
		return line
	}
	return strings.ToValidUTF8(line[:lineBytesMax], "") + "…"
}
