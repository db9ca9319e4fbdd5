package gemini

import (
	"encoding/base64"
	"encoding/json"
	"math"

	"google.golang.org/genai"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/llm"
	"github.com/refold/refold/internal/llm/schema"
)

// reserved are the members of a request that params can't set: they come from
// other parts of the config.
var reserved = []string{"contents", "model", "systemInstruction", "toolConfig", "tools"}

// formatMembers are the members of generationConfig that the form of the answer
// sets.
var formatMembers = []string{"responseJsonSchema", "responseMimeType", "responseSchema"}

// newConfig builds the request except for the conversation. Its error is a
// fault of the run's config.
func newConfig(req *executor.Request) (*genai.GenerateContentConfig, error) {
	config := &genai.GenerateContentConfig{AutomaticContinuation: new(false)}
	if req.System != "" {
		config.SystemInstruction = &genai.Content{Parts: []*genai.Part{{Text: req.System}}}
	}
	members, err := llm.Params(req.Params, reserved)
	if err != nil {
		return nil, err
	}
	var body map[string]any
	if len(members) > 0 {
		if err := json.Unmarshal(req.Params, &body); err != nil {
			return nil, llm.Fail(llm.CodeBadRequest, "params: is no JSON object")
		}
		config.HTTPOptions = &genai.HTTPOptions{ExtraBody: body}
	}
	if err := limitOutput(config, req, members["generationConfig"], body); err != nil {
		return nil, err
	}
	if f := req.Format; f != nil {
		if err := withFormat(config, members["generationConfig"], f); err != nil {
			return nil, err
		}
	}
	if len(req.Tools)+len(req.Defined) > 0 {
		tool, err := newTool(req)
		if err != nil {
			return nil, err
		}
		config.Tools = []*genai.Tool{tool}
		config.ToolConfig = newToolConfig(req)
	}
	return config, nil
}

// limitOutput limits the output to the run's remaining budget and to
// generationConfig of params.
func limitOutput(config *genai.GenerateContentConfig, req *executor.Request, given json.RawMessage, body map[string]any) error {
	if req.OutputTokensMax == 0 {
		return nil
	}
	var members map[string]json.RawMessage
	if len(given) > 0 {
		var err error
		if members, err = llm.Members(given, "params.generationConfig"); err != nil {
			return err
		}
	}
	limit, err := llm.OutputTokensMax(req, "generationConfig.maxOutputTokens", members["maxOutputTokens"], 0, 1)
	if err != nil {
		return err
	}
	config.MaxOutputTokens = int32(min(limit, math.MaxInt32))
	if own, is := body["generationConfig"].(map[string]any); is {
		delete(own, "maxOutputTokens") // it would override the config's
	}
	return nil
}

// withFormat sets the form of the answer. generationConfig of params must not
// set it too.
func withFormat(config *genai.GenerateContentConfig, given json.RawMessage, f *executor.Format) error {
	if len(given) > 0 {
		members, err := llm.Members(given, "params.generationConfig")
		if err != nil {
			return err
		}
		for _, name := range formatMembers {
			if _, twice := members[name]; twice {
				return llm.Fail(llm.CodeBadRequest, "params.generationConfig.%s: the config has a response_format of its own: leave one out", name)
			}
		}
	}
	config.ResponseMIMEType = "application/json"
	if f.Schema != nil {
		config.ResponseJsonSchema = f.Schema
	}
	return nil
}

// function is a function whose schema is not decoded for each turn.
type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
}

// toolsForm identifies the format of renderTools.
const toolsForm = "gemini.tools"

func renderTools(tools []executor.Tool) ([]byte, error) {
	return llm.RenderTools(schema.Gemini, tools, func(t *executor.Tool, members map[string]any) function {
		return function{t.Name, t.Description, llm.JSON(members)}
	})
}

// newTool returns the functions.
func newTool(req *executor.Request) (*genai.Tool, error) {
	text, err := req.RenderDefined(toolsForm, renderTools)
	if err != nil {
		return nil, err
	}
	var functions []function
	if err := json.Unmarshal(text, &functions); err != nil {
		return nil, llm.Fail(llm.CodeBadRequest, "tools: %s", err)
	}
	all := make([]*genai.FunctionDeclaration, len(functions))
	for i, f := range functions {
		all[i] = &genai.FunctionDeclaration{Name: f.Name, Description: f.Description, ParametersJsonSchema: f.Schema}
	}
	return &genai.Tool{FunctionDeclarations: all}, nil
}

// newToolConfig returns the choice; auto is the default and not sent.
func newToolConfig(req *executor.Request) *genai.ToolConfig {
	calling, choice := &genai.FunctionCallingConfig{}, req.ToolChoice
	if req.Defined != nil { // masked
		if len(req.Tools) == 0 {
			choice = "none"
		}
		for i := range req.Tools {
			calling.AllowedFunctionNames = append(calling.AllowedFunctionNames, req.Tools[i].Name)
		}
	}
	switch choice {
	case "", "auto":
		if req.Defined == nil {
			return nil
		}
		calling.Mode = genai.FunctionCallingConfigModeValidated // ANY would force a call
	case "none":
		calling.Mode, calling.AllowedFunctionNames = genai.FunctionCallingConfigModeNone, nil
	case "required":
		calling.Mode = genai.FunctionCallingConfigModeAny
	default:
		calling.Mode, calling.AllowedFunctionNames = genai.FunctionCallingConfigModeAny, []string{choice}
	}
	return &genai.ToolConfig{FunctionCallingConfig: calling}
}

type contents struct {
	all []*genai.Content
	of  string // the role of our last message
}

func (c *contents) add(role genai.Role, of string, parts ...*genai.Part) {
	if len(parts) == 0 {
		return
	}
	if len(c.all) == 0 && role == genai.RoleModel { // the user's turn must come first
		c.all = append(c.all, genai.NewContentFromText(llm.GoOn, genai.RoleUser))
	}
	if n := len(c.all); n == 0 || c.all[n-1].Role != string(role) {
		c.all = append(c.all, &genai.Content{Role: string(role)})
	}
	last := c.all[len(c.all)-1]
	last.Parts, c.of = append(last.Parts, parts...), of
}

// newContents builds the conversation. Results of one turn are one message. A
// user's text right after them (a steer, or the run was stopped before the
// model answered) follows a short turn of the model: some models refuse two
// user turns in a row, and others take text next to results for a part of them.
func (m *Model) newContents(messages []executor.Message, thoughts llm.Thoughts) []*genai.Content {
	var c contents
	names := make(map[string]string) // of the calls of the latest turn, by id
	for i := range messages {
		msg := &messages[i]
		switch msg.Role {
		case "user":
			if c.of == "tool" {
				c.add(genai.RoleModel, "assistant", &genai.Part{Text: llm.Interrupted})
			}
			c.add(genai.RoleUser, "user", newWords(msg)...)
		case "tool":
			c.add(genai.RoleUser, "tool", newResult(msg, names[msg.CallID]))
		default:
			clear(names)
			for _, call := range msg.Calls {
				names[call.ID] = call.Name
			}
			c.add(genai.RoleModel, "assistant", m.newTurn(msg, thoughts)...)
		}
	}
	return c.all
}

// newWords returns a user message.
func newWords(m *executor.Message) []*genai.Part {
	if len(m.Parts) == 0 {
		return []*genai.Part{{Text: llm.Spoken(m.Text)}}
	}
	var parts []*genai.Part
	for i := range m.Parts {
		if p := &m.Parts[i]; len(p.Data) > 0 {
			parts = append(parts, &genai.Part{InlineData: &genai.Blob{Data: p.Data, MIMEType: p.MediaType}})
		} else if !llm.IsBlank(p.Text) {
			parts = append(parts, &genai.Part{Text: p.Text})
		}
	}
	return parts
}

// newResult returns a call's result; name is the called name.
func newResult(m *executor.Message, name string) *genai.Part {
	key := "output"
	if m.Error {
		key = "error"
	}
	response := &genai.FunctionResponse{ID: llm.CallID(m.CallID), Name: llm.ToolName(name), Response: map[string]any{key: llm.Result(m)}}
	for i := range m.Parts {
		if p := &m.Parts[i]; len(p.Data) > 0 {
			response.Parts = append(response.Parts, &genai.FunctionResponsePart{
				InlineData: &genai.FunctionResponseBlob{Data: p.Data, MIMEType: p.MediaType},
			})
		}
	}
	return &genai.Part{FunctionResponse: response}
}

// skipValidation replaces a signature that the server would refuse: the server
// then checks none, and some models accept no call without one.
const skipValidation = "skip_thought_signature_validator"

// newTurn returns a turn of the model, with the signatures of this server.
func (m *Model) newTurn(msg *executor.Message, thoughts llm.Thoughts) []*genai.Part {
	var parts []*genai.Part
	text := msg.Text
	for _, p := range llm.Pieces(m.of, thoughts, msg) {
		part := &genai.Part{}
		if mark, err := base64.StdEncoding.DecodeString(p.Mark); err == nil && len(mark) > 0 {
			part.ThoughtSignature = mark
		}
		if thoughts == llm.ThoughtsDropped && part.ThoughtSignature != nil {
			part.ThoughtSignature = []byte(skipValidation)
		}
		switch {
		case p.Call > 0:
			call := msg.Calls[p.Call-1]
			part.FunctionCall = &genai.FunctionCall{ID: llm.CallID(call.ID), Name: llm.ToolName(call.Name), Args: arguments(call.Arguments)}
			parts = append(parts, part)
		case p.Text > 0:
			part.Text, text = text[:p.Text], text[p.Text:]
			if !llm.IsBlank(part.Text) {
				parts = append(parts, part)
			}
		}
	}
	return parts
}

// argumentsDepthMax is how deeply arguments may be nested: in the API's protocol
// buffers each level has three messages, and parsers accept a hundred.
const argumentsDepthMax = 30

// arguments returns a call's arguments as an object.
func arguments(text string) map[string]any {
	var object map[string]any
	if json.Unmarshal(llm.Object(text), &object) != nil || depth(object) > argumentsDepthMax {
		return map[string]any{"_invalid": text}
	}
	return object
}

// depth returns how deeply decoded JSON is nested.
func depth(value any) int {
	inner := 0
	switch v := value.(type) {
	case map[string]any:
		for _, member := range v {
			inner = max(inner, depth(member))
		}
	case []any:
		for _, item := range v {
			inner = max(inner, depth(item))
		}
	default:
		return 0
	}
	return 1 + inner
}
