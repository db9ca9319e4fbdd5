//go:build peers

package conformance

// Builds the requests for which Refold sends what was recorded.

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/refold/refold/bridge/executor"
)

// soFar is a conversation that is played: what was recorded, and what our
// client made of the answers so far.
type soFar struct {
	answers []executor.Answer
	server  *server
}

// request makes the request that comes to what in says, with our own answers as
// the turns of the model.
func (p *soFar) request(model string, in told) (executor.Request, error) {
	req := executor.Request{Session: "s1", Effect: fmt.Sprintf("r1t%d", len(p.answers)+1), Model: model, ToolChoice: in.choice, Params: in.params()}
	if f := in.format; f != nil {
		req.Format = &executor.Format{Name: f.name, Schema: json.RawMessage(f.schema), Strict: f.strict}
	}
	for _, t := range in.tools {
		req.Tools = append(req.Tools, executor.Tool{Name: t.Name, Description: t.Mark, Schema: json.RawMessage(t.Value)})
	}
	turns := 0
	for i := 0; i < len(in.entries); {
		run := in.entries[i:]
		for n := range run {
			if run[n].Who != run[0].Who || run[0].Who == "tool" && run[n].ID != run[0].ID {
				run = run[:n]
				break
			}
		}
		i += len(run)
		switch run[0].Who {
		case "system":
			for _, e := range run {
				req.System += e.Value
			}
		case "model":
			if turns == len(p.answers) {
				return req, fmt.Errorf("a turn of the model of which there is no answer: %+v", run)
			}
			req.Messages = append(req.Messages, turn(p.answers[turns], run))
			turns++
		default:
			message, err := spoken(run)
			if err != nil {
				return req, err
			}
			req.Messages = append(req.Messages, message)
		}
	}
	return req, nil
}

// params are the members that are no other part of a request, but for those
// that our clients set by themselves.
func (t *told) params() json.RawMessage {
	rest := map[string]json.RawMessage{}
	for name, value := range t.rest {
		switch name {
		case "stream_options", "store", "include":
		default:
			rest[name] = value
		}
	}
	if len(rest) == 0 {
		return nil
	}
	return json.RawMessage(encode(rest))
}

// turn is what the model said, as it stands in a conversation. Ids are those of
// the recorded request, so that both can be compared.
func turn(a executor.Answer, recorded []entry) executor.Message {
	m := executor.Message{Role: "assistant", Text: a.Text, Opaque: a.Opaque}
	var ids []string
	for _, e := range recorded {
		if e.Kind == "call" {
			ids = append(ids, e.ID)
		}
	}
	for i, c := range a.Calls {
		call := executor.MessageCall{ID: c.ID, Name: c.Name, Arguments: c.Arguments}
		if i < len(ids) {
			call.ID = ids[i]
		}
		m.Calls = append(m.Calls, call)
	}
	return m
}

// spoken is what a user said, or a result.
func spoken(run []entry) (executor.Message, error) {
	m := executor.Message{Role: run[0].Who, CallID: run[0].ID}
	var images int
	for _, e := range run {
		if e.Kind != "image" {
			m.Text += e.Value
			m.Parts = append(m.Parts, executor.Part{Text: e.Value})
			continue
		}
		images++
		part, err := imageOf(e.Value)
		if err != nil {
			return m, err
		}
		m.Parts = append(m.Parts, part)
	}
	if images == 0 {
		m.Parts = nil
	}
	return m, nil
}

// imageOf reads an image, in whichever form.
func imageOf(value string) (executor.Part, error) {
	var in map[string]string
	if rest, ok := strings.CutPrefix(value, "data:"); ok {
		media, data, _ := strings.Cut(rest, ";base64,")
		in = map[string]string{"media_type": media, "data": data}
	} else if err := json.Unmarshal([]byte(value), &in); err != nil {
		return executor.Part{}, err
	}
	data, err := base64.StdEncoding.DecodeString(in["data"])
	return executor.Part{MediaType: in["media_type"] + in["mimeType"], Data: data}, err
}

// again is the next request after a conversation that was recorded to its end: so
// that what the model said last is sent back too.
func (p *soFar) again(last executor.Request, said heard) executor.Request {
	req := last
	req.Effect += "a"
	req.Messages = append(req.Messages[:len(req.Messages):len(req.Messages)], turn(p.answers[len(p.answers)-1], said.entries))
	for i, c := range req.Messages[len(req.Messages)-1].Calls {
		if c.ID == "" {
			c.ID = fmt.Sprintf("c%d", i)
			req.Messages[len(req.Messages)-1].Calls[i].ID = c.ID
		}
		req.Messages = append(req.Messages, executor.Message{Role: "tool", CallID: c.ID, Text: "nothing"})
	}
	if len(said.calls) == 0 {
		req.Messages = append(req.Messages, executor.Message{Role: "user", Text: "and then"})
	}
	return req
}
