package conformance

// Images and documents, in inputs and in results, for all four APIs. The files are
// those of internal/media/testdata. What the APIs take is checked by the rules of
// proof/strict, which follow the published documents, and by the table below.

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"image"
	picture "image/png"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/llm/endpoint"
	"github.com/refold/refold/internal/llm/openai"
)

// mediaFile returns a file of internal/media/testdata.
func mediaFile(name string) []byte {
	data, err := os.ReadFile("../../media/testdata/" + name)
	if err != nil {
		panic(err)
	}
	return data
}

// TestFilesAreSentByTheirBytes: the label says what it likes. A file that an API
// does not take is a line of text, and the request is valid.
func TestFilesAreSentByTheirBytes(t *testing.T) {
	t.Parallel()
	const chat, responses, claude, google = 1, 2, 4, 8
	const all = chat | responses | claude | google
	for _, c := range []struct {
		file, label string
		taken       int    // by which APIs
		as          string // its type there
		why         string // where it is not taken
	}{
		{"dot.png", "image/png", all, "image/png", ""},
		{"dot.png", "image/jpeg", all, "image/png", ""}, // anthropics/claude-code#13131
		{"dot.jpg", "image/png", all, "image/jpeg", ""}, // anthropics/claude-code#15746
		{"dot.jpg", "image/jpg", all, "image/jpeg", ""}, // not a registered type; APIs refuse it
		{"dot.webp", "image/png", all, "image/webp", ""},
		{"dot.gif", "image/gif", chat | responses | claude, "image/gif", "takes image/png, image/jpeg, image/webp"},
		{"moving.gif", "image/gif", claude, "image/gif", "takes "},
		{"dot.heic", "image/heic", google, "image/heic", "takes image/png"},
		{"dot.heif", "image/jpeg", google, "image/heif", "takes image/png"},
		{"dot.avif", "image/avif", 0, "", "image/avif, 69 bytes, is not shown: "},
		{"page.pdf", "application/pdf", responses | claude | google, "application/pdf", "this server takes no documents"},
		{"page.pdf", "image/png", responses | claude | google, "application/pdf", "this server takes no documents"},
		{"README.md", "image/svg+xml", 0, "", "by its first bytes it is no image and no PDF"},
	} {
		data := mediaFile(c.file)
		file := executor.Part{Name: "the-" + c.file, MediaType: c.label, Data: data}
		text := base64.StdEncoding.EncodeToString(data)
		for i, a := range apis() {
			taken := c.taken&(1<<i) != 0
			for place, req := range map[string]executor.Request{
				"an input": messages("", pictured(user("see\n[file]"), executor.Part{Text: "see\n[file]"}, file)).req,
				"a prompt": messages("", pictured(user("see"), file, executor.Part{Text: "see"})).req,
				"a result": messages("", user("hi"), says("", call("r1t1c0", "{}")), pictured(result("r1t1c0", "see\n[file]"), executor.Part{Text: "see\n[file]"}, file)).req,
			} {
				name := fmt.Sprintf("%s, %s as %s in %s", a.name, c.file, c.label, place)
				body := sent(t, a, req)
				if err := a.check([]byte(body)); err != nil {
					t.Errorf("%s: %v\n%.1500s", name, err, body)
				}
				switch {
				case !strings.Contains(body, "see"):
					t.Errorf("%s: the text is lost: %.1500s", name, body)
				case taken && (!strings.Contains(body, text) || !strings.Contains(body, c.as) || strings.Contains(body, "is not shown")):
					t.Errorf("%s: got %.1500s, want %s", name, body, c.as)
				case !taken && (strings.Contains(body, text) || !strings.Contains(body, "[the-"+c.file+", ") || !strings.Contains(body, c.why)):
					t.Errorf("%s: got %.1500s, want %q", name, body, c.why)
				}
			}
		}
	}
}

// TestFilesThatAreTooLarge: APIs count base64.
func TestFilesThatAreTooLarge(t *testing.T) {
	t.Parallel()
	// lobehub/lobehub#14711: 4.7 MB of file were 6.3 MB of base64, over Anthropic's 5 MB.
	large := append(mediaFile("dot.png"), make([]byte, 4<<20)...)
	for _, a := range apis()[1:3] {
		body := sent(t, a, messages("", pictured(user("see"), executor.Part{Text: "see"}, executor.Part{MediaType: "image/png", Data: large})).req)
		if err := a.check([]byte(body)); err != nil {
			t.Errorf("%s: %v", a.name, err)
		}
		const why = "Anthropic's API takes images of at most 5242880 bytes in base64, and it has 5592528: make it smaller"
		if got := strings.Contains(body, why); got != (a.name == "anthropic") {
			t.Errorf("%s: a line of text is %v: %.500s", a.name, got, body)
		}
	}
	var wide bytes.Buffer
	must(t, picture.Encode(&wide, image.NewGray(image.Rect(0, 0, 8001, 1))))
	for _, a := range apis() {
		body := sent(t, a, messages("", pictured(user("see"), executor.Part{Text: "see"}, executor.Part{MediaType: "image/png", Data: wide.Bytes()})).req)
		if got := strings.Contains(body, "at most 8000 pixels a side, and it has 8001 by 1"); got != (a.name == "anthropic") {
			t.Errorf("%s: a line of text is %v: %.500s", a.name, got, body)
		}
	}
}

// TestManyImages: Anthropic's API takes a hundred images, and twenty if one of them
// is large.
func TestManyImages(t *testing.T) {
	t.Parallel()
	var wide bytes.Buffer
	must(t, picture.Encode(&wide, image.NewGray(image.Rect(0, 0, 2001, 1))))
	const manyWhy, largeWhy = "more than one request may have", "takes at most 20 images if one has more than 2000 pixels a side"
	for what, c := range map[string]struct {
		large map[int]bool // numbers of images that are large
		all   int
		sent  int // by Anthropic's client
		why   string
	}{
		"small ones":                {nil, 100, 100, ""},
		"too many":                  {nil, 103, 100, manyWhy}, // anthropics/claude-code#19822
		"a few large ones":          {map[int]bool{0: true, 19: true}, 20, 20, ""},
		"an early one is large":     {map[int]bool{0: true}, 30, 29, largeWhy}, // anthropics/claude-code#49720
		"one of the latest is":      {map[int]bool{29: true}, 30, 20, largeWhy},
		"one before the latest ten": {map[int]bool{19: true}, 30, 20, largeWhy},
	} {
		all := []executor.Message{user("hi")}
		for i := range c.all {
			data := png
			if c.large[i] {
				data = wide.Bytes()
			}
			id := fmt.Sprintf("r1t%dc0", i+1)
			all = append(all, says("", call(id, "{}")), pictured(result(id, "seen"), executor.Part{Text: "seen"}, executor.Part{MediaType: "image/png", Data: data}))
		}
		for _, a := range apis() {
			body := sent(t, a, messages("", all...).req)
			if err := a.check([]byte(body)); err != nil {
				t.Errorf("%s, %s: %v", a.name, what, err)
			}
			want, why := c.all, ""
			if a.name == "anthropic" {
				want, why = c.sent, c.why
			}
			if got := strings.Count(body, "iVBORw0KGgo"); got != want || !strings.Contains(body, why) {
				t.Errorf("%s, %s: %d images are sent, want %d and %q", a.name, what, got, want, why)
			}
		}
	}
}

// TestLongDocuments: Anthropic's API counts the pages of documents with the images.
func TestLongDocuments(t *testing.T) {
	t.Parallel()
	long := func(pages int) executor.Part {
		data := bytes.Replace(mediaFile("page.pdf"), []byte("/Count 1"), []byte(fmt.Sprintf("/Count %d", pages)), 1)
		return executor.Part{Name: "a.pdf", MediaType: "application/pdf", Data: data}
	}
	for pages, why := range map[int]string{60: "more than one request may have", 101: "takes documents of at most 100 pages, and it has 101: split it"} {
		for _, a := range apis()[1:] {
			body := sent(t, a, messages("", pictured(user("see"), executor.Part{Text: "see"}, long(pages)), says("Yes."), pictured(user("and"), executor.Part{Text: "and"}, long(pages))).req)
			if got := strings.Contains(body, why); got != (a.name == "anthropic") {
				t.Errorf("%s, %d pages: a line of text is %v: %.500s", a.name, pages, got, body)
			}
		}
	}
}

// TestBrokenFiles: a provider refuses an image that it can't read.
func TestBrokenFiles(t *testing.T) {
	t.Parallel()
	for name, data := range map[string][]byte{
		"empty but for its first bytes": []byte("\x89PNG\r\n\x1a\n"), "a cut header": mediaFile("dot.jpg")[:24], "noise": noise(4096),
		// anthropics/claude-code#56016, NousResearch/hermes-agent#69078: cut behind a valid header
		"half a PNG": mediaFile("dot.png")[:70], "half a JPEG": mediaFile("dot.jpg")[:500], "half a WebP": mediaFile("dot.webp")[:30],
		"half a GIF": mediaFile("dot.gif")[:30], "half a document": mediaFile("page.pdf")[:300], "half a HEIC": mediaFile("dot.heic")[:60],
		"a damaged chunk": bytes.Replace(mediaFile("dot.png"), []byte("IDAT"), []byte("IDAT\x00"), 1),
		"no pixels":       bytes.Replace(mediaFile("dot.png"), []byte{0, 0, 0, 2}, []byte{0, 0, 0, 0}, 1),
	} {
		for _, a := range apis() {
			body := sent(t, a, messages("", pictured(user("see"), executor.Part{Text: "see"}, executor.Part{MediaType: "image/png", Data: data})).req)
			if err := a.check([]byte(body)); err != nil {
				t.Errorf("%s, %s: %v", a.name, name, err)
			}
			if !strings.Contains(body, "is not shown: ") || strings.Contains(body, base64.StdEncoding.EncodeToString(data)) {
				t.Errorf("%s, %s: got %.500s", a.name, name, body)
			}
		}
	}
}

func noise(n int) []byte {
	out := make([]byte, n)
	for i := range out {
		out[i] = byte(rand.IntN(256)) | 0x80
	}
	out[0] = 0x80
	return out
}

// TestDocumentsForOpenAIsChat: OpenAI's own server takes documents in chat
// completions too, under a file name.
func TestDocumentsForOpenAIsChat(t *testing.T) {
	t.Parallel()
	s := serve(t, apis()[0].answers(t)["text"])
	transport := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, strings.TrimPrefix(s.url, "http://"))
	}}
	m, err := openai.New(openai.Config{Chat: true, Config: endpoint.Config{BaseURL: "http://api.openai.com/v1", Client: &http.Client{Transport: transport}}}, slog.New(slog.DiscardHandler))
	must(t, err)
	req := messages("", pictured(user("see"), executor.Part{Text: "see"}, executor.Part{Name: "a.pdf", MediaType: "application/pdf", Data: mediaFile("page.pdf")})).req
	req.Session, req.Effect, req.Model = "s1", "r9t1", "m-1"
	_, err = m.Generate(t.Context(), req, func(string) {})
	must(t, err)
	body := s.got()[0].body
	must(t, apis()[0].check(body))
	if want := `"file":{"file_data":"data:application/pdf;base64,JVBERi0xLjQK`; !strings.Contains(string(body), want) || !strings.Contains(string(body), `"filename":"a.pdf"`) {
		t.Errorf("got %s, want %s in it", body, want)
	}
}

// sent returns the request that an API gets, without escapes.
func sent(t *testing.T, a api, req executor.Request) string {
	t.Helper()
	req.Session, req.Effect, req.Model = "s1", "r9t1", "m-1"
	got := a.ask(t, req, 0, a.answers(t)["text"])
	if got.err != nil {
		t.Fatalf("%s: %v", a.name, got.err)
	}
	return string(got.server.got()[0].body)
}
