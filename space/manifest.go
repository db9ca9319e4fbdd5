package space

import (
	"slices"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// Kind says whether a space may contain tools.
type Kind string

const (
	Workspace Kind = "workspace" // no tools
	Pack      Kind = "pack"      // tools, with bindings
)

// None, in a run's config, switches a prompt pack or a catalog off. So nothing
// may have it as its name.
const None = "none"

// Default is the prompt pack and the catalog that apply if none is chosen.
const Default = "default"

// Manifest is all of a space except the content of its files: canonical msgpack of at
// most 512 KiB, stored as a blob. Its SHA-256 names the content of the space.
//
// Lists are sorted by name or path, except for Parts and the Tools of a catalog. Field
// names are the wire's, in the byte order of the encoding.
type Manifest struct {
	// Lists of tools, by name.
	Catalogs []Catalog `msgpack:"catalogs,omitempty" lim:"..CatalogsMax"`
	// For people.
	Category string `msgpack:"category,omitempty" lim:"..CategoryBytesMax"`
	// Groups of files that a prompt or a tool shows, by name.
	Context []Group `msgpack:"context,omitempty" lim:"..GroupsMax"`
	// What runs have that choose none. Absent: those named default.
	Defaults *Defaults `msgpack:"defaults,omitempty"`
	// For people.
	Description string `msgpack:"description,omitempty" lim:"..DescriptionBytesMax"`
	// For people.
	DisplayName string `msgpack:"display_name,omitempty" lim:"..DisplayNameBytesMax"`
	// Every file that anything else names, by path. Together they have at most 64 MiB.
	Files []File `msgpack:"files,omitempty" lim:"..FilesMax"`
	// A pack has no `catalogs`, `words` and `defaults`, a workspace no `tools`.
	Kind Kind `msgpack:"kind"`
	// Faulty skills that a glob of the index found, by file. They don't count as skills.
	LeftOut []LeftOut `msgpack:"left_out,omitempty" lim:"..LeftOutMax"`
	// Of a pack: what it needs where it runs. secret:NAME, env:NAME, bin:a|b,
	// os:linux|darwin; with ? at the end if optional.
	Needs []string `msgpack:"needs,omitempty" lim:"..NeedsMax,item=..NeedBytesMax"`
	// Prompt packs, by name.
	Prompts []Prompt `msgpack:"prompts,omitempty" lim:"..PromptsMax"`
	// The space has no index file; false if absent.
	Scanned bool `msgpack:"scanned,omitempty"`
	// Reserved: kept, and shown to nobody.
	Skills []Skill `msgpack:"skills,omitempty" lim:"..SkillsMax"`
	// Its name.
	Space string `msgpack:"space" lim:"@space"`
	// Of a pack: at most 256 ToolSpecs; of a catalog: its entries.
	Tools []planner.ToolSpec `msgpack:"tools,omitempty" lim:"..ToolsMax"`
	// Version of the format.
	V int `msgpack:"v" lim:"=1"`
	// `MAJOR.MINOR.PATCH`, with or without a pre-release; required for a pack.
	Version string `msgpack:"version,omitempty" lim:"..VersionBytesMax"`
	// Other words for tools.
	Words []Word `msgpack:"words,omitempty" lim:"..WordsMax"`

	compiled *planner.LayerTools // of Tools, by Parse
	weight   int                 // in bytes of memory, by Parse
}

// LayerTools returns the compiled tools of a pack that Parse accepted, or nil
// for a space without tools.
func (m *Manifest) LayerTools() *planner.LayerTools { return m.compiled }

// File is one file of a space. Its content is the blob that Ref names.
type File struct {
	// Its type.
	MediaType string `msgpack:"media_type" lim:"..MediaTypeBytesMax"`
	// Path below the root.
	Path string `msgpack:"path" lim:"1..PathBytesMax"`
	// Its content.
	Ref codec.Ref `msgpack:"ref"`
	// Size in bytes.
	Size int64 `msgpack:"size" lim:"0..FileBytesMax"`
}

// Prompt is a prompt pack.
type Prompt struct {
	// Parameters, if the run's config has none; at most 32 KiB, encoded.
	Params codec.Raw `msgpack:"params,omitempty" lim:"object"`
	// What is shown, in order.
	Parts []Part `msgpack:"parts" lim:"..PartsMax"`
	// Its name.
	PromptPack string `msgpack:"prompt_pack" lim:"@id"`
	// As in a RunConfig, if the run's config has none; at most 16 KiB, encoded.
	ResponseFormat codec.Raw `msgpack:"response_format,omitempty" lim:"object"`
}

// Part is one part of a prompt pack: system text (File alone), a message (Role
// and File), the files of a group (Context), or the skill index (Skills).
type Part struct {
	// Shows the files of this group.
	Context string `msgpack:"context,omitempty" lim:"@id"`
	// Shows this file.
	File *int `msgpack:"file,omitempty" lim:"0..FilesMax-1"`
	// Role of a message; absent: system text.
	Role string `msgpack:"role,omitempty" lim:"enum=Role"`
	// Puts the index of skills here instead of at the end.
	Skills bool `msgpack:"skills,omitempty"`
	// A variable's name to how often the file uses it.
	Vars codec.Pairs `msgpack:"vars,omitempty" lim:"..VarsMax,value=int,value=1.."`
}

// Catalog is a list of tools to offer.
//
//wire:rule {"properties": {"tools": {"items": {"anyOf": [{"$ref": "parts/Names.json#/$defs/tool"}, {"type": "object", "properties": {"tool": {"$ref": "parts/Names.json#/$defs/tool", "description": "The tool."}, "word": {"type": "integer", "minimum": 0, "maximum": 511, "description": "Index in words."}}, "required": ["tool", "word"], "additionalProperties": false}]}}}}
type Catalog struct {
	// Its name.
	ToolCatalog string `msgpack:"tool_catalog" lim:"@id"`
	// Applies if the run's config has none: auto, none, required, or a tool.
	ToolChoice string `msgpack:"tool_choice,omitempty" lim:"@tool"`
	// The tools to offer, in order: by either name, or with other words. An empty list
	// offers no tool.
	Tools []codec.Raw `msgpack:"tools" lim:"..EntriesMax"`
}

// Entry is one tool of a catalog.
type Entry struct {
	Tool string `msgpack:"tool"` // tool_id or tool_name
	Word *int   `msgpack:"word"` // index in Words; nil: the tool's own description
}

// Word is another description of a tool. It never changes the tool's name.
type Word struct {
	// Checked in addition to the tool's own; at most 64 KiB.
	ArgsSchema codec.Raw `msgpack:"args_schema,omitempty" lim:"object"`
	// Replaces the tool's own description.
	Description string `msgpack:"description,omitempty" lim:"..WordDescriptionBytesMax"`
	// The tool that gets these words.
	Tool string `msgpack:"tool" lim:"@tool"`
}

// Group is context files under one name.
type Group struct {
	// Every file that the fields below refer to by index: `path`, `ref` (a blob), `size`,
	// `media_type`.
	Files []int `msgpack:"files" lim:"..FilesMax,item=0..FilesMax-1"`
	// Its name.
	Group string `msgpack:"group" lim:"@id"`
}

// Skill is a text that a model loads on demand, with its resources.
type Skill struct {
	// Tools that the skill allows. Absent: no restriction.
	AllowedTools []string `msgpack:"allowed_tools,omitempty" lim:"..SkillNamesMax,item=..planner.ToolIDBytesMax"`
	// Index of its text in files.
	Body int `msgpack:"body" lim:"0..FilesMax-1"`
	// What it is for, at most 1,024 characters.
	Description string `msgpack:"description" lim:"any"`
	// Every file that the fields below refer to by index: `path`, `ref` (a blob), `size`,
	// `media_type`.
	Files []int `msgpack:"files,omitempty" lim:"..SkillFilesMax,item=0..FilesMax-1"`
	// Models do not see the skill; false if absent.
	Hidden bool `msgpack:"hidden,omitempty"`
	// For people.
	Info codec.Pairs `msgpack:"info,omitempty" lim:"..64,value=any"`
	// What it needs where it runs: secret:NAME, env:NAME, bin:a|b, os:linux|darwin; with ?
	// at the end if optional.
	Needs []string `msgpack:"needs,omitempty" lim:"..NeedsMax,item=..NeedBytesMax"`
	Skill string   `msgpack:"skill" lim:"@skill"`
}

// LeftOut is a faulty skill, and what is wrong with it.
type LeftOut struct {
	// Code of the first problem.
	Code ProblemCode `msgpack:"code" lim:"any"`
	// The SKILL.md.
	File string `msgpack:"file" lim:"..PathBytesMax"`
}

// Problem returns l as a warning.
func (l LeftOut) Problem() Problem {
	return Problem{Code: l.Code, File: l.File, Detail: "this skill is faulty and was left out: refold space check tells what is wrong"}
}

// Defaults says which prompt pack and catalog apply if an apply chooses none.
type Defaults struct {
	// Prompt pack of runs that choose none.
	PromptPack string `msgpack:"prompt_pack,omitempty" lim:"@id"`
	// Catalog of runs that choose none.
	ToolCatalog string `msgpack:"tool_catalog,omitempty" lim:"@id"`
}

// Bytes returns the canonical encoding. It is nil if a text is not UTF-8, a Raw
// is not canonical, or the whole is larger than a value may be. Parse refuses
// nil like every other manifest that does not decode.
func (m *Manifest) Bytes() []byte {
	data, err := codec.Marshal(m)
	if err != nil {
		return nil
	}
	return data
}

// Hash returns the SHA-256 of Bytes: the name of the space's content.
func (m *Manifest) Hash() codec.Hash { return codec.Sum(m.Bytes()) }

// Prompt returns a prompt pack by name, or nil.
func (m *Manifest) Prompt(name string) *Prompt {
	return find(m.Prompts, func(p Prompt) bool { return p.PromptPack == name })
}

// Catalog returns a catalog by name, or nil.
func (m *Manifest) Catalog(name string) *Catalog {
	return find(m.Catalogs, func(c Catalog) bool { return c.ToolCatalog == name })
}

// Group returns a context group by name, or nil.
func (m *Manifest) Group(name string) *Group {
	return find(m.Context, func(g Group) bool { return g.Group == name })
}

func find[T any](list []T, is func(T) bool) *T {
	if i := slices.IndexFunc(list, is); i >= 0 {
		return &list[i]
	}
	return nil
}

// Entries returns the tools of a catalog. ok is false if one of them is neither
// a text nor an object of tool and word, which Parse does not accept.
func (c *Catalog) Entries() (entries []Entry, ok bool) {
	entries = make([]Entry, len(c.Tools))
	for i, raw := range c.Tools {
		if entries[i], ok = parseEntry(raw); !ok {
			return nil, false
		}
	}
	return entries, true
}

// parseEntry reads one entry: a text, or {tool, word}.
func parseEntry(raw codec.Raw) (e Entry, ok bool) {
	if !codec.IsMap(raw) {
		err := codec.Unmarshal(raw, &e.Tool)
		return e, err == nil
	}
	err := codec.Unmarshal(raw, &e)
	return e, err == nil && e.Word != nil
}

// Raw returns the entry as it stands in a catalog. Tool must be UTF-8.
func (e Entry) Raw() codec.Raw {
	var v any = e
	if e.Word == nil {
		v = e.Tool
	}
	raw, err := codec.Marshal(v)
	if err != nil {
		return nil
	}
	return raw
}

// IsMedia reports whether the file can be shown to a model as an image or a PDF.
func (f *File) IsMedia() bool {
	switch f.MediaType {
	case "image/png", "image/jpeg", "image/gif", "image/webp", "image/heic", "image/heif", "application/pdf":
		return true
	}
	return false
}

// IsText reports whether the file is text.
func (f *File) IsText() bool {
	return len(f.MediaType) > len("text/") && f.MediaType[:len("text/")] == "text/"
}

// Texts returns the indices of the files whose text models are shown: of the
// prompts, in their order, then of the skills.
func (m *Manifest) Texts() (files []int) {
	add := func(all ...int) {
		for _, i := range all {
			if !slices.Contains(files, i) {
				files = append(files, i)
			}
		}
	}
	for i := range m.Prompts {
		for _, part := range m.Prompts[i].Parts {
			if part.File != nil {
				add(*part.File)
			}
			if g := m.Group(part.Context); g != nil {
				add(g.Files...)
			}
		}
	}
	for i := range m.Skills {
		add(m.Skills[i].Body)
	}
	return files
}

// AllNeeds returns the needs of the whole pack, its tools and the skills, each
// once, in order.
func (m *Manifest) AllNeeds() []string {
	needs := slices.Clone(m.Needs)
	for i := range m.Tools {
		needs = append(needs, m.Tools[i].Needs...)
	}
	for i := range m.Skills {
		needs = append(needs, m.Skills[i].Needs...)
	}
	slices.Sort(needs)
	return slices.Compact(needs)
}
