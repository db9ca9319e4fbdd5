package spacefiles

import (
	"fmt"
	"path"
	"strings"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/space"
)

// readPrompt reads the file of a prompt pack: its parts, a list of parts, a
// message, a list of messages, or a text that is the only part.
func (b *builder) readPrompt(index document, id string, value *node, at string) {
	if !index.is(value, at, kindText) {
		return
	}
	p := space.Prompt{PromptPack: id, Parts: []space.Part{}}
	b.sources["prompts."+id] = location{file: value.text}
	if ext := path.Ext(value.text); ext != ".json" {
		if part, ok := b.template(value.text, index.at(value, at)); ok {
			p.Parts = append(p.Parts, part)
		}
		b.m.Prompts = append(b.m.Prompts, p)
		return
	}
	d, n := b.json(value.text, index.at(value, at))
	if n == nil {
		return
	}
	parts, where := n, ""
	if n.kind == kindObject && n.get("parts") != nil {
		d.known(n, "", "parts", "params", "response_format")
		p.Params, p.ResponseFormat = d.raw(n, "", "params"), d.raw(n, "", "response_format")
		parts, where = n.get("parts"), "parts"
		for _, name := range []string{"params", "response_format"} {
			if m := n.get(name); m != nil {
				b.sources["prompts."+id+"."+name] = d.at(m, name)
			}
		}
		if problem := session.FormatSchemaProblem(p.ResponseFormat); problem != "" {
			d.say(n.get("response_format"), space.BadSchema, "response_format.schema", "%s", problem)
		}
	} else if n.kind == kindObject {
		parts = &node{kind: kindList, line: n.line, items: []*node{n}}
	}
	if d.is(parts, where, kindList) {
		for i, item := range parts.items {
			if part, ok := b.readPart(d, item, fmt.Sprintf("%s[%d]", where, i), i); ok {
				p.Parts = append(p.Parts, part)
			}
		}
	}
	b.m.Prompts = append(b.m.Prompts, p)
}

func (b *builder) readPart(d document, n *node, at string, i int) (part space.Part, ok bool) {
	if n.kind == kindText {
		return b.template(n.text, d.at(n, at))
	}
	if !d.is(n, at, kindObject) {
		return part, false
	}
	switch {
	case n.get("context") != nil:
		d.known(n, at, "context")
		part.Context = d.text(n, at, "context")
		if part.Context != "" && b.takes(PartContext) && b.m.Group(part.Context) == nil {
			d.say(n.get("context"), space.MissingField, join(at, "context"), "context of the index has no %q", clip(part.Context, 64))
			return part, false
		}
		return part, part.Context != ""
	case n.get("skills") != nil:
		d.known(n, at, "skills")
		part.Skills = n.get("skills").text == "true" && n.get("skills").kind == kindBool
		if !part.Skills {
			d.say(n.get("skills"), space.WrongType, join(at, "skills"), "is true")
		}
		return part, part.Skills
	}
	return b.readText(d, n, at, i)
}

// readText reads system text or a message, from a file or inline.
func (b *builder) readText(d document, n *node, at string, i int) (part space.Part, ok bool) {
	d.known(n, at, "role", "file", "text", "content")
	role := d.text(n, at, "role")
	if role == "system" {
		role = ""
	} else if role != "" && role != space.RoleUser && role != space.RoleAssistant {
		d.say(n.get("role"), space.UnknownPart, join(at, "role"), "is system, user or assistant")
		return part, false
	}
	var given []string
	for _, name := range []string{"file", "text", "content"} {
		if n.get(name) != nil {
			given = append(given, name)
		}
	}
	if len(given) != 1 {
		d.say(n, space.UnknownPart, at, "is a path, {file}, {text}, {context}, {skills: true}, or a message of role and one of file, text and content")
		return part, false
	}
	value := n.get(given[0])
	switch path := join(at, given[0]); given[0] {
	case "file":
		if !d.is(value, path, kindText) {
			return part, false
		}
		part, ok = b.template(value.text, d.at(value, path))
	default:
		text, is := d.content(value, path)
		if !is {
			return part, false
		}
		part, ok = b.expandable(fmt.Sprintf("%s#%d", d.file, i), text, d.at(value, path))
	}
	part.Role = role
	return part, ok
}

// content reads the content of a message: a text, or a list of {type, text}.
func (d document) content(n *node, path string) (text string, ok bool) {
	if n.kind != kindList {
		return n.text, d.is(n, path, kindText)
	}
	var texts []string
	for i, item := range n.items {
		at := index(path, i)
		if !d.is(item, at, kindObject) {
			return "", false
		}
		d.known(item, at, "type", "text")
		if kind := d.text(item, at, "type"); kind != "text" {
			d.say(item, space.UnknownPart, at, "is {\"type\": \"text\", \"text\": …}: show images by a context group")
			return "", false
		}
		texts = append(texts, d.text(item, at, "text"))
	}
	return strings.Join(texts, "\n"), true
}

// template reads a file that is a template.
func (b *builder) template(name string, at location) (part space.Part, ok bool) {
	i, text, ok := b.text(name, space.TemplateBytesMax, at)
	if !ok {
		return part, false
	}
	part.File = &i
	part.Vars, ok = b.vars(text, location{file: name}, true)
	return part, ok
}

// expandable adds an inline text as a file.
func (b *builder) expandable(name, text string, at location) (part space.Part, ok bool) {
	switch {
	case len(text) > space.TemplateBytesMax:
		b.say(at.problem(space.TooLarge, "has %d bytes, at most %d: use a file, or several parts", len(text), space.TemplateBytesMax))
		return part, false
	case !space.IsPath(name):
		b.say(at.problem(space.PathEscapes, "%q is longer than a path may be: use a shorter name for the file", clip(name, 128)))
		return part, false
	}
	i := b.keep(name, []byte(text))
	if b.m.Files[i].Ref != codec.RefOf([]byte(text)) {
		b.say(at.problem(space.Duplicate, "%q is also the name of a file: rename that", clip(name, 128)))
		return part, false
	}
	part.File = &i
	part.Vars, ok = b.vars(text, at, false)
	return part, ok
}

// vars returns the variables of a template. Problems are reported at their line
// if the template is a file, else at the text's location.
func (b *builder) vars(text string, at location, isFile bool) (vars codec.Pairs, ok bool) {
	uses, problems := space.Vars(text)
	for _, p := range problems {
		p.File, p.Path = at.file, at.path
		if !isFile {
			p.Line = at.line
		}
		b.say(p)
	}
	return space.VarsOf(uses), len(problems) == 0
}
