package scenario

import (
	"fmt"
	"strings"
)

// File is a parsed scenario: steps with prose between them.
type File struct {
	Steps []Step
	tail  []string // lines after the last step
}

// Step is one action and the picture that it must produce.
type Step struct {
	Prose []string // lines before it, comments and blank ones, unchanged
	Line  int      // of Input, from 1
	Input string   // one line or several
	Want  string   // the lines under ----, each with its line end
}

// separator is the line between a step's input and its expected picture.
const separator = "----"

// Parse parses a scenario. A step is its input, the separator, and the expected
// lines up to the next blank line.
func Parse(text string) (*File, error) {
	f := &File{}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	var prose []string
	for i := 0; i < len(lines); {
		if lines[i] == "" || strings.HasPrefix(lines[i], "#") {
			prose = append(prose, lines[i])
			i++
			continue
		}
		step := Step{Prose: prose, Line: i + 1}
		prose = nil
		var input, want []string
		for i < len(lines) && lines[i] != separator {
			if lines[i] == "" {
				return nil, fmt.Errorf("scenario: line %d: the step of line %d has no %s", i+1, step.Line, separator)
			}
			input = append(input, lines[i])
			i++
		}
		if i == len(lines) {
			return nil, fmt.Errorf("scenario: the step of line %d has no %s", step.Line, separator)
		}
		for i++; i < len(lines) && lines[i] != ""; i++ {
			want = append(want, lines[i]+"\n")
		}
		step.Input, step.Want = strings.Join(input, "\n"), strings.Join(want, "")
		f.Steps = append(f.Steps, step)
	}
	f.tail = prose
	return f, nil
}

// Format writes the scenario in the form that Parse reads.
func (f *File) Format() string {
	var b strings.Builder
	for _, s := range f.Steps {
		for _, line := range s.Prose {
			b.WriteString(line + "\n")
		}
		b.WriteString(s.Input + "\n" + separator + "\n" + s.Want)
	}
	for _, line := range f.tail {
		b.WriteString(line + "\n")
	}
	return b.String()
}
