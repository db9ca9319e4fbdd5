package spacefiles

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/space"
)

// skillFile is the file that defines a skill.
const skillFile = "SKILL.md"

// readSkill reads one SKILL.md and lists the files of its folder. If the index
// names the file itself, the skill must have the name of its folder.
func (b *builder) readSkill(name string, at location, named bool) {
	content, ok := b.readFile(name, space.SkillBodyBytesMax+space.FrontmatterBytesMax)
	if !ok {
		_, _, _ = b.file(name, space.SkillBodyBytesMax+space.FrontmatterBytesMax, at) // reports the problem
		return
	}
	d := document{b, name}
	if !utf8.Valid(content) {
		d.say(&node{line: 1 + strings.Count(string(content[:invalidAt(content)]), "\n")}, space.NotUTF8, "", "the file is not UTF-8")
		return
	}
	s, body, ok := d.parseSkill(string(content), path.Base(path.Dir(name)), named)
	if !ok {
		return
	}
	if i := slices.IndexFunc(b.m.Skills, func(other space.Skill) bool { return other.Skill == s.Skill }); i >= 0 {
		d.say(&node{line: 1}, space.Duplicate, "name", "another folder has the skill %q, too", s.Skill)
		return
	}
	s.Body = b.keep(name+space.BodySuffix, []byte(body)) // a context group may have the whole file
	folder := path.Dir(name) + "/"
	for _, other := range b.list() {
		if !strings.HasPrefix(other, folder) || other == name {
			continue
		}
		if b.isFolder(other) {
			d.b.warnings = append(d.b.warnings, space.Problem{File: other, Code: space.NotRegular, Detail: clip(fmt.Sprintf(
				"it is a link to a folder, which is not followed: its files are not of the skill %s", s.Skill), space.DetailBytesMax)})
			continue
		}
		if len(s.Files) == space.SkillFilesMax {
			d.say(&node{line: 1}, space.TooMany, "", "the skill's folder has more than %d other files", space.SkillFilesMax)
			break
		}
		if i, _, ok := b.file(other, space.FileBytesMax, location{file: other}); ok {
			s.Files = append(s.Files, i)
		}
	}
	if len(b.m.Files) > space.FilesMax {
		d.say(&node{line: 1}, space.TooMany, "", "with the files of this skill, the space has more than %d", space.FilesMax)
		return
	}
	b.m.Skills = append(b.m.Skills, s)
}

func (d document) parseSkill(text, folder string, named bool) (s space.Skill, body string, ok bool) {
	front, body, line, ok := cutFrontmatter(strings.TrimPrefix(text, byteOrderMark))
	switch {
	case !ok && line > 0:
		d.say(&node{line: line}, space.BadFrontmatter, "", "the frontmatter has no end: write a line ---")
		return s, "", false
	case !ok:
		d.say(&node{line: 1}, space.BadFrontmatter, "", "there is no frontmatter: begin with a line ---, name and description, and a line ---")
		return s, "", false
	case len(body) > space.SkillBodyBytesMax:
		d.say(&node{line: 1}, space.TooLarge, "", "the text has %d bytes, at most %d: move parts into files of their own", len(body), space.SkillBodyBytesMax)
		return s, "", false
	}
	before := len(d.b.problems)
	n := d.parseFront(d.shortened(front))
	if n == nil || !d.is(n, "", kindObject) {
		return s, "", false
	}
	d.readFront(n, folder, body, named, &s)
	return s, body, len(d.b.problems) == before
}

// frontKeys are the keys of a frontmatter that are read.
var frontKeys = []string{"name", "description", "license", "compatibility", "metadata", "user-invocable", "argument-hint", "allowed-tools", "disable-model-invocation"}

func (d document) readFront(n *node, folder, body string, named bool, s *space.Skill) {
	for _, m := range n.members {
		if !slices.Contains(frontKeys, m.name) {
			d.b.warnings = append(d.b.warnings, d.at(&node{line: m.line}, clip(m.name, 64)).problem(space.UnknownKey, "is not read; known are %s", strings.Join(frontKeys, ", ")))
		}
	}
	s.Skill = folder
	if name := n.get("name"); name != nil && name.kind != kindNull {
		if name.kind == kindNumber || name.kind == kindBool {
			name = &node{kind: kindText, line: name.line, text: name.text}
		}
		s.Skill = cmp.Or(d.text(&node{members: []member{{name: "name", value: name}}}, "", "name"), folder)
	}
	switch name := n.get("name"); {
	case !space.IsSkillName(s.Skill) && !named && space.IsSkillName(folder):
		d.warn(name, space.BadName, "name", "%q is no name of a skill, and the folder's is used: 1 to %d of a-z0-9-, no hyphen at an end or doubled", clip(s.Skill, 64), space.TokenBytesMax)
		s.Skill = folder
	case !space.IsSkillName(s.Skill):
		d.say(cmp.Or(name, n), space.BadName, "name", "%q: a skill's name is 1 to %d of a-z0-9-, no hyphen at an end or doubled", clip(s.Skill, 64), space.TokenBytesMax)
	case s.Skill != folder && named:
		d.say(name, space.NameMismatch, "name", "is %q, and the folder is %q: rename one of them, they must be the same", s.Skill, clip(folder, 64))
	case s.Skill != folder:
		d.b.warnings = append(d.b.warnings, d.at(name, "name").problem(space.NameMismatch, "the skill is %q, and its folder is called %q", s.Skill, clip(folder, 64)))
	}
	s.Description = strings.TrimSpace(d.scalar(n, "description"))
	if s.Description == "" {
		s.Description = firstParagraph(body)
	}
	switch runes := []rune(s.Description); {
	case len(runes) == 0:
		d.say(cmp.Or(n.get("description"), n), space.TooLarge, "description", "has 0 characters: 1 to %d", space.SkillTextCharsMax)
	case len(runes) > space.SkillTextCharsMax:
		s.Description = string(runes[:space.SkillTextCharsMax-1]) + "…"
		d.warn(cmp.Or(n.get("description"), n), space.TooLarge, "description", "of the skill %s has %d characters, and models are shown %d of them: write a shorter one", clip(s.Skill, 64), len(runes), space.SkillTextCharsMax-1)
	}
	for _, name := range []string{"argument-hint", "compatibility", "license", "user-invocable"} {
		if m := n.get(name); m != nil {
			d.info(s, m, name, name)
		}
	}
	if m := n.get("disable-model-invocation"); m != nil {
		s.Hidden = isTrue(m)
		_ = d.scalar(n, "disable-model-invocation") // reports another value
	}
	if m := n.get("allowed-tools"); m != nil {
		if m.kind == kindText || m.kind == kindList {
			s.AllowedTools = d.allowedTools(m)
		} else {
			d.warn(m, space.WrongType, "allowed-tools", "is %s, and is not read: a text or a list of names is expected", m.kind)
		}
	}
	if m := n.get("metadata"); m != nil {
		if m.kind == kindObject {
			d.readMetadata(m, s)
		} else {
			d.warn(m, space.WrongType, "metadata", "is %s, and is not read", m.kind)
		}
	}
	slices.SortFunc(s.Info, func(a, b codec.Pair) int { return cmp.Compare(a.Key, b.Key) })
	slices.Sort(s.Needs)
	s.Needs = slices.Compact(s.Needs)
	if len(s.Needs) > space.NeedsMax {
		d.warn(n, space.TooMany, "metadata", "the skill %s has %d needs, of which the first %d by name are read", clip(s.Skill, 64), len(s.Needs), space.NeedsMax)
		s.Needs = s.Needs[:space.NeedsMax]
	}
	if len(s.AllowedTools) > space.SkillNamesMax {
		d.warn(n.get("allowed-tools"), space.TooMany, "allowed-tools", "the skill %s has %d of them, of which the first %d by name are read", clip(s.Skill, 64), len(s.AllowedTools), space.SkillNamesMax)
		s.AllowedTools = s.AllowedTools[:space.SkillNamesMax]
	}
}

// info keeps a value for people, as written.
func (d document) info(s *space.Skill, m *node, key, at string) {
	text, kept := m.text, m.kind != kindObject && m.kind != kindNull
	if m.kind == kindList {
		text, kept = shownList(m)
	}
	switch {
	case m.kind == kindNull:
		return
	case !kept:
		d.warn(m, space.WrongType, at, "is %s, and is not read: a text is expected", m.kind)
		return
	case len(s.Info) == space.SkillInfosMax || slices.ContainsFunc(s.Info, func(p codec.Pair) bool { return p.Key == key }):
		d.warn(m, space.TooMany, at, "is not read: there are %d such values, or one with a key that begins the same", space.SkillInfosMax)
		return
	case utf8.RuneCountInString(text) > space.SkillInfoCharsMax || len(key) > space.TokenBytesMax:
		d.warn(m, space.TooLarge, at, "is not read: it has at most %d characters, and its key %d bytes", space.SkillInfoCharsMax, space.TokenBytesMax)
		return
	}
	raw, err := codec.Marshal(text)
	if err != nil {
		d.say(m, space.NotUTF8, at, "is not UTF-8")
		return
	}
	s.Info = append(s.Info, codec.Pair{Key: key, Value: raw})
}

// allowedTools reads names from a text or a list, without what follows a name
// in parentheses.
func (d document) allowedTools(m *node) []string {
	names := []string{}
	var texts []string
	if m.kind == kindText {
		texts = []string{m.text}
	} else {
		for i, item := range m.items {
			if item.kind != kindText {
				d.warn(item, space.WrongType, index("allowed-tools", i), "is %s, and is not read: a name is expected", item.kind)
				continue
			}
			texts = append(texts, item.text)
		}
	}
	for _, text := range texts {
		depth := 0
		var b strings.Builder
		for _, r := range text {
			switch {
			case r == '(':
				depth++
			case r == ')' && depth > 0:
				depth--
			case depth > 0:
			case r == ',' || r == ' ' || r == '\t' || r == '\n':
				b.WriteByte(' ')
			default:
				b.WriteRune(r)
			}
		}
		names = append(names, strings.Fields(b.String())...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// families are the programs whose metadata say what a skill requires.
var families = []string{"agentos", "openclaw", ownFamily}

const ownFamily = "refold"

// readMetadata reads texts for people, and needs.
func (d document) readMetadata(n *node, s *space.Skill) {
	for _, m := range n.members {
		at := "metadata." + m.name
		switch {
		case !slices.Contains(families, m.name):
			d.info(s, m.value, clip(at, space.TokenBytesMax), at)
		case m.value.kind == kindObject:
			d.readFamily(m.value, m.name, at, s)
		case m.name == ownFamily:
			d.say(m.value, space.WrongType, at, "is %s, and must be %s", m.value.kind, kindObject)
		default:
			d.warn(m.value, space.WrongType, at, "is %s, and is not read: %s is expected", m.value.kind, kindObject)
		}
	}
}

// readFamily reads the needs in one program's metadata. Those of other products
// that can't be needs are not read.
func (d document) readFamily(n *node, family, at string, s *space.Skill) {
	before, needs := len(d.b.problems), s.Needs
	s.Needs = nil
	d.readNeeds(n, at, s)
	s.Needs = slices.DeleteFunc(s.Needs, func(need string) bool {
		if !space.IsNeed(need) {
			d.say(n, space.BadName, "metadata", "%q is no need: names are of A-Za-z0-9_ (env) or A-Za-z0-9._+- (bins, os)", clip(need, 64))
		}
		return !space.IsNeed(need)
	})
	s.Needs = append(needs, s.Needs...)
	if family != ownFamily {
		d.b.demote(before, "is not read: ")
	}
}

// demote turns the problems since a number of them into warnings.
func (b *builder) demote(since int, prefix string) {
	for _, p := range b.problems[since:] {
		p.Detail = clip(prefix+p.Detail, space.DetailBytesMax)
		b.warnings = append(b.warnings, p)
	}
	b.problems = b.problems[:since]
}

// readNeeds reads what a skill requires of the machine.
func (d document) readNeeds(n *node, at string, s *space.Skill) {
	for _, m := range n.members {
		if !slices.Contains([]string{"requires", "os", "primaryEnv", "always"}, m.name) {
			d.b.warnings = append(d.b.warnings, d.at(&node{line: m.line}, join(at, m.name)).problem(space.UnknownKey, "is not read; known are requires, os, primaryEnv and always"))
		}
	}
	if m := n.get("os"); m != nil {
		if names := sortedTexts(d.texts(m, join(at, "os"))); len(names) > 0 {
			s.Needs = append(s.Needs, "os:"+strings.Join(names, "|"))
		}
	}
	var always bool
	if m := n.get("always"); m != nil && d.is(m, join(at, "always"), kindBool) {
		always = strings.EqualFold(m.text, "true")
	}
	requires := n.get("requires")
	if always || requires != nil && !d.is(requires, join(at, "requires"), kindObject) {
		return
	}
	if env := d.text(n, at, "primaryEnv"); env != "" {
		s.Needs = append(s.Needs, "env:"+env)
	}
	if requires == nil {
		return
	}
	at = join(at, "requires")
	for _, m := range requires.members {
		names := sortedTexts(d.texts(m.value, join(at, m.name)))
		switch m.name {
		case "bins":
			for _, name := range names {
				s.Needs = append(s.Needs, "bin:"+name)
			}
		case "anyBins":
			if len(names) > 0 {
				s.Needs = append(s.Needs, "bin:"+strings.Join(names, "|"))
			}
		case "env":
			for _, name := range names {
				s.Needs = append(s.Needs, "env:"+name)
			}
		default:
			d.b.warnings = append(d.b.warnings, d.at(&node{line: m.line}, join(at, m.name)).problem(space.UnknownKey, "is not read; known are bins, anyBins and env"))
		}
	}
}

// firstParagraph returns the first paragraph that is not a heading.
func firstParagraph(body string) string {
	for paragraph := range strings.SplitSeq(strings.ReplaceAll(body, "\r\n", "\n"), "\n\n") {
		text := strings.Join(strings.Fields(paragraph), " ")
		if text == "" || text[0] == '#' {
			continue
		}
		if runes := []rune(text); len(runes) > paragraphRunes {
			return string(runes[:paragraphRunes])
		}
		return text
	}
	return ""
}

// sortedTexts returns texts in byte order, without duplicates.
func sortedTexts(nodes []*node) (texts []string) {
	for _, n := range nodes {
		texts = append(texts, n.text)
	}
	slices.Sort(texts)
	return slices.Compact(texts)
}
