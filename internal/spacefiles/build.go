package spacefiles

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/space"
)

// IndexName is the file that lists the content of a space.
const IndexName = "agent.workspace.json"

// The parts of a space to which reading may be limited.
const (
	PartPrompts = "prompts"
	PartTools   = "tools"
	PartContext = "context"
	PartSkills  = "skills"
)

// Parts are the parts of a space, as Options.Only names them.
var Parts = []string{PartPrompts, PartTools, PartContext, PartSkills}

// Options configure Read.
type Options struct {
	Space  string // empty: the name in the index, else Named
	Named  string
	Kind   space.Kind      // empty: the kind in the index
	NoScan bool            // a folder without an index is a problem
	Only   []string        // read only these parts, and take the others from Known
	Known  *space.Manifest // nil: an empty one
}

// Built is the result of Read. Manifest and Files are nil if there is any
// problem. Problems and warnings are sorted.
type Built struct {
	Manifest *space.Manifest
	Rest     *space.Manifest      // what could be read despite the problems; nil: none of it is a manifest
	Files    map[codec.Ref][]byte // the content of each file of Manifest that Known lacks
	Problems []space.Problem
	Warnings []space.Problem

	sources map[string]location
}

// Place adds the file and the line to problems of the manifest that have none: those
// of their paths.
func (b *Built) Place(problems []space.Problem) []space.Problem { return place(b.sources, problems) }

func place(sources map[string]location, problems []space.Problem) []space.Problem {
	placed := slices.Clone(problems)
	for i := range placed {
		p := &placed[i]
		for path := p.Path; p.File == "" && path != ""; path = path[:max(0, strings.LastIndexAny(path, ".["))] {
			p.File, p.Line = sources[path].file, sources[path].line
		}
	}
	return placed
}

// ErrChanged means that a folder changed during each reading.
var ErrChanged = errors.New("the files changed while they were read, three times: try again when nothing writes them")

// Read opens a folder and builds its manifest. It calls options after open, and
// closes what open returns if it is an io.Closer. If a file changed meanwhile,
// it reads again, at most three times in all; then it returns ErrChanged. Other
// errors are those of open and of the context.
func Read(ctx context.Context, open func(context.Context) (fs.FS, error), options func() Options) (Built, error) {
	for range readsMax {
		fsys, err := open(ctx)
		if err != nil {
			return Built{}, err
		}
		b := newBuilder(ctx, fsys, options())
		built := b.build()
		changed := b.changed()
		if c, ok := fsys.(io.Closer); ok {
			_ = c.Close() // it was only read
		}
		if err := ctx.Err(); err != nil {
			return Built{}, err
		}
		if !changed {
			return built, nil
		}
	}
	return Built{}, ErrChanged
}

// builder builds one manifest.
type builder struct {
	ctx      context.Context //nolint:containedctx // a builder lives for one reading
	fsys     fs.FS
	o        Options
	m        space.Manifest
	at       map[string]int  // index in m.Files, by path
	read     map[string]seen // files read so far, by path
	words    []space.Word    // of m.Catalogs; their entries index it
	contents map[codec.Ref][]byte
	bytes    int64
	listed   []string // all files below the root; nil: not yet listed
	patterns int
	sources  map[string]location // where parts of the manifest come from, by id until arrange, then by path
	problems []space.Problem
	warnings []space.Problem
}

// seen is a file at the time when it was read.
type seen struct {
	info    fs.FileInfo
	content []byte
	problem space.Problem // if it has a code, the file can't be read
}

func newBuilder(ctx context.Context, fsys fs.FS, o Options) *builder {
	return &builder{ctx: ctx, fsys: fsys, o: o, at: map[string]int{}, read: map[string]seen{}, contents: map[codec.Ref][]byte{}, sources: map[string]location{}}
}

func (b *builder) say(p space.Problem) {
	p.Detail = clip(p.Detail, space.DetailBytesMax)
	p.Path = clip(p.Path, space.ProblemPathBytesMax)
	b.problems = append(b.problems, p)
}

func (b *builder) build() Built {
	b.m.V, b.m.Space, b.m.Kind = 1, b.o.Space, b.o.Kind
	if data, ok := b.readFile(IndexName, indexBytesMax); ok {
		b.readIndex(data)
	} else if p := b.read[IndexName].problem; p.Code != space.MissingFile {
		p.File = IndexName
		b.say(p)
	} else {
		b.scan()
	}
	b.m.Kind = cmp.Or(b.m.Kind, space.Workspace)
	b.merge()
	b.arrange()
	if len(b.m.Files) > space.FilesMax {
		b.say(space.Problem{Code: space.TooMany, File: IndexName, Detail: fmt.Sprintf("the space has %d files, at most %d", len(b.m.Files), space.FilesMax)})
	}
	m, problems := space.Parse(b.m.Bytes())
	built := Built{Warnings: b.warnings, sources: b.sources}
	switch {
	case len(b.problems) > 0:
		built.Rest = m
	case m == nil:
		b.problems = place(b.sources, problems)
	default:
		b.countNeeds(m)
		built.Manifest, built.Files, built.Warnings = m, b.contents, b.warnings
	}
	built.Problems, built.Warnings = space.SortProblems(b.problems), space.SortProblems(built.Warnings)
	return built
}

// countNeeds warns of a space with so many needs that no session can adopt it
// if they are not met.
func (b *builder) countNeeds(m *space.Manifest) {
	needs := slices.DeleteFunc(m.AllNeeds(), func(need string) bool { return strings.HasSuffix(need, "?") })
	if len(needs) > space.LacksMax {
		b.warnings = append(b.warnings, space.Problem{Code: space.TooMany, Path: "needs", Detail: fmt.Sprintf(
			"the space has %d different needs: a sync fails where more than %d of them are not met", len(needs), space.LacksMax)})
	}
}

// takes reports whether a part of the space is read from the files.
func (b *builder) takes(part string) bool {
	return len(b.o.Only) == 0 || slices.Contains(b.o.Only, part)
}

// merge takes the parts that are not read from the known manifest.
func (b *builder) merge() {
	if len(b.o.Only) == 0 {
		return
	}
	known := space.Manifest{V: 1, Kind: b.m.Kind, Space: b.m.Space}
	if b.o.Known != nil {
		if copied, problems := space.Parse(b.o.Known.Bytes()); problems == nil {
			known = *copied
		}
	}
	indices := make([]int, len(known.Files))
	for i := range indices {
		indices[i] = -1
	}
	move := func(i int) int {
		if indices[i] < 0 {
			indices[i] = b.addKnown(known.Files[i])
		}
		return indices[i]
	}
	fresh, defaults := b.m, space.Defaults{}
	if known.Defaults != nil {
		defaults = *known.Defaults
	}
	if fresh.Defaults == nil {
		fresh.Defaults = &space.Defaults{}
	}
	if b.takes(PartPrompts) {
		known.Prompts, defaults.PromptPack = nil, fresh.Defaults.PromptPack
	}
	if b.takes(PartTools) {
		known.Catalogs, known.Words, known.Tools, known.Needs = fresh.Catalogs, fresh.Words, fresh.Tools, fresh.Needs
		defaults.ToolCatalog = fresh.Defaults.ToolCatalog
	}
	if b.takes(PartContext) {
		known.Context = nil
	}
	if b.takes(PartSkills) {
		known.Skills, known.LeftOut = nil, fresh.LeftOut
	}
	eachIndex(&known, move)
	known.Prompts = append(known.Prompts, fresh.Prompts...)
	known.Context = append(known.Context, fresh.Context...)
	known.Skills = append(known.Skills, fresh.Skills...)
	known.Files = b.m.Files
	known.Defaults = nil
	if defaults != (space.Defaults{}) {
		known.Defaults = &defaults
	}
	b.m = known
}

// addKnown adds a file of the known manifest.
func (b *builder) addKnown(f space.File) int {
	if i, ok := b.at[f.Path]; ok {
		if b.m.Files[i] != f {
			b.say(space.Problem{Code: space.Duplicate, File: f.Path, Detail: "the file has changed, and parts that are not synced use it too: sync them as well"})
		}
		return i
	}
	return b.add(f)
}

func (b *builder) add(f space.File) int {
	b.at[f.Path] = len(b.m.Files)
	b.m.Files = append(b.m.Files, f)
	return b.at[f.Path]
}

// eachIndex replaces every index of a file.
func eachIndex(m *space.Manifest, replace func(int) int) {
	for i := range m.Prompts {
		for j := range m.Prompts[i].Parts {
			if part := &m.Prompts[i].Parts[j]; part.File != nil {
				index := replace(*part.File)
				part.File = &index
			}
		}
	}
	for i := range m.Context {
		for j, index := range m.Context[i].Files {
			m.Context[i].Files[j] = replace(index)
		}
	}
	for i := range m.Skills {
		s := &m.Skills[i]
		s.Body = replace(s.Body)
		for j, index := range s.Files {
			s.Files[j] = replace(index)
		}
	}
}

// arrange sorts the manifest's lists.
func (b *builder) arrange() {
	m := &b.m
	files := slices.Clone(m.Files)
	slices.SortFunc(m.Files, func(a, b space.File) int { return cmp.Compare(a.Path, b.Path) })
	place := make(map[string]int, len(files))
	for i, f := range m.Files {
		place[f.Path] = i
	}
	eachIndex(m, func(i int) int { return place[files[i].Path] })
	for i := range m.Context {
		slices.Sort(m.Context[i].Files)
		m.Context[i].Files = slices.Compact(m.Context[i].Files)
	}
	for i := range m.Skills {
		slices.Sort(m.Skills[i].Files)
	}
	slices.SortFunc(m.Prompts, func(a, b space.Prompt) int { return cmp.Compare(a.PromptPack, b.PromptPack) })
	slices.SortFunc(m.Catalogs, func(a, b space.Catalog) int { return cmp.Compare(a.ToolCatalog, b.ToolCatalog) })
	slices.SortFunc(m.Context, func(a, b space.Group) int { return cmp.Compare(a.Group, b.Group) })
	slices.SortFunc(m.LeftOut, func(a, b space.LeftOut) int { return cmp.Compare(a.File, b.File) })
	slices.SortFunc(m.Skills, func(a, b space.Skill) int { return cmp.Compare(a.Skill, b.Skill) })
	b.arrangeSources()
}

// arrangeSources replaces the ids in the paths of sources by positions.
func (b *builder) arrangeSources() {
	m, of := &b.m, b.sources
	b.sources = map[string]location{}
	take := func(list string, i int, id string) {
		for _, rest := range []string{"", ".params", ".response_format", ".tool_choice", ".args_schema"} {
			if at, ok := of[list+"."+id+rest]; ok {
				b.sources[index(list, i)+rest] = at
			}
		}
	}
	for i := range m.Files {
		b.sources[index("files", i)] = location{file: m.Files[i].Path}
	}
	for i := range m.Prompts {
		take("prompts", i, m.Prompts[i].PromptPack)
	}
	for i := range m.Catalogs {
		id := m.Catalogs[i].ToolCatalog
		take("catalogs", i, id)
		for j := range m.Catalogs[i].Tools {
			if at, ok := of[index("catalogs."+id+".tools", j)]; ok {
				b.sources[index(index("catalogs", i)+".tools", j)] = at
			}
		}
	}
	for i := range m.Words {
		take("words", i, wordID(&m.Words[i]))
	}
	for i := range m.Tools {
		take("tools", i, m.Tools[i].ToolID)
	}
	for i := range m.Context {
		take("context", i, m.Context[i].Group)
	}
	for i := range m.Skills {
		b.sources[index("skills", i)] = location{file: m.SkillPath(&m.Skills[i]), line: 1}
	}
	for _, top := range []string{"defaults", "needs", "version", "name"} {
		if at, ok := of[top]; ok {
			b.sources[top] = at
		}
	}
}

// wordID is the key of a word in sources: all of its content.
func wordID(w *space.Word) string { return w.Tool + " " + w.Description + " " + string(w.ArgsSchema) }

func clip(s string, max int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= max {
		return s
	}
	return strings.ToValidUTF8(s[:max-len("...")], "") + "..."
}
