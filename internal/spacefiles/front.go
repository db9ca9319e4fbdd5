package spacefiles

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/refold/refold/space"
)

// byteOrderMark begins the files of some editors.
const byteOrderMark = "\ufeff"

// cutFrontmatter splits a text into the part between the --- lines and the part
// after them. line is 1 if the second --- is missing.
func cutFrontmatter(text string) (front, body string, line int, ok bool) {
	first, rest, more := strings.Cut(text, "\n")
	if strings.TrimRight(first, " \t\r") != "---" || !more {
		return "", "", 0, false
	}
	at := 0
	for at < len(rest) {
		end := cmp.Or(strings.IndexByte(rest[at:], '\n')+1, len(rest)-at)
		if strings.TrimRight(rest[at:at+end], " \t\r\n") == "---" {
			return rest[:at], rest[at+end:], 1, true
		}
		at += end
	}
	return "", "", 1, false
}

// frontEntry is a key at the beginning of a line, with what follows it.
var frontEntry = regexp.MustCompile(`(?m)^([A-Za-z0-9_.-]+)[ \t]*:(?:[ \t]|\r?$)`)

// keptKeys are read of a frontmatter that is too long: what a skill is, and who may
// use it and how.
var keptKeys = []string{"name", "description", "allowed-tools", "disable-model-invocation"}

// shortened returns a frontmatter of a size that is read: of one that is too long
// only keptKeys, with a warning.
func (d document) shortened(front string) string {
	if len(front) <= space.FrontmatterBytesMax {
		return front
	}
	d.warn(&node{line: 1}, space.TooLarge, "", "the frontmatter has %d bytes, at most %d: only %s are read", len(front), space.FrontmatterBytesMax, strings.Join(keptKeys, ", "))
	var kept strings.Builder
	left := slices.Clone(keptKeys)
	starts := frontEntry.FindAllStringSubmatchIndex(front, -1)
	for i, at := range starts {
		end := len(front)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		if key := slices.Index(left, front[at[2]:at[3]]); key >= 0 {
			left = slices.Delete(left, key, key+1)
			kept.WriteString(strings.TrimRight(clip(front[at[0]:end], space.FrontmatterBytesMax/len(keptKeys)-1), "\n") + "\n")
		}
	}
	return kept.String()
}

// parseFront reads a frontmatter. If it is no YAML, its entries are read one by
// one: what is no YAML then is text, as other products read it, with a warning. It
// returns nil after a problem: of the name, or if nothing can be read.
func (d document) parseFront(front string) *node {
	var whole []space.Problem
	n := parseYAML(front, frontLine, space.BadFrontmatter, func(p space.Problem) { whole = append(whole, p) })
	if n != nil {
		return n
	}
	refuse := func(problems []space.Problem) *node {
		for _, p := range problems {
			p.File = d.file
			d.b.say(p)
		}
		return nil
	}
	starts := frontEntry.FindAllStringSubmatchIndex(front, -1)
	if len(starts) == 0 {
		return refuse(whole)
	}
	all := &node{kind: kindObject, line: frontLine}
	for i, at := range starts {
		end := len(front)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		key, line := front[at[2]:at[3]], frontLine+strings.Count(front[:at[0]], "\n")
		var problems []space.Problem
		entry := parseYAML(front[at[0]:end], line, space.BadFrontmatter, func(p space.Problem) { problems = append(problems, p) })
		twice := all.get(key) != nil
		switch {
		case key == "name" && (entry == nil || twice):
			return refuse(whole)
		case twice:
			d.warn(&node{line: line}, space.Duplicate, key, "stands twice; the first one is read")
			continue
		case entry == nil || len(entry.members) != 1:
			text := strings.Join(strings.Fields(front[at[1]:end]), " ")
			entry = &node{members: []member{{name: key, line: line, value: &node{kind: kindText, line: line, text: text}}}}
			d.warn(&node{line: line}, space.BadFrontmatter, key, "is no YAML, and read as text: put it in quotes")
		}
		all.members = append(all.members, entry.members...)
	}
	return all
}

// frontLine is the line in which a frontmatter begins.
const frontLine = 2

// warn reports what is not read, and costs nothing else.
func (d document) warn(n *node, code space.ProblemCode, path, format string, args ...any) {
	p := d.at(n, clip(path, space.ProblemPathBytesMax)).problem(code, format, args...)
	p.Detail = clip(p.Detail, space.DetailBytesMax)
	d.b.warnings = append(d.b.warnings, p)
}

// scalar returns the text of a member that should be one. Other values are not
// read, with a warning.
func (d document) scalar(n *node, name string) string {
	m := n.get(name)
	switch {
	case m == nil:
		return ""
	case m.kind == kindText, m.kind == kindNumber, m.kind == kindBool:
		return m.text
	}
	d.warn(m, space.WrongType, name, "is %s, and is not read: %s is expected", m.kind, kindText)
	return ""
}

// isTrue reports whether a value means true, also as text.
func isTrue(m *node) bool {
	return slices.Contains([]string{"true", "yes", "on"}, strings.ToLower(strings.TrimSpace(m.text)))
}

// shownList returns a list of texts and numbers as it is written: other products
// show [file] as a hint.
func shownList(n *node) (text string, ok bool) {
	var items []string
	for _, item := range n.items {
		if item.kind == kindList || item.kind == kindObject || item.kind == kindNull {
			return "", false
		}
		items = append(items, item.text)
	}
	return "[" + strings.Join(items, ", ") + "]", true
}
