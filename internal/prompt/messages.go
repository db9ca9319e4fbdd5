package prompt

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
)

func userMessage(it session.Item, s *entry) (executor.Message, error) {
	if it.Code == session.CodeInvalidAnswer {
		return executor.Message{Role: string(session.RoleUser), Text: RepairText(it.Detail.String())}, nil
	}
	if s == nil || s.kind != kindInput {
		return executor.Message{}, unreadable(it.Seq, "is no input")
	}
	text, images := cutText(it, s.text, s.images)
	return executor.Message{Role: string(session.RoleUser), Text: text, Parts: shown(text, images)}, nil
}

// cutMessage tells the model how many messages left the window.
func cutMessage(n uint32) executor.Message {
	return executor.Message{Role: string(session.RoleUser), Text: fmt.Sprintf("[This conversation began earlier: its first %d messages are not shown any more.]", n)}
}

// cutText returns what is shown of the text and the images of an item that may be too
// large for its window: of one that is, the beginning and the end of the text.
func cutText(it session.Item, text string, images []executor.Part) (string, []executor.Part) {
	if it.Shown != session.ShownCut {
		return text, images
	}
	return middleCut(text, int(it.Bytes)*3/4, int(it.Bytes)/4, nil), nil
}

// clearedText stands in the place of the result of a tool. again reports whether the
// model can read it again.
func clearedText(call, tool string, bytes int, again bool) string {
	if again {
		return fmt.Sprintf("[The result of %s, %d bytes of %s, is cleared; read_result reads it again.]", call, bytes, tool)
	}
	return fmt.Sprintf("[This result of %s, %d bytes, is not shown any more. Call the tool again if you need it.]", tool, bytes)
}

// RepairText asks the model to repair an answer; problem is what is wrong with it.
func RepairText(problem string) string {
	return "Your answer does not have the required form: " + problem + ". Answer again with nothing but the JSON: no other text, no code fence."
}

func assistantMessage(it session.Item, s *entry) (executor.Message, error) {
	if s == nil || s.kind != kindTurn {
		return executor.Message{}, unreadable(it.Seq, "is no turn of a model")
	}
	m := executor.Message{Role: string(session.RoleAssistant), Text: s.text, Opaque: s.opaque}
	if len(s.calls) > 0 {
		m.Calls = make([]executor.MessageCall, 0, len(s.calls))
	}
	for i := range s.calls {
		c := &s.calls[i]
		call := executor.MessageCall{ID: callID(s.batch, i), Name: c.ToolName, Arguments: c.Arguments}
		if c.ArgumentsBlob != nil {
			call.Omitted = max(1, c.Size)
			call.Arguments = omittedArguments(call.Omitted)
		}
		m.Calls = append(m.Calls, call)
	}
	return m, nil
}

// omittedArguments replaces arguments that were too large for an event. The
// result is an object, which some providers require, and gives the reason. The
// original is not read back: it would be shown, and paid for, in every later
// turn, and the call was refused for its size.
func omittedArguments(bytes int64) string {
	return `{"omitted":"` + strconv.FormatInt(bytes, 10) + ` bytes of arguments"}`
}

// callID returns a call's name, which is the name of its effect.
func callID(batch string, call int) string { return batch + "c" + strconv.Itoa(call) }

// editedMessage is toolMessage for a call whose arguments a person may have
// changed. The model's own call stays unchanged, so the result begins with the
// arguments that were run.
func editedMessage(it session.Item, s, asked, edit *entry, again bool) (executor.Message, error) {
	m, err := toolMessage(it, s, asked, again)
	if it.Edit == 0 || err != nil {
		return m, err
	}
	if edit == nil || edit.kind != kindEdit {
		return executor.Message{}, unreadable(it.Edit, "is no approval that changed arguments")
	}
	m.Text = "A person changed the arguments of this call to " + edit.edited + "\n" + m.Text
	if m.Parts != nil {
		m.Parts[0].Text = m.Text
	}
	return m, nil
}

// toolMessage returns the result of the call at it.Call of the latest turn. again reports
// whether the model has the tool that reads results.
func toolMessage(it session.Item, s, asked *entry, again bool) (executor.Message, error) {
	if asked == nil || it.Call < 0 || int(it.Call) >= len(asked.calls) {
		return executor.Message{}, unreadable(it.Seq, "is the result of a call that no turn made")
	}
	m := executor.Message{Role: string(session.RoleTool), CallID: callID(asked.batch, int(it.Call))}
	if session.IsSuccessCode(it.Code) {
		m.Text = it.Detail.String()
		return m, nil
	}
	if it.Code != "" {
		m.Text, m.Error = faultText(it.Code, it.Detail.String()), true
		return m, nil
	}
	if s == nil || len(s.results) == 0 {
		return executor.Message{}, unreadable(it.Seq, "is no result of a tool call")
	}
	r := s.result(m.CallID)
	if r == nil {
		return executor.Message{}, unreadable(it.Seq, "has no result of "+m.CallID)
	}
	m.Text, m.Error = shownResult(r)
	if it.Shown == session.ShownCleared {
		m.Text = clearedText(m.CallID, asked.calls[it.Call].ToolName, len(m.Text), again)
		return m, nil
	}
	text, images := cutText(it, m.Text, r.images)
	if again && (r.cut || len(text) < len(m.Text)) {
		text += "\n[read_result reads all of the result of " + m.CallID + ".]"
	}
	m.Text, m.Parts = text, shown(text, images)
	return m, nil
}

// shownResult returns a call's result as a model is shown it, and whether it is a
// failure.
func shownResult(r *result) (text string, failed bool) {
	text = r.text
	if r.status != session.CallSucceeded {
		failed = true
		fault := session.Fault{Code: string(r.status)}
		if r.fault != nil {
			fault = *r.fault
		}
		text = faultText(fault.Code, fault.Detail)
		if r.text != "" {
			text += "\n" + r.text
		}
	}
	if text == "" {
		text = "(no output)"
	}
	return text, failed
}

// shown returns the parts of a message: its text, then the images that the text
// names; nil without images.
func shown(text string, images []executor.Part) []executor.Part {
	if len(images) == 0 {
		return nil
	}
	return append([]executor.Part{{Text: text}}, images...)
}

func faultText(code, detail string) string {
	return strings.TrimSuffix("error: "+code+": "+detail, ": ")
}
