package spaces

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/space"
)

// skillFile is the file that defines a skill.
const skillFile = "SKILL.md"

// readSkills reads the skills that an index names. If it names none, it reads
// those of the folder skills.
func (b *builder) readSkills(d document, n *node) {
	if n == nil {
		n = &node{kind: kindList, items: []*node{{kind: kindText, text: "skills/*/" + skillFile}}}
	}
	items := d.texts(n, "skills")
	isNamed := func(name string) bool {
		return slices.ContainsFunc(items, func(item *node) bool { return item.text == name })
	}
	var names []string
	for i, item := range items {
		at := d.at(item, index("skills", i))
		for _, name := range b.match(item.text, at) {
			switch {
			case path.Base(name) != skillFile || path.Dir(name) == ".":
				d.b.say(at.problem(space.BadName, "%q: a skill is the file %s of a folder", clip(name, 128), skillFile))
			case slices.Contains(names, name):
			case isNamed(name):
				names = append(names, name)
				b.readSkill(name, at, true)
			default:
				names = append(names, name)
				b.trySkill(name, at)
			}
		}
	}
}

// trySkill reads a SKILL.md that a glob found. A faulty one is left out, and
// its problems become warnings.
func (b *builder) trySkill(name string, at location) {
	problems, files, size := len(b.problems), len(b.m.Files), b.bytes
	b.readSkill(name, at, false)
	if len(b.problems) == problems {
		return
	}
	for _, p := range b.problems[problems:] {
		p.Detail = clip("left out: "+p.Detail, space.DetailBytesMax)
		b.warnings = append(b.warnings, p)
	}
	b.m.LeftOut = append(b.m.LeftOut, space.LeftOut{Code: b.problems[problems].Code, File: name})
	b.problems, b.bytes = b.problems[:problems], size
	for _, f := range b.m.Files[files:] {
		delete(b.at, f.Path)
	}
	b.m.Files = b.m.Files[:files]
	b.m.Skills = slices.DeleteFunc(b.m.Skills, func(s space.Skill) bool { return s.Body >= files })
}

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
		if !strings.HasPrefix(other, folder) || other == name || b.isFolder(other) {
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
	b.m.Skills = append(b.m.Skills, s)
}

func (d document) parseSkill(text, folder string, named bool) (s space.Skill, body string, ok bool) {
	front, body, line, ok := cutFrontmatter(text)
	switch {
	case !ok && line > 0:
		d.say(&node{line: line}, space.BadFrontmatter, "", "the frontmatter has no end: write a line ---")
		return s, "", false
	case !ok:
		d.say(&node{line: 1}, space.BadFrontmatter, "", "there is no frontmatter: begin with a line ---, name and description, and a line ---")
		return s, "", false
	case len(front) > space.FrontmatterBytesMax:
		d.say(&node{line: 1}, space.BadFrontmatter, "", "the frontmatter has %d bytes, at most %d", len(front), space.FrontmatterBytesMax)
		return s, "", false
	case len(body) > space.SkillBodyBytesMax:
		d.say(&node{line: 1}, space.TooLarge, "", "the text has %d bytes, at most %d: move parts into files of their own", len(body), space.SkillBodyBytesMax)
		return s, "", false
	}
	before := len(d.b.problems)
	n := parseYAML(front, 2, space.BadFrontmatter, func(p space.Problem) {
		p.File = d.file
		d.b.say(p)
	})
	if n == nil || !d.is(n, "", kindObject) {
		return s, "", false
	}
	d.readFront(n, folder, body, named, &s)
	return s, body, len(d.b.problems) == before
}

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

// frontKeys are the keys of a frontmatter that are read.
var frontKeys = []string{"name", "description", "license", "compatibility", "metadata", "user-invocable", "argument-hint", "allowed-tools", "disable-model-invocation"}

func (d document) readFront(n *node, folder, body string, named bool, s *space.Skill) {
	for _, m := range n.members {
		if !slices.Contains(frontKeys, m.name) {
			d.b.warnings = append(d.b.warnings, d.at(&node{line: m.line}, clip(m.name, 64)).problem(space.UnknownKey, "is not read; known are %s", strings.Join(frontKeys, ", ")))
		}
	}
	s.Skill = cmp.Or(d.text(n, "", "name"), folder)
	switch name := n.get("name"); {
	case !space.IsSkillName(s.Skill):
		d.say(cmp.Or(name, n), space.BadName, "name", "%q: a skill's name is 1 to %d of a-z0-9-, no hyphen at an end or doubled", clip(s.Skill, 64), space.TokenBytesMax)
	case s.Skill != folder && named:
		d.say(name, space.NameMismatch, "name", "is %q, and the folder is %q: rename one of them, they must be the same", s.Skill, clip(folder, 64))
	case s.Skill != folder:
		d.b.warnings = append(d.b.warnings, d.at(name, "name").problem(space.NameMismatch, "the skill is %q, and its folder is called %q", s.Skill, clip(folder, 64)))
	}
	s.Description = strings.TrimSpace(d.text(n, "", "description"))
	if n.get("description") == nil {
		s.Description = firstParagraph(body)
	}
	if count := utf8.RuneCountInString(s.Description); count == 0 || count > space.SkillTextCharsMax {
		d.say(cmp.Or(n.get("description"), n), space.TooLarge, "description", "has %d characters: 1 to %d", count, space.SkillTextCharsMax)
	}
	for _, name := range []string{"argument-hint", "compatibility", "license", "user-invocable"} {
		if m := n.get(name); m != nil {
			d.info(s, m, name, name)
		}
	}
	if m := n.get("disable-model-invocation"); m != nil && d.is(m, "disable-model-invocation", kindBool) {
		s.Hidden = strings.EqualFold(m.text, "true")
	}
	if m := n.get("allowed-tools"); m != nil {
		s.AllowedTools = d.allowedTools(m)
	}
	if m := n.get("metadata"); m != nil && d.is(m, "metadata", kindObject) {
		d.readMetadata(m, s)
	}
	slices.SortFunc(s.Info, func(a, b codec.Pair) int { return cmp.Compare(a.Key, b.Key) })
	slices.Sort(s.Needs)
	s.Needs = slices.Compact(s.Needs)
	for _, need := range s.Needs {
		if !space.IsNeed(need) {
			d.say(n.get("metadata"), space.BadName, "metadata", "%q is no need: names are of A-Za-z0-9_ (env) or A-Za-z0-9._+- (bins, os)", clip(need, 64))
		}
	}
}

// info keeps a value for people, as written.
func (d document) info(s *space.Skill, m *node, key, at string) {
	if m.kind == kindList || m.kind == kindObject || m.kind == kindNull {
		d.say(m, space.WrongType, at, "is %s, and must be %s", m.kind, kindText)
		return
	}
	if utf8.RuneCountInString(m.text) > space.SkillInfoCharsMax || len(key) > space.TokenBytesMax {
		d.say(m, space.TooLarge, at, "has at most %d characters, and its key %d bytes", space.SkillInfoCharsMax, space.TokenBytesMax)
		return
	}
	raw, err := codec.Marshal(m.text)
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
		for _, item := range d.texts(m, "allowed-tools") {
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
var families = []string{"agentos", "openclaw", "refold"}

// readMetadata reads texts for people, and needs.
func (d document) readMetadata(n *node, s *space.Skill) {
	for _, m := range n.members {
		at := "metadata." + m.name
		switch {
		case !slices.Contains(families, m.name):
			d.info(s, m.value, clip(at, space.TokenBytesMax), at)
		case m.value.kind == kindObject:
			d.readNeeds(m.value, at, s)
		default:
			d.say(m.value, space.WrongType, at, "is %s, and must be %s", m.value.kind, kindObject)
		}
	}
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
