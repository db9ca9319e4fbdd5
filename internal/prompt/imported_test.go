package prompt

// What a model is shown of an imported conversation.

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

// imported stores an import: a user's message, two calls, their results, an answer.
func imported(t *testing.T, l *fakeLog) (seq uint64, items []session.Item) {
	t.Helper()
	b := session.TranscriptImported{}
	var contents []byte
	add := func(role session.Role, c session.ImportedContent) {
		line, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		b.Messages = append(b.Messages, session.ImportedMessage{Role: role, Calls: len(c.Calls), Offset: b.Size, Size: int64(len(line))})
		contents, b.Size = append(contents, line...), b.Size+int64(len(line))
	}
	add(session.RoleUser, session.ImportedContent{Content: text("a question")})
	add(session.RoleAssistant, session.ImportedContent{Calls: []session.ImportedCall{{Name: "look", Arguments: `{"a":1}`}, {Name: "find", Arguments: `{}`}}})
	add(session.RoleTool, session.ImportedContent{Content: text("one")})
	add(session.RoleTool, session.ImportedContent{Content: text("two"), Failed: true})
	add(session.RoleAssistant, session.ImportedContent{Content: text("an answer")})
	b.Blob = codec.RefOf(contents)
	l.blobs[b.Blob] = contents
	seq = l.say(t, session.DoorCtl, "s1", session.TypeTranscriptImported, b)
	call := int16(0)
	for i := range b.Messages {
		it := session.Item{Role: b.Messages[i].Role, Seq: seq}
		if it.Role == session.RoleTool {
			it.Call = call
			call++
		}
		items = append(items, it)
	}
	return seq, items
}

// TestImportedItemsAreTheirMessages, also when the first of them left the window, and in a
// compaction, whose list ends among them.
func TestImportedItemsAreTheirMessages(t *testing.T) {
	t.Parallel()
	l := newLog()
	_, items := imported(t, l)
	input := session.Item{Role: session.RoleUser, Seq: l.say(t, session.DoorIn, "s1", session.TypeRunRequested, session.RunRequested{Input: *text("now")})}
	cleared := slices.Clone(items)
	cleared[2].Shown = session.ShownCleared
	all := []string{"user a question", `assistant  r0t2c0 look {"a":1} r0t2c1 find {}`, "tool one of r0t2c0", "tool two of r0t2c1 failed", "assistant an answer"}
	for what, c := range map[string]struct {
		items []session.Item
		cut   uint32
		want  []string
	}{
		"all":                      {append(slices.Clone(items), input), 0, append(slices.Clone(all), "user now")},
		"the first left":           {append(slices.Clone(items[1:]), input), 1, append(slices.Clone(all[1:]), "user now")},
		"all but the last left":    {append(slices.Clone(items[4:]), input), 4, []string{all[4], "user now"}},
		"a compaction":             {items[:1], 0, all[:1]},
		"a second compaction":      {items[1:4], 1, all[1:4]},
		"a result that is cleared": {append(cleared, input), 0, []string{all[0], all[1], "tool [This result of look, 3 bytes, is not shown any more. Call the tool again if you need it.] of r0t2c0", all[3], all[4], "user now"}},
	} {
		for range 2 { // the second time from the cache
			g := generation("r1t1", c.items...)
			g.Cut = c.cut
			request, fault, err := New(l).Request(t.Context(), &g)
			if err != nil || fault != nil {
				t.Fatalf("%s: %v, %v", what, fault, err)
			}
			var got []string
			for _, m := range request.Messages {
				line := m.Role + " " + m.Text
				for _, call := range m.Calls {
					line += fmt.Sprintf(" %s %s %s", call.ID, call.Name, call.Arguments)
				}
				if m.CallID != "" {
					line += " of " + m.CallID
				}
				if m.Error {
					line += " failed"
				}
				got = append(got, line)
			}
			if c.cut > 0 {
				got = got[1:] // the line in the place of what left
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%s: got %q, want %q", what, got, c.want)
			}
		}
	}
}

// TestDamagedImportIsAFault: nothing that its blob has, or lacks, ends the bridge.
func TestDamagedImportIsAFault(t *testing.T) {
	t.Parallel()
	for what, edit := range map[string]func(l *fakeLog, b *session.TranscriptImported, items []session.Item) []session.Item{
		"the blob is lost": func(l *fakeLog, b *session.TranscriptImported, items []session.Item) []session.Item {
			delete(l.blobs, b.Blob)
			return items
		},
		"the blob is longer": func(_ *fakeLog, b *session.TranscriptImported, items []session.Item) []session.Item {
			b.Size++
			return items
		},
		"beyond the blob": func(_ *fakeLog, b *session.TranscriptImported, items []session.Item) []session.Item {
			b.Messages[4].Size++
			return items
		},
		"no JSON": func(_ *fakeLog, b *session.TranscriptImported, items []session.Item) []session.Item {
			b.Messages[1].Offset++
			return items
		},
		"other calls": func(_ *fakeLog, b *session.TranscriptImported, items []session.Item) []session.Item {
			b.Messages[1].Calls++
			return items
		},
		"more items": func(_ *fakeLog, _ *session.TranscriptImported, items []session.Item) []session.Item {
			return append(items, items...)
		},
		"a result without a call": func(_ *fakeLog, _ *session.TranscriptImported, items []session.Item) []session.Item {
			return items[2:3]
		},
	} {
		l := newLog()
		seq, items := imported(t, l)
		body, err := Body(l.events[seq-1])
		if err != nil {
			t.Fatal(err)
		}
		b := body.(*session.TranscriptImported)
		items = edit(l, b, items)
		payload, err := session.Envelope{V: session.Version, Type: session.TypeTranscriptImported}.With(b)
		if err != nil {
			t.Fatal(err)
		}
		l.events[seq-1].Payload = payload
		g := generation("r1t1", items...)
		if what == "a result without a call" {
			g.Cut = 2
		}
		if _, fault, err := New(l).Request(t.Context(), &g); err != nil || fault == nil || fault.Code != codeTranscript {
			t.Errorf("%s: got %v (%v), want the fault %s", what, fault, err, codeTranscript)
		}
	}
}
