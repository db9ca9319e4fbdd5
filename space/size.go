package space

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
)

// CompareWords orders rewordings by tool, description and args_schema.
func CompareWords(a, b *Word) int {
	return cmp.Or(cmp.Compare(a.Tool, b.Tool), cmp.Compare(a.Description, b.Description), bytes.Compare(a.ArgsSchema, b.ArgsSchema))
}

// Size is an upper bound of what a prompt adds before a transcript.
type Size struct {
	Bytes      int64    // of text, with the longest values of its variables
	Parts      int      // entries of the generation's list: a group has one for each file
	Images     int      // of Parts
	Skills     int      // of Parts: skill indices
	ImageBytes int64    // of all images
	Vars       []string // variables, by name
}

// documentBytes is the size of the text around a document, without its path.
const documentBytes = int64(len("<document path=\"\">\n\n</document>\n\n"))

// SizeOf returns the size of a prompt pack of m. A file of a context group that
// is neither text nor image is not shown and counts nothing; the skill index
// counts its limit. Parse must have accepted m, except for sizes.
func (m *Manifest) SizeOf(p *Prompt) Size {
	var s Size
	for i := range p.Parts {
		part := &p.Parts[i]
		switch {
		case part.File != nil:
			s.Parts++
			s.Bytes += m.Files[*part.File].Size + int64(len("\n\n"))
			uses, _ := part.Uses()
			for _, u := range uses {
				s.Bytes += int64(u.Times) * int64(longest(u.Name))
				s.addVar(u.Name)
			}
		case part.Skills:
			s.Parts++
			s.Skills++
			s.Bytes += SkillIndexBytesMax
		case part.Context != "":
			s.addGroup(m, m.Group(part.Context))
		}
	}
	return s
}

func (s *Size) addGroup(m *Manifest, g *Group) {
	for _, i := range g.Files {
		if i < 0 || i >= len(m.Files) {
			continue // Parse has reported it
		}
		switch f := &m.Files[i]; {
		case f.IsMedia():
			s.Parts++
			s.Images++
			s.ImageBytes += f.Size
		case f.IsText():
			s.Parts++
			s.Bytes += f.Size + int64(len(f.Path)) + documentBytes
		}
	}
}

func (s *Size) addVar(name string) {
	if i, found := slices.BinarySearch(s.Vars, name); !found {
		s.Vars = slices.Insert(s.Vars, i, name)
	}
}

// Add returns the size of two prompts that are shown together.
func (s Size) Add(other Size) Size {
	s.Bytes += other.Bytes
	s.Parts += other.Parts
	s.Images += other.Images
	s.Skills += other.Skills
	s.ImageBytes += other.ImageBytes
	s.Vars = slices.Clone(s.Vars)
	for _, name := range other.Vars {
		s.addVar(name)
	}
	return s
}

// Over says which limit of the content before a transcript is exceeded, or "".
// A step's system text counts SystemBytes, whatever its length.
func (s Size) Over() string {
	_, detail := s.over()
	return detail
}

func (s Size) over() (ProblemCode, string) {
	switch {
	case s.Bytes+SystemBytes > ShownBytesMax:
		return TooLarge, fmt.Sprintf("up to %d bytes would be shown before the transcript, with %d for the system text; at most %d", s.Bytes+SystemBytes, SystemBytes, ShownBytesMax)
	case s.Parts > PartsMax:
		return TooMany, fmt.Sprintf("%d parts would be shown before the transcript, at most %d: each file of a context group is one", s.Parts, PartsMax)
	case s.Images > ImagesMax:
		return TooMany, fmt.Sprintf("%d images would be shown, at most %d", s.Images, ImagesMax)
	case s.ImageBytes > ImagesBytesMax:
		return TooLarge, fmt.Sprintf("images of %d bytes would be shown, at most %d", s.ImageBytes, ImagesBytesMax)
	case len(s.Vars) > VarsMax:
		return TooMany, fmt.Sprintf("%d variables, at most %d", len(s.Vars), VarsMax)
	}
	return "", ""
}
