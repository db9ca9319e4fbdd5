package space

import (
	"slices"
	"unicode/utf8"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

func (c *checker) checkSkill(path string, s *Skill) {
	if !IsSkillName(s.Skill) {
		c.add(BadName, path+".skill", "is 1 to %d of a-z0-9-, no hyphen at an end or doubled, not %s", TokenBytesMax, quoted(s.Skill))
	}
	if n := utf8.RuneCountInString(s.Description); n == 0 || n > SkillTextCharsMax {
		c.add(TooLarge, path+".description", "has %d characters: 1 to %d", n, SkillTextCharsMax)
	}
	if body := c.file(path+".body", s.Body); body != nil {
		if body.Size > SkillBodyBytesMax {
			c.add(TooLarge, path+".body", "%s has %d bytes, at most %d", quoted(body.Path), body.Size, SkillBodyBytesMax)
		}
		if !body.IsText() {
			c.add(NotUTF8, path+".body", "%s is no text", quoted(body.Path))
		}
	}
	c.checkIndices(path+".files", s.Files, SkillFilesMax)
	c.checkNeeds(path+".needs", s.Needs)
	for i, name := range s.AllowedTools {
		if name == "" || len(name) > planner.ToolIDBytesMax {
			c.add(BadName, at(path+".allowed_tools", i), "is 1 to %d bytes", planner.ToolIDBytesMax)
		}
	}
	c.checkOrder(path+".allowed_tools", "", len(s.AllowedTools), SkillNamesMax, func(i int) string { return s.AllowedTools[i] })
	c.empties(path, s.Files != nil && len(s.Files) == 0, s.Needs != nil && len(s.Needs) == 0, s.Info != nil && len(s.Info) == 0)
	if len(s.Info) > SkillInfosMax {
		c.add(TooMany, path+".info", "%d entries, at most %d", len(s.Info), SkillInfosMax)
	}
	for _, pair := range s.Info {
		var text string
		if err := codec.Unmarshal(pair.Value, &text); err != nil || utf8.RuneCountInString(text) > SkillInfoCharsMax || pair.Key == "" || len(pair.Key) > TokenBytesMax {
			c.add(WrongType, path+".info", "%s is a name of 1 to %d bytes with a text of at most %d characters", quoted(pair.Key), TokenBytesMax, SkillInfoCharsMax)
		}
	}
}

func (c *checker) checkPrompt(path string, p *Prompt) {
	if !IsID(p.PromptPack) {
		c.add(BadName, path+".prompt_pack", "%s", badID(p.PromptPack))
	}
	if c.m.Kind == Pack && p.PromptPack != Default {
		c.add(NotGranted, path+".prompt_pack", "a pack has one prompt pack, called %s", Default)
	}
	if c.m.Kind == Pack && (p.Params != nil || p.ResponseFormat != nil) {
		c.add(NotGranted, path, "params and response_format are for workspaces")
	}
	if len(p.Params) > ParamsBytesMax || p.Params != nil && !codec.IsMap(p.Params) {
		c.add(WrongType, path+".params", "is an object of at most %d bytes", ParamsBytesMax)
	}
	if len(p.ResponseFormat) > FormatBytesMax || p.ResponseFormat != nil && !codec.IsMap(p.ResponseFormat) {
		c.add(WrongType, path+".response_format", "is an object of at most %d bytes", FormatBytesMax)
	}
	if len(p.Parts) > PartsMax {
		c.add(TooMany, path+".parts", "%d parts, at most %d", len(p.Parts), PartsMax)
	}
	before := len(c.problems)
	last := ""
	for i := range p.Parts {
		at := at(path+".parts", i)
		c.checkPart(at, &p.Parts[i])
		role := p.Parts[i].Role
		if role != "" && role == last {
			c.add(WrongType, at+".role", "two messages of role %s follow each other: messages alternate", role)
		}
		if role != "" {
			last = role
		}
	}
	if last == RoleUser {
		c.add(WrongType, path+".parts", "the last message is the user's: messages end with the assistant's")
	}
	if len(c.problems) == before {
		c.checkSize(path, p)
	}
}

// The roles of messages.
const (
	RoleUser      = "user"
	RoleAssistant = "assistant"
)

// checkPart checks one part: {file}, {role, file}, {context} or {skills}.
func (c *checker) checkPart(path string, p *Part) {
	kinds := 0
	for _, is := range []bool{p.File != nil, p.Context != "", p.Skills} {
		if is {
			kinds++
		}
	}
	if kinds != 1 || p.File == nil && (p.Role != "" || p.Vars != nil) || p.Vars != nil && len(p.Vars) == 0 {
		c.add(UnknownPart, path, "is {file}, {role, file}, {context} or {skills: true}; vars stand with a file alone")
		return
	}
	if p.Role != "" && p.Role != RoleUser && p.Role != RoleAssistant {
		c.add(UnknownPart, path+".role", "is user or assistant, not %s", quoted(p.Role))
	}
	if p.Role != "" && c.m.Kind == Pack {
		c.add(NotGranted, path+".role", "a pack's prompt has no messages")
	}
	if p.Context != "" && c.m.Group(p.Context) == nil {
		c.add(MissingField, path+".context", "there is no context group %s", quoted(p.Context))
	}
	if p.File == nil {
		return
	}
	if f := c.file(path+".file", *p.File); f != nil {
		if f.Size > TemplateBytesMax {
			c.add(TooLarge, path+".file", "%s has %d bytes, a template at most %d", quoted(f.Path), f.Size, TemplateBytesMax)
		}
		if !f.IsText() {
			c.add(NotUTF8, path+".file", "%s is no text", quoted(f.Path))
		}
	}
	uses, ok := p.Uses()
	if !ok {
		c.add(UnknownVariable, path+".vars", "maps session, run, fact.NAME and space.version to how often the template uses them")
	}
	if c.m.Kind == Pack && slices.ContainsFunc(uses, func(u Use) bool { return u.Name == VarVersion }) {
		c.add(UnknownVariable, path+".vars", "space.version is the workspace's: a pack writes its version into the text")
	}
}

// checkSize checks that a prompt pack by itself is within the limits.
func (c *checker) checkSize(path string, p *Prompt) {
	size := c.m.SizeOf(p)
	if code, detail := size.over(); code != "" {
		c.add(code, path, "%s", detail)
	}
}

// checkWords checks catalogs, and the rewordings that their entries use.
func (c *checker) checkWords() {
	m := c.m
	used := make([]bool, len(m.Words))
	for i := range m.Catalogs {
		cat, path := &m.Catalogs[i], at("catalogs", i)
		if !IsID(cat.ToolCatalog) {
			c.add(BadName, path+".tool_catalog", "%s", badID(cat.ToolCatalog))
		}
		if len(cat.ToolChoice) > planner.ToolIDBytesMax {
			c.add(WrongType, path+".tool_choice", "is auto, none, required or the name of a tool")
		}
		if len(cat.Tools) > EntriesMax {
			c.add(TooMany, path+".tools", "%d tools, at most %d", len(cat.Tools), EntriesMax)
		}
		c.checkEntries(path+".tools", cat.Tools, used)
	}
	c.checkOrder("catalogs", "tool_catalog", len(m.Catalogs), CatalogsMax, func(i int) string { return m.Catalogs[i].ToolCatalog })
	if len(m.Words) > WordsMax {
		c.add(TooMany, "words", "%d, at most %d", len(m.Words), WordsMax)
	}
	for i := range m.Words {
		w, path := &m.Words[i], at("words", i)
		switch {
		case !planner.IsToolID(w.Tool):
			c.add(BadName, path+".tool", "is a tool_id or a tool_name, not %s", quoted(w.Tool))
		case w.Description == "" && w.ArgsSchema == nil:
			c.add(MissingField, path, "has neither description nor args_schema")
		case !isText(w.Description, WordDescriptionBytesMax):
			c.add(TooLarge, path+".description", "has %d bytes, at most %d", len(w.Description), WordDescriptionBytesMax)
		case w.ArgsSchema != nil && (!codec.IsMap(w.ArgsSchema) || len(w.ArgsSchema) > SchemaBytesMax):
			c.add(BadSchema, path+".args_schema", "is an object of at most %d bytes", SchemaBytesMax)
		case !used[i]:
			c.add(WrongType, path, "no entry uses it: leave it out")
		case i > 0 && CompareWords(&m.Words[i-1], w) >= 0:
			c.add(WrongType, path, "stands after one that it precedes or equals: the list is in the order of tool, description and args_schema")
		}
	}
}

// checkEntries checks the tools of a catalog and marks the words that they use.
func (c *checker) checkEntries(path string, raws []codec.Raw, used []bool) {
	var names []string
	for i, raw := range raws {
		at := at(path, i)
		e, ok := parseEntry(raw)
		switch {
		case !ok:
			c.add(WrongType, at, "is a tool_id or tool_name, or {tool, word}")
			continue
		case !planner.IsToolID(e.Tool):
			c.add(BadName, at, "is a tool_id or a tool_name, not %s", quoted(e.Tool))
		case slices.Contains(names, e.Tool):
			c.add(Duplicate, at, "%s stands twice", quoted(e.Tool))
		}
		names = append(names, e.Tool)
		if e.Word == nil {
			continue
		}
		if *e.Word < 0 || *e.Word >= len(c.m.Words) || c.m.Words[*e.Word].Tool != e.Tool {
			c.add(WrongType, at+".word", "there are no words %d for %s", *e.Word, quoted(e.Tool))
			continue
		}
		used[*e.Word] = true
	}
}
