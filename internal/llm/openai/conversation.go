package openai

import (
	"maps"

	"github.com/openai/openai-go/v3"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/llm"
)

// conversation is the messages of a request, as they are added.
type conversation struct {
	all  []openai.ChatCompletionMessageParamUnion
	last string // role of the last message; empty: there is none, or only a system text
	// alternate puts a short message where servers with strict chat templates
	// require one. It never changes a message that was sent before.
	alternate bool
	thinks    bool // an earlier turn was sent with a thought; some servers then require one in every turn
	fills     bool // the server requires one in every turn
}

// imagesFollow is the assistant's message between results and their images.
const imagesFollow = "(images follow)"

// noThought is the thought of a message that no model of this server made, or that it
// made without one.
const noThought = "(none)"

// user adds a user's message. between is sent before it if the model has not
// answered the previous message.
func (c *conversation) user(message openai.ChatCompletionMessageParamUnion, between string) {
	if c.alternate && (c.last == "user" || c.last == "tool") {
		said := openai.AssistantMessage(between)
		if c.thinks || c.fills {
			said.OfAssistant.SetExtraFields(map[string]any{memberThought: noThought})
		}
		c.all = append(c.all, said)
	}
	c.all, c.last = append(c.all, message), "user"
}

// assistant adds a turn of the model.
func (c *conversation) assistant(message openai.ChatCompletionMessageParamUnion) {
	if c.alternate && (c.last == "" || c.last == "assistant") {
		c.all = append(c.all, openai.UserMessage(llm.GoOn))
	}
	extra := message.OfAssistant.ExtraFields()
	if _, is := extra[memberThought]; is {
		c.thinks = true
	} else if c.fills {
		filled := map[string]any{memberThought: noThought}
		maps.Copy(filled, extra)
		message.OfAssistant.SetExtraFields(filled)
	}
	c.all, c.last = append(c.all, message), "assistant"
}

// newMessages builds the conversation. A result can't have images in this API:
// they follow the results of their turn as a user message. An empty turn of the
// model is left out.
func (m *Model) newMessages(messages []executor.Message, thoughts llm.Thoughts) []openai.ChatCompletionMessageParamUnion {
	c := conversation{alternate: !m.openai, fills: thoughts == llm.ThoughtsFilled}
	var images []executor.Part
	flush := func() {
		if len(images) > 0 {
			c.user(openai.UserMessage(newParts(images)), imagesFollow)
			images = nil
		}
	}
	for i := range messages {
		msg := &messages[i]
		if msg.Role != "tool" {
			flush()
		}
		switch {
		case msg.Role == "tool":
			c.all, c.last = append(c.all, openai.ToolMessage(llm.Result(msg), llm.CallID(msg.CallID))), "tool"
			images = append(images, imagesOf(msg)...)
		case msg.Role == "user" && len(msg.Parts) > 0:
			c.user(openai.UserMessage(newParts(msg.Parts)), llm.Interrupted)
		case msg.Role == "user":
			c.user(openai.UserMessage(llm.Spoken(msg.Text)), llm.Interrupted)
		case !llm.IsBlank(msg.Text) || len(msg.Calls) > 0:
			c.assistant(m.newAssistant(msg, thoughts))
		}
	}
	flush()
	return c.all
}

// imagesOf returns a result's images, after a text that names the result.
func imagesOf(m *executor.Message) []executor.Part {
	var images []executor.Part
	for _, p := range m.Parts {
		if p.Text != "" || len(p.Data) == 0 {
			continue
		}
		if images == nil {
			images = append(images, executor.Part{Text: "Images and documents in the result of " + llm.CallID(m.CallID) + ":"})
		}
		images = append(images, p)
	}
	return images
}
