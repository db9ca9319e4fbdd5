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

// Manifest describes a space except for the content of its files. Lists are
// sorted by name or path, except for Parts and the Tools of a catalog. Field
// names are the wire's, in the byte order of the encoding.
type Manifest struct {
	Catalogs    []Catalog          `msgpack:"catalogs,omitempty"` // workspace only
	Category    string             `msgpack:"category,omitempty"`
	Context     []Group            `msgpack:"context,omitempty"`
	Defaults    *Defaults          `msgpack:"defaults,omitempty"` // workspace only
	Description string             `msgpack:"description,omitempty"`
	DisplayName string             `msgpack:"display_name,omitempty"`
	Files       []File             `msgpack:"files,omitempty"` // every file that other fields name by index
	Kind        Kind               `msgpack:"kind"`
	LeftOut     []LeftOut          `msgpack:"left_out,omitempty"` // faulty skills that a glob found
	Needs       []string           `msgpack:"needs,omitempty"`    // pack only: needs of the whole pack
	Prompts     []Prompt           `msgpack:"prompts,omitempty"`
	Scanned     bool               `msgpack:"scanned,omitempty"` // there was no index
	Skills      []Skill            `msgpack:"skills,omitempty"`
	Space       string             `msgpack:"space"`
	Tools       []planner.ToolSpec `msgpack:"tools,omitempty"` // pack only
	V           int                `msgpack:"v"`
	Version     string             `msgpack:"version,omitempty"`
	Words       []Word             `msgpack:"words,omitempty"` // workspace only

	compiled *planner.LayerTools // of Tools, by Parse
	weight   int                 // in bytes of memory, by Parse
}

// LayerTools returns the compiled tools of a pack that Parse accepted, or nil
// for a space without tools.
func (m *Manifest) LayerTools() *planner.LayerTools { return m.compiled }

// File is one file of a space. Its content is the blob that Ref names.
type File struct {
	MediaType string    `msgpack:"media_type"`
	Path      string    `msgpack:"path"`
	Ref       codec.Ref `msgpack:"ref"`
	Size      int64     `msgpack:"size"`
}

// Prompt is a prompt pack.
type Prompt struct {
	Params         codec.Raw `msgpack:"params,omitempty"` // defaults for the run's config
	Parts          []Part    `msgpack:"parts"`
	PromptPack     string    `msgpack:"prompt_pack"`
	ResponseFormat codec.Raw `msgpack:"response_format,omitempty"` // likewise
}

// Part is one part of a prompt pack: system text (File alone), a message (Role
// and File), the files of a group (Context), or the skill index (Skills).
type Part struct {
	Context string      `msgpack:"context,omitempty"` // a group's name
	File    *int        `msgpack:"file,omitempty"`    // index in Files
	Role    string      `msgpack:"role,omitempty"`    // user or assistant
	Skills  bool        `msgpack:"skills,omitempty"`
	Vars    codec.Pairs `msgpack:"vars,omitempty"` // a variable's name to how often File uses it
}

// Catalog is a list of tools to offer.
type Catalog struct {
	ToolCatalog string      `msgpack:"tool_catalog"`
	ToolChoice  string      `msgpack:"tool_choice,omitempty"` // default for the run's config
	Tools       []codec.Raw `msgpack:"tools"`                 // see Entries; an empty list offers no tool
}

// Entry is one tool of a catalog.
type Entry struct {
	Tool string `msgpack:"tool"` // tool_id or tool_name
	Word *int   `msgpack:"word"` // index in Words; nil: the tool's own description
}

// Word is another description of a tool. It never changes the tool's name.
type Word struct {
	ArgsSchema  codec.Raw `msgpack:"args_schema,omitempty"`
	Description string    `msgpack:"description,omitempty"`
	Tool        string    `msgpack:"tool"` // tool_id or tool_name
}

// Group is context files under one name.
type Group struct {
	Files []int  `msgpack:"files"` // indices in Files, ascending
	Group string `msgpack:"group"`
}

// Skill is a text that a model loads on demand, with its resources.
type Skill struct {
	AllowedTools []string    `msgpack:"allowed_tools,omitempty"` // nil restricts nothing; empty allows nothing
	Body         int         `msgpack:"body"`                    // index in Files
	Description  string      `msgpack:"description"`
	Files        []int       `msgpack:"files,omitempty"`  // indices in Files, ascending
	Hidden       bool        `msgpack:"hidden,omitempty"` // disable-model-invocation
	Info         codec.Pairs `msgpack:"info,omitempty"`   // name to text, for people
	Needs        []string    `msgpack:"needs,omitempty"`
	Skill        string      `msgpack:"skill"`
}

// LeftOut is a faulty skill, and what is wrong with it.
type LeftOut struct {
	Code ProblemCode `msgpack:"code"`
	File string      `msgpack:"file"`
}

// Problem returns l as a warning.
func (l LeftOut) Problem() Problem {
	return Problem{Code: l.Code, File: l.File, Detail: "this skill is faulty and was left out: refold space check tells what is wrong"}
}

// Defaults says which prompt pack and catalog apply if an apply chooses none.
type Defaults struct {
	PromptPack  string `msgpack:"prompt_pack,omitempty"`
	ToolCatalog string `msgpack:"tool_catalog,omitempty"`
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
