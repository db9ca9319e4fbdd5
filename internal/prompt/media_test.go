package prompt

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/refold/refold/actors/session"
)

// What of a blob is shown as text, and what is handed to the provider's client, by
// its label and its bytes.
func TestFilesOfAnInput(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		png, err := os.ReadFile("../media/testdata/dot.png")
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			name, label, content string
			want, part           string // the line of text; the label of the part
		}{
			{"photo.png", "image/png", string(png), "[photo.png, image/png, 91 bytes, sha256-", "image/png"},
			{"", "image/png", string(png), "[image/png, 91 bytes, sha256-", "image/png"},
			{"paper.pdf", "application/pdf", "%PDF-1.4 and so on", "[paper.pdf, application/pdf, 18 bytes, sha256-", "application/pdf"},
			{"shot", "application/octet-stream", string(png), "[shot, application/octet-stream, 91 bytes, sha256-", "image/png"},
			{"shot", "binary/octet-stream", string(png), "[shot, binary/octet-stream, 91 bytes, sha256-", "image/png"},
			{"shot", "PNG", string(png), "[shot, PNG, 91 bytes, sha256-", "image/png"},
			{"shot", "image/jpeg", string(png), "[shot, image/jpeg, 91 bytes, sha256-", "image/png"},
			{"shot", "text/plain", string(png), "[shot, image/png, labelled as text, 91 bytes, sha256-", "image/png"},
			{"shot", "text/html; charset=utf-8", string(png), "[shot, image/png, labelled as text, 91 bytes, sha256-", "image/png"},
			{"shot", "application/json", string(png), "[shot, image/png, labelled as text, 91 bytes, sha256-", "image/png"},
			{"shot", "", string(png), "[shot, image/png, labelled as text, 91 bytes, sha256-", "image/png"},
			{"paper", "text/plain", "%PDF-1.4 \xff\xfe", "[paper, application/pdf, labelled as text, 11 bytes, sha256-", "application/pdf"},
			{"drawing.svg", "image/svg+xml", "<svg/>", "[drawing.svg, image/svg+xml, 6 bytes, sha256-", "image/svg+xml"},
			{"song.mp3", "audio/mpeg", string(png), "[song.mp3, audio/mpeg, 91 bytes, sha256-", ""},
			{"data.bin", "application/octet-stream", "PK\x03\x04", "[data.bin, application/octet-stream, 4 bytes, sha256-", ""},
			{"a.zip", "application/zip", "PK\x03\x04", "[a.zip, application/zip, 4 bytes, sha256-", ""},
			{"notes \"1\".txt", "text/plain", "GIF89a is a format.\n", "<document path=\"notes &quot;1&quot;.txt\">\nGIF89a is a format.\n</document>", ""},
			{"", "text/plain", "%PDF- begins a document", "%PDF- begins a document", ""},
		} {
			l := newLog()
			file := blob(l, c.content)
			file.MediaType, file.Name = c.label, c.name
			seq := l.say(t, session.DoorIn, "s1", session.TypeRunRequested, session.RunRequested{Input: session.Content{Parts: []session.Content{*text("see"), *file}}})
			g := session.Generation{
				Class: session.ClassLLM, Effect: "r1t1", Session: "s1", Provider: "p", Model: "m", V: session.Version,
				Items: session.ListItems(session.Item{Role: session.RoleUser, Seq: seq}),
			}
			req, fault, err := New(l).Request(t.Context(), &g)
			if fault != nil || err != nil {
				t.Fatal(fault, err)
			}
			m := req.Messages[0]
			if !strings.HasPrefix(m.Text, "see\n"+c.want) {
				t.Errorf("%s as %s: got %q, want %q", c.name, c.label, m.Text, c.want)
			}
			switch {
			case c.part == "" && m.Parts != nil:
				t.Errorf("%s as %s: got the parts %+v", c.name, c.label, m.Parts)
			case c.part != "" && (len(m.Parts) != 2 || m.Parts[0].Text != m.Text || m.Parts[1].MediaType != c.part || m.Parts[1].Name != c.name || string(m.Parts[1].Data) != c.content):
				t.Errorf("%s as %s: got the parts %+v", c.name, c.label, m.Parts)
			}
		}
	})
}

// Results are read as inputs are. Their previews too name a file that has the label
// of a text.
func TestFilesOfAResult(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		png, err := os.ReadFile("../media/testdata/dot.png")
		if err != nil {
			t.Fatal(err)
		}
		l := newLog()
		shot := blob(l, string(png))
		shot.MediaType = "text/plain"
		g := batch(t, l, session.ToolCallSettled{Effect: "r1t1c2", Status: "succeeded", Output: &session.Content{Parts: []session.Content{*text("see"), *shot}}})
		req, fault, err := New(l).Request(t.Context(), &g)
		if fault != nil || err != nil {
			t.Fatal(fault, err)
		}
		m := req.Messages[len(req.Messages)-1]
		if !strings.HasPrefix(m.Text, "see\n[image/png, labelled as text, 91 bytes, sha256-") || len(m.Parts) != 2 || string(m.Parts[1].Data) != string(png) {
			t.Errorf("got %+v", m)
		}
	})
}

// A transcript with more images than a request may have shows the latest. Which
// these are does not depend on what is cached.
func TestLatestImagesAreRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLog()
		r := New(l)
		g := session.Generation{Class: session.ClassLLM, Effect: "r1t1", Session: "s1", Provider: "p", Model: "m", V: session.Version}
		const each = 8 << 20 // as the events state
		for i := range 8 {
			image := blob(l, fmt.Sprintf("image %d", i))
			image.MediaType, image.Size = "image/png", each
			if i%3 == 2 { // labelled as text: only its bytes say what it is
				image = blob(l, "\x89PNG\r\n\x1a\n"+strings.Repeat("\x00", each-1024)+fmt.Sprintf("%64d", i))
				image.MediaType = "text/plain"
			}
			seq := l.say(t, session.DoorIn, "s1", session.TypeRunRequested, session.RunRequested{Input: *image})
			g.Items = also(t, g.Items, session.Item{Role: session.RoleUser, Seq: seq})
			cached, fault, err := r.Request(t.Context(), &g)
			if fault != nil || err != nil {
				t.Fatal(fault, err)
			}
			fresh, _, _ := New(l).Request(t.Context(), &g)
			if !reflect.DeepEqual(cached.Messages, fresh.Messages) {
				t.Errorf("after %d images: cached events show other messages", i+1)
			}
			for j, m := range cached.Messages {
				if shown, want := m.Parts != nil, i-j < mediaBytesMax/each; shown != want || !strings.HasPrefix(m.Text, "[image/png, ") {
					t.Errorf("after %d images: image %d is shown: %v, with %q", i+1, j, shown, m.Text)
				}
			}
		}
	})
}

// A faulty answer's item has no event of its own: its code and its detail are the
// text.
func TestModelIsAskedToRepairItsAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLog()
		asked := l.say(t, session.DoorIn, "s1", session.TypeRunRequested, session.RunRequested{Input: *text("sum?")})
		answered := l.say(t, session.DoorLLM, "s1", session.TypeGenerationSettled, session.GenerationSettled{Effect: "r1t1", Status: "ok", Text: text("3")})
		g := session.Generation{
			Class: session.ClassLLM, Effect: "r1t2", Session: "s1", Provider: "p", Model: "m", V: session.Version,
			Items: session.ListItems(
				session.Item{Role: session.RoleUser, Seq: asked}, session.Item{Role: session.RoleAssistant, Seq: answered},
				session.Item{Role: session.RoleUser, Seq: answered, Code: session.CodeInvalidAnswer, Detail: "is of type object"},
			),
		}
		req, fault, err := New(l).Request(t.Context(), &g)
		if fault != nil || err != nil {
			t.Fatal(fault, err)
		}
		got := req.Messages[2]
		const want = "Your answer does not have the required form: is of type object. Answer again with nothing but the JSON: no other text, no code fence."
		if len(req.Messages) != 3 || got.Role != "user" || got.Text != want || got.Parts != nil {
			t.Errorf("got %+v, want %q", got, want)
		}
	})
}
