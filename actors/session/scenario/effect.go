package scenario

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

// drawFields draws an effect's payload, or another object: one field a line, times
// relative to the session's clock, sequences as the number of the session's event,
// and the session's name as SID.
func drawFields(payload []byte, v session.View, seqs []uint64) (string, error) {
	var fields codec.Pairs
	if err := codec.Decode(payload, &fields); err != nil {
		return "", fmt.Errorf("scenario: show: %w", err)
	}
	var b strings.Builder
	inputs := false
	for _, f := range fields {
		text, err := codec.ToJSON(f.Value)
		if err != nil {
			return "", fmt.Errorf("scenario: show: %s: %w", f.Key, err)
		}
		if f.Key == "prompt" {
			text, inputs = numberInputs(text, seqs)
		}
		if f.Key == "prompt_mark" && inputs { // the sequence of the input is part of it
			continue
		}
		b.WriteString(f.Key + ": " + effectField(f.Key, text, v, seqs) + "\n")
	}
	return b.String(), nil
}

// inputOf matches the sequence of the input that is the arguments of a skill.
var inputOf = regexp.MustCompile(`"input":([0-9]+)`)

// numberInputs replaces the sequences of inputs in a prompt by the numbers of the events,
// and reports whether there are any.
func numberInputs(prompt []byte, seqs []uint64) (text []byte, any bool) {
	return inputOf.ReplaceAllFunc(prompt, func(found []byte) []byte {
		seq, err := strconv.ParseUint(string(inputOf.FindSubmatch(found)[1]), 10, 64)
		if err != nil {
			return found
		}
		return []byte(`"input":` + strings.TrimSpace(numbers([]uint64{seq}, seqs)))
	}), inputOf.Match(prompt)
}

func effectField(name string, text []byte, v session.View, seqs []uint64) string {
	switch name {
	case "at", "start_by", "due", "deadline":
		if ms, err := strconv.ParseInt(string(text), 10, 64); err == nil {
			return span(ms - v.Clock)
		}
	case "session", "idempotency_key":
		return strings.Replace(string(text), v.Session, "SID", 1)
	case "items":
		if items, err := listedItems(text); err == nil {
			var words []string
			for _, it := range items {
				words = append(words, itemText(it, seqs))
			}
			return strings.Join(words, ", ")
		}
	case "spaces":
		var used []struct{ Hash, Space string } // the time of the apply differs from run to run
		if json.Unmarshal(text, &used) == nil {
			var words []string
			for _, u := range used {
				words = append(words, u.Space+" "+u.Hash[:min(8, len(u.Hash))])
			}
			return strings.Join(words, ", ")
		}
	case "input_seq", "summary":
		if seq, err := strconv.ParseUint(string(text), 10, 64); err == nil {
			return strings.TrimSpace(numbers([]uint64{seq}, seqs))
		}
	case "calls":
		var calls []shownCall
		if json.Unmarshal(text, &calls) == nil {
			var b strings.Builder
			for i := range calls {
				b.WriteString("\n  " + calls[i].text(seqs))
			}
			return b.String()
		}
	case "tools":
		var refs []string
		if json.Unmarshal(text, &refs) == nil {
			return count(len(refs), "descriptor")
		}
		var offerable []struct {
			ToolName string `json:"tool_name"`
		}
		if json.Unmarshal(text, &offerable) == nil {
			var names []string
			for _, tool := range offerable {
				names = append(names, tool.ToolName)
			}
			return "[" + strings.Join(names, " ") + "]"
		}
	}
	return string(text)
}

// listedItems returns the items of an effect's JSON form.
func listedItems(text []byte) ([]session.Item, error) {
	packed, err := codec.FromJSON(text)
	if err != nil {
		return nil, err
	}
	var list session.ItemList
	if err := codec.Unmarshal(packed, &list); err != nil {
		return nil, err
	}
	return list.Items()
}

// itemText formats an item: its role, the number of its event, and for a result the
// call's index, the code, and the event that edited the call's arguments.
func itemText(it session.Item, seqs []uint64) string {
	text := string(it.Role) + numbers([]uint64{it.Seq}, seqs)
	if it.Role == session.RoleTool {
		text += " call " + strconv.Itoa(int(it.Call))
	}
	if it.Code != "" {
		text += " " + it.Code
	}
	if it.Edit != 0 {
		text += " edited by" + numbers([]uint64{it.Edit}, seqs)
	}
	switch it.Shown {
	case session.ShownWhole:
	case session.ShownCleared:
		text += " cleared"
	case session.ShownCut:
		text += fmt.Sprintf(" %d bytes", it.Bytes)
	}
	return text
}

// shownCall is a call in a step hook's effect.
type shownCall struct {
	Arguments string `json:"arguments"`
	Cut       bool   `json:"arguments_cut"`
	CallsSeq  uint64 `json:"calls_seq"`
	Code      string `json:"code"`
	Edit      uint64 `json:"edit"`
	Effect    string `json:"effect"`
	Seq       uint64 `json:"seq"`
	Status    string `json:"status"`
	Step      int    `json:"step"`
	ToolID    string `json:"tool_id"`
	ToolName  string `json:"tool_name"`
}

// text formats a call: its name, tool and arguments, the event that made it, and
// its status with the event of the result.
func (c *shownCall) text(seqs []uint64) string {
	text := c.Effect + " in step " + strconv.Itoa(c.Step) + " by" + numbers([]uint64{c.CallsSeq}, seqs) + ": " + c.ToolName
	if c.ToolID != "" {
		text += " (" + c.ToolID + ")"
	}
	switch {
	case c.Cut:
		text += " " + count(len(c.Arguments), "byte") + " of more"
	case c.Arguments != "":
		text += " " + c.Arguments
	}
	if c.Edit != 0 {
		text += " edited by" + numbers([]uint64{c.Edit}, seqs)
	}
	return strings.TrimSpace(text+" "+c.Status+" "+c.Code) + numbers([]uint64{c.Seq}, seqs)
}
