package space

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Problem is one fault of a space.
type Problem struct {
	// The kind of fault. The last four are warnings, and unknown_tool is one under
	// policy.coverage warn.
	Code ProblemCode `json:"code" msgpack:"code"`
	// For people.
	Detail string `json:"detail" msgpack:"detail" lim:"..session.DetailBytesMax"`
	// Path of the file below the root of the space.
	File string `json:"file,omitempty" msgpack:"file,omitempty" lim:"..PathBytesMax"`
	// Line in the file, from 1; absent: the whole file.
	Line int `json:"line,omitempty" msgpack:"line,omitempty" lim:"0..session.NumberMax"`
	// Place inside the file or the manifest, such as prompts[0].parts[2].file.
	Path string `json:"path,omitempty" msgpack:"path,omitempty" lim:"..PathBytesMax"`
}

// ProblemCode says what kind of problem it is. The set is closed.
type ProblemCode string

// The codes of problems that make a space invalid. Under policy.coverage warn,
// UnknownTool is a warning.
const (
	MissingFile        ProblemCode = "missing_file"
	NotJSON            ProblemCode = "not_json"
	NotYAML            ProblemCode = "not_yaml"
	NotUTF8            ProblemCode = "not_utf8"
	BadFrontmatter     ProblemCode = "bad_frontmatter"
	UnknownField       ProblemCode = "unknown_field"
	MissingField       ProblemCode = "missing_field"
	WrongType          ProblemCode = "wrong_type"
	BadName            ProblemCode = "bad_name"
	NameMismatch       ProblemCode = "name_mismatch"
	Duplicate          ProblemCode = "duplicate"
	TooLarge           ProblemCode = "too_large"
	TooMany            ProblemCode = "too_many"
	PathEscapes        ProblemCode = "path_escapes"
	NotRegular         ProblemCode = "not_regular"
	UnknownVariable    ProblemCode = "unknown_variable"
	UnknownPart        ProblemCode = "unknown_part"
	UnknownTool        ProblemCode = "unknown_tool"
	BadSchema          ProblemCode = "bad_schema"
	WidensSchema       ProblemCode = "widens_schema"
	RenamesTool        ProblemCode = "renames_tool"
	ToolTaken          ProblemCode = "tool_taken"
	ToolNameTaken      ProblemCode = "tool_name_taken"
	SkillTaken         ProblemCode = "skill_taken"
	NotGranted         ProblemCode = "not_granted"
	BindingInWorkspace ProblemCode = "binding_in_workspace"
	SecretInFile       ProblemCode = "secret_in_file"
)

// The codes of warnings.
const (
	NoIndex            ProblemCode = "no_index"
	UnknownKey         ProblemCode = "unknown_key"
	AllowedToolUnknown ProblemCode = "allowed_tool_unknown"
	NameInUse          ProblemCode = "name_in_use"
)

var problemCodes = []ProblemCode{
	MissingFile, NotJSON, NotYAML, NotUTF8, BadFrontmatter, UnknownField,
	MissingField, WrongType, BadName, NameMismatch, Duplicate, TooLarge, TooMany,
	PathEscapes, NotRegular, UnknownVariable, UnknownPart, UnknownTool, BadSchema,
	WidensSchema, RenamesTool, ToolTaken, ToolNameTaken, SkillTaken, NotGranted,
	BindingInWorkspace, SecretInFile, NoIndex, UnknownKey, AllowedToolUnknown,
	NameInUse,
}

// TooManyNeeds is the problem of a space with more than LacksMax unmet needs.
func TooManyNeeds(needs []string) Problem {
	return Problem{Code: TooMany, Path: "needs", Detail: clip(
		strconv.Itoa(len(needs))+" different needs of the space are not met, at most "+strconv.Itoa(LacksMax)+" may be: provide some, or split the space; the first: "+strings.Join(needs[:3], ", "),
		DetailBytesMax)}
}

// Known reports whether c is one of the set.
func (c ProblemCode) Known() bool { return slices.Contains(problemCodes, c) }

// String returns "file:line: path: code: detail", without what is not known.
func (p Problem) String() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File)
		if p.Line > 0 {
			b.WriteByte(':')
			b.WriteString(strconv.Itoa(p.Line))
		}
		b.WriteString(": ")
	}
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	b.WriteString(string(p.Code))
	if p.Detail != "" {
		b.WriteString(": " + p.Detail)
	}
	return b.String()
}

// Compare orders problems by file, line, path, code and detail.
func Compare(a, b Problem) int {
	return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Path, b.Path),
		cmp.Compare(a.Code, b.Code), cmp.Compare(a.Detail, b.Detail))
}

// SortProblems sorts problems as Compare does, and drops duplicates. It changes
// its argument and returns it.
func SortProblems(problems []Problem) []Problem {
	slices.SortFunc(problems, Compare)
	return slices.Compact(problems)
}

// clip shortens s to at most max bytes of UTF-8. Invalid bytes are replaced.
func clip(s string, max int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= max {
		return s
	}
	end := max - len("...")
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "..."
}
