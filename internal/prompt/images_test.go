package prompt

import (
	"bytes"
	"testing"
	"testing/synctest"

	"github.com/refold/refold/actors/session"
)

// The format of the answer is the effect's.
func TestImageIsALineOfTextAndAPart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLog()
		png := blob(l, "\x89PNG and so on")
		png.MediaType = "image/png"
		seq := l.say(t, session.DoorIn, "s1", session.TypeRunRequested, session.RunRequested{
			Input: session.Content{Parts: []session.Content{*text("what is this?"), *png}},
		})
		g := session.Generation{
			Class: session.ClassLLM, Effect: "r1t1", Session: "s1", Provider: "p", Model: "m", V: session.Version,
			Items:          session.ListItems(session.Item{Role: session.RoleUser, Seq: seq}),
			ResponseFormat: raw(t, `{"type":"json_schema","name":"sum","schema":{"type":"object"}}`),
		}
		req, fault, err := New(l).Request(t.Context(), &g)
		if fault != nil || err != nil {
			t.Fatal(fault, err)
		}
		m := req.Messages[0]
		if len(m.Parts) != 2 || m.Parts[0].Text != m.Text || m.Parts[1].MediaType != "image/png" || !bytes.Equal(m.Parts[1].Data, []byte("\x89PNG and so on")) {
			t.Errorf("got %q in the parts %+v", m.Text, m.Parts)
		}
		if f := req.Format; f == nil || f.Name != "sum" || f.Strict || string(f.Schema) != `{"type":"object"}` {
			t.Errorf("format: got %+v", f)
		}
		g.ResponseFormat = raw(t, `{"type":"text"}`)
		if req, _, _ := New(l).Request(t.Context(), &g); req == nil || req.Format != nil {
			t.Errorf("format of words: got %+v", req)
		}
	})
}
