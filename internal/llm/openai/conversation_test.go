package openai

// The order of messages for servers with strict chat templates, and for OpenAI.

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/llm"
)

// TestRolesAlternate: a short message stands where strict servers require one, and
// nowhere else. It has a thought once the server has sent one.
func TestRolesAlternate(t *testing.T) {
	t.Parallel()
	user, said := executor.Message{Role: "user", Text: "u"}, executor.Message{Role: "assistant", Text: "a"}
	empty := executor.Message{Role: "assistant", Text: " \n"}
	asked := executor.Message{Role: "assistant", Calls: []executor.MessageCall{{ID: "r1t1c0", Name: "look"}}}
	thought := asked
	thought.Opaque = llm.Seal("openai-chat x", []llm.Piece{{Item: `{"reasoning_content":"so"}`}, {Call: 1}})
	told := executor.Message{Role: "tool", CallID: "r1t1c0", Text: "t"}
	shot := told
	shot.Parts = []executor.Part{{Text: "t"}, {MediaType: "image/png", Data: []byte("png")}}
	for _, c := range []struct {
		messages     []executor.Message
		want, openai string
	}{
		{[]executor.Message{user, said, user}, "u a u", "u a u"},
		{[]executor.Message{user, user}, "u (interrupted) u", "u u"},
		{[]executor.Message{user, empty, user}, "u (interrupted) u", "u u"},
		{[]executor.Message{user, asked, told, user}, "u call t (interrupted) u", "u call t u"},
		{[]executor.Message{user, asked, told, empty, user}, "u call t (interrupted) u", "u call t u"},
		{[]executor.Message{user, asked, told, said, user}, "u call t a u", "u call t a u"},
		{[]executor.Message{user, asked, shot}, "u call t (images follow) image", "u call t image"},
		{[]executor.Message{user, asked, shot, user}, "u call t (images follow) image (interrupted) u", "u call t image u"},
		{[]executor.Message{said, user}, "(go on) a u", "a u"},
		{[]executor.Message{said, said, user}, "(go on) a (go on) a u", "a a u"},
		{[]executor.Message{user, user, thought, told, user}, "u (interrupted) u call+so t (interrupted)+(none) u", "u u call+so t u"},
	} {
		for _, m := range []*Model{{of: "openai-chat x"}, {of: "openai-chat x", openai: true}} {
			want := c.want
			if m.openai {
				want = c.openai
			}
			var got []string
			for _, message := range m.newMessages(c.messages, llm.ThoughtsSent) {
				var sent struct {
					Content json.RawMessage `json:"content"`
					Calls   []any           `json:"tool_calls"`
					Thought string          `json:"reasoning_content"`
				}
				if err := json.Unmarshal(llm.JSON(message), &sent); err != nil {
					t.Fatal(err)
				}
				text := strings.Trim(string(sent.Content), `"`)
				switch {
				case len(sent.Calls) > 0:
					text = "call"
				case strings.Contains(text, "image_url"):
					text = "image"
				}
				if sent.Thought != "" {
					text += "+" + sent.Thought
				}
				got = append(got, text)
			}
			if said := strings.Join(got, " "); said != want {
				t.Errorf("openai is %v: got %s, want %s", m.openai, said, want)
			}
		}
	}
}
