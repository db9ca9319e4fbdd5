package prompt

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/spaces"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/space"
)

// codePromptMissing is the code of a generation whose prompt is not stored, or
// can't be shown.
const codePromptMissing = "prompt_missing"

// prompt adds the prompt to a request that has the transcript: system text and
// documents after the request's system, and messages before the others. Images come
// first in the first user message.
func (r *Reader) prompt(ctx context.Context, g *session.Generation, items []session.Item, request *executor.Request) error {
	if len(g.Prompt) == 0 {
		return nil
	}
	values := make(map[string]string, len(g.Vars))
	for _, pair := range g.Vars {
		var text string
		if err := codec.Unmarshal(pair.Value, &text); err != nil {
			return &executor.Error{Code: codePromptMissing, Detail: "the variable " + pair.Key + " is no text"}
		}
		values[pair.Key] = text
	}
	system, room := []string{request.System}, space.ShownBytesMax-len(request.System)
	var messages []executor.Message
	var images []executor.Part
	index, err := r.skillIndex(ctx, g)
	if err != nil {
		return err
	}
	for i := range g.Prompt {
		part := &g.Prompt[i]
		content, err := r.promptBlob(ctx, g.Session, part)
		if err != nil {
			return err
		}
		if part.Role == spaces.PromptImage {
			image := executor.Part{MediaType: part.MediaType, Data: content}
			if len(part.Names) > 0 {
				image.Name = Clip(part.Names[0], session.NameBytesMax)
			}
			images = append(images, image)
			continue
		}
		text, ok := promptText(part, string(content), values, room)
		if part.Role == spaces.PromptSkill {
			if text, err = skillText(items, part, string(content), request.Messages); err != nil {
				return err
			}
		}
		if part.Role == spaces.PromptSkills {
			text, index = index[0], index[1:]
		}
		if room -= len(text); !ok || room < 0 {
			return &executor.Error{Code: codeRequestTooLarge, Detail: fmt.Sprintf("what precedes the transcript has more than %d KiB: shorten the prompt", space.ShownBytesMax>>10)}
		}
		switch part.Role {
		case "", spaces.PromptDocument, spaces.PromptSkills, spaces.PromptSkill:
			system = append(system, text)
		case spaces.PromptUser, spaces.PromptAssistant:
			messages = append(messages, executor.Message{Role: string(part.Role), Text: text})
		default:
			return &executor.Error{Code: codePromptMissing, Detail: "a part has the role " + Clip(string(part.Role), session.CodeBytesMax) + ": upgrade this bridge"}
		}
	}
	request.System = joined(system)
	request.Messages = withImages(append(messages, request.Messages...), images)
	return nil
}

// promptText returns a part as a model is shown it: a template filled in, or a
// document or a skill between the lines that mark it.
func promptText(part *spaces.PromptPart, text string, values map[string]string, room int) (shown string, ok bool) {
	name := ""
	if len(part.Names) > 0 {
		name = part.Names[0]
	}
	switch text = Valid(text); part.Role {
	case spaces.PromptDocument:
		return space.ShownDocument(name, text), true
	case spaces.PromptSkill, spaces.PromptSkills:
		return "", true // skillText and skillIndex make their text
	}
	return space.ShownText(text, values, max(room, 0))
}

// skillText returns the text of a skill that the run's config names. The run's input
// is its arguments; a text without placeholders does not repeat it. shown has a
// message for each item.
func skillText(items []session.Item, part *spaces.PromptPart, text string, shown []executor.Message) (string, error) {
	name := ""
	if len(part.Names) > 0 {
		name = part.Names[0]
	}
	given := ""
	if i := slices.IndexFunc(items, func(it session.Item) bool { return it.Role == session.RoleUser && it.Seq == part.Input }); i >= 0 {
		given = shown[i].Text
	}
	filled, _, ok := space.FillArguments(Valid(text), given)
	if !ok {
		return "", &executor.Error{Code: codeRequestTooLarge, Detail: fmt.Sprintf("skill %s with the input as its arguments has more than %d KiB: shorten the input", name, space.SkillFilledBytesMax>>10)}
	}
	return space.ShownSkill(name, filled), nil
}

// skillIndex returns the text of each part that is an index of skills. All parts
// share one limit.
func (r *Reader) skillIndex(ctx context.Context, g *session.Generation) ([]string, error) {
	var listed [][]*space.Skill
	for i := range g.Prompt {
		part := &g.Prompt[i]
		if part.Role != spaces.PromptSkills {
			continue
		}
		content, err := r.promptBlob(ctx, g.Session, part)
		if err != nil {
			return nil, err
		}
		m, problems := space.Parse(content)
		if m == nil {
			return nil, &executor.Error{Code: codePromptMissing, Detail: "the manifest of an index of skills: " + problems[0].String()}
		}
		listed = append(listed, m.Named(part.Names))
	}
	return space.ShownSkills(listed), nil
}

// joined joins texts with one blank line, without empty ones.
func joined(texts []string) string {
	var b strings.Builder
	for _, text := range texts {
		text = strings.TrimRight(text, "\n")
		if text == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("\n\n")
		}
		b.WriteString(text)
	}
	return b.String()
}

// withImages puts images first in the first user message, in new Parts: the old
// ones may be cached.
func withImages(messages []executor.Message, images []executor.Part) []executor.Message {
	if len(images) == 0 {
		return messages
	}
	for i := range messages {
		m := &messages[i]
		if m.Role != string(session.RoleUser) {
			continue
		}
		rest := m.Parts
		if rest == nil {
			rest = []executor.Part{{Text: m.Text}}
		}
		m.Parts = slices.Concat(images, rest)
		break
	}
	return messages
}

func (r *Reader) promptBlob(ctx context.Context, sid string, part *spaces.PromptPart) ([]byte, error) {
	if content, ok := r.prompts.Get(part.Ref); ok {
		return content, nil
	}
	ref := codec.Ref{Hash: part.Ref}
	name := ref.String()
	if len(part.Names) > 0 && part.Role != spaces.PromptSkills {
		name = part.Names[0] + ", " + name
	}
	content, err := r.stored(ctx, sid, ref, codePromptMissing, name+" of the prompt")
	if err != nil {
		return nil, err
	}
	r.prompts.Put(part.Ref, content, 64+len(content))
	return content, nil
}
