package session_test

// What the fold counts of a transcript, against a sum over the events that its
// items refer to, as docs/semantics.md states the rule.

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

// windowFault says how what a state counted differs from what its transcript
// and the results of its open batch show. event returns an event of its log.
func windowFault(s *session.State, event func(seq uint64) session.Event) error {
	items := slices.Clone(s.Items)
	if t, d := s.Turn, s.Done; t != nil && t.Batch != nil && (d == nil || d.Run != t.Run || d.Turn != t.Number) {
		for i, c := range t.Batch.Calls { // not in the transcript yet
			it := session.Item{Call: int16(i), Edit: c.Edit, Role: session.RoleTool}
			if c.Code == "" { // what the session says of a call counts when it is there
				it.Seq = c.Seq
			}
			items = append(items, it)
		}
	}
	sum := int64(0)
	if s.Window != nil {
		return shortenedFault(s)
	}
	for _, it := range items {
		n, err := itemBytes(it, event)
		if err != nil {
			return fmt.Errorf("an item of event %d: %w", it.Seq, err)
		}
		sum += n
	}
	if int64(s.WindowBytes) != sum {
		return fmt.Errorf("%d bytes are counted, the transcript shows %d", s.WindowBytes, sum)
	}
	if s.Run == nil {
		return nil
	}
	for _, steer := range s.Run.Steers {
		if n, err := itemBytes(session.Item{Seq: steer.Seq}, event); err != nil || n != steer.Bytes {
			return fmt.Errorf("a steer of %d bytes counts as %d (%v)", n, steer.Bytes, err)
		}
	}
	return nil
}

// shortenedFault is windowFault for a transcript that may be shortened: its items count
// what they show.
func shortenedFault(s *session.State) error {
	sum := int64(s.Window.SummaryBytes)
	for _, it := range s.Items {
		sum += int64(it.Bytes)
	}
	if t, d := s.Turn, s.Done; t != nil && t.Batch != nil && (d == nil || d.Run != t.Run || d.Turn != t.Number) {
		for _, c := range t.Batch.Calls {
			sum += int64(c.Bytes)
		}
	}
	if int64(s.WindowBytes) != sum {
		return fmt.Errorf("%d bytes are counted, the items show %d", s.WindowBytes, sum)
	}
	return nil
}

// itemBytes is what an item shows a model.
func itemBytes(it session.Item, event func(seq uint64) session.Event) (int64, error) {
	n := int64(len(it.Code) + len(it.Detail.String()))
	if it.Edit != 0 {
		_, edit, err := saidBy(event(it.Edit))
		if err != nil {
			return 0, err
		}
		n += int64(len(edit.Arguments))
	}
	if it.Code != "" || it.Seq == 0 {
		return n, nil
	}
	typ, said, err := saidBy(event(it.Seq))
	if err != nil {
		return 0, err
	}
	switch typ {
	case session.TypeToolCallSettled, session.TypeChildSettled:
		return n + said.bytes(), nil
	case session.TypeReplyGiven:
		if said.Declined != "" {
			n += int64(len(session.CodeDeclined) + len(said.Declined))
		}
		return n + said.bytes(), nil
	case session.TypeToolBatchSettled:
		for i := range said.Results {
			if strings.HasSuffix(said.Results[i].Effect, fmt.Sprintf("c%d", it.Call)) {
				return n + said.Results[i].bytes(), nil
			}
		}
		return 0, fmt.Errorf("no result of call %d", it.Call)
	}
	for _, c := range said.Calls {
		n += int64(len(c.ToolName) + len(c.Arguments))
	}
	return n + contentBytes(said.Input, false) + contentBytes(said.Text, false), nil
}

// saidBody is what a model may be shown of an event's body.
type saidBody struct {
	shownResult
	Arguments string `json:"arguments"`
	Calls     []struct {
		Arguments string `json:"arguments"`
		ToolName  string `json:"tool_name"`
	} `json:"calls"`
	Declined string           `json:"declined"`
	Input    *session.Content `json:"input"`
	Results  []shownResult    `json:"results"`
	Text     *session.Content `json:"text"`
}

// shownResult is what a model is shown of a call's result.
type shownResult struct {
	Effect string `json:"effect"`
	Error  struct {
		Code   string `json:"code"`
		Detail string `json:"detail"`
	} `json:"error"`
	Output *session.Content `json:"output"`
}

func (r *shownResult) bytes() int64 {
	return contentBytes(r.Output, true) + int64(len(r.Error.Code)+len(r.Error.Detail))
}

// saidBy decodes an event.
func saidBy(e session.Event) (typ string, body saidBody, err error) {
	payload, err := codec.Canonicalize(e.Payload)
	if err != nil {
		return "", body, err
	}
	text, err := codec.ToJSON(payload)
	if err != nil {
		return "", body, err
	}
	env := struct {
		Data *saidBody `json:"data"`
		Type string    `json:"type"`
	}{Data: &body}
	err = json.Unmarshal(text, &env)
	return env.Type, body, err
}

// contentBytes is what a content shows: of a long result a preview, of an image
// or another file a fixed figure.
func contentBytes(c *session.Content, result bool) int64 {
	if c == nil {
		return 0
	}
	n := int64(len(c.Text) + len(c.Name))
	if c.Blob != nil {
		switch kind := strings.SplitN(c.MediaType, ";", 2)[0]; {
		case strings.HasPrefix(kind, "image/"):
			n += 6400
		case kind == "application/pdf":
			n += 6400 * (1 + min(c.Size, 8<<20)/(64<<10))
		case kind != "" && kind != "application/json" && !strings.HasPrefix(kind, "text/"):
			n += 128
		case result && c.Size > 256<<10:
			n += 80 << 10
		default:
			n += min(c.Size, 8<<20)
		}
	}
	for i := range c.Parts {
		n += contentBytes(&c.Parts[i], result)
	}
	return n
}
