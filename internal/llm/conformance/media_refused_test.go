package conformance

// Models that take text alone.

import (
	"bufio"
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/llm/endpoint"
)

// blind is a server of a model that takes no images.
type blind struct {
	capture
	status int
	error  string // JSON of the refusal
}

func (s *blind) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := s.capture.RoundTrip(r)
	if err != nil || !bytes.Contains(s.got[len(s.got)-1].body, []byte("iVBOR")) { // how a PNG begins in base64
		return response, err
	}
	refusal := fmt.Sprintf("HTTP/1.1 %d No\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n%s", s.status, s.error)
	return http.ReadResponse(bufio.NewReader(strings.NewReader(refusal)), r)
}

// TestModelWithoutEyesGoesOn: a session with an image goes on with a model that takes
// none. The server's refusal costs one request, the first time.
func TestModelWithoutEyesGoesOn(t *testing.T) {
	t.Parallel()
	message := func(text string) string { return `{"error":{"message":"` + text + `","type":"invalid_request_error"}}` }
	for _, c := range []blind{
		{status: 400, error: message("this model does not support image input (ref: b8bd630e)")},                           // ollama/ollama#17301
		{status: 404, error: `{"error":{"message":"No endpoints found that support image input","code":404}}`},             // HKUDS/OpenHarness#225
		{status: 400, error: message("messages[0]: unknown variant `image_url`, expected `text`")},                         // 1jehuang/jcode#755
		{status: 400, error: message("Invalid content type. image_url is only supported by certain models.")},              // OpenAI
		{status: 500, error: message("image input is not supported - hint: you may need to provide the mmproj")},           // llama.cpp
		{status: 400, error: `{"error":{"code":"400","message":"Param Incorrect","param":"` + "`text` is not set" + `"}}`}, // Gitlawb/openclaude#1421
		{status: 400, error: message("m-1 is not a multimodal model")},                                                     // vLLM
		{status: 400, error: message("Image input modality is not enabled for models/m-1")},                                // Gemma at Google
	} {
		for _, a := range apis() {
			s := &blind{capture: capture{answer: a.answers(t)["text"]}, status: c.status, error: c.error}
			var logs strings.Builder
			m, err := a.open(endpoint.Config{BaseURL: "https://models.example", Client: &http.Client{Transport: s}}, slog.New(slog.NewTextHandler(&logs, nil)))
			must(t, err)
			image := executor.Part{MediaType: "image/png", Name: "a.png", Data: mediaFile("dot.png")}
			req := messages("", executor.Message{Role: "user", Text: "see", Parts: []executor.Part{{Text: "see"}, image}}).req
			req.Session, req.Effect, req.Model = "s1", "r1t1", "m-1"
			for turn, want := range []int{2, 3, 4} {
				answer, err := m.Generate(t.Context(), req, func(string) {})
				if err != nil || len(s.got) != want {
					t.Fatalf("%s, %s: turn %d: %d requests, want %d: %v", a.name, c.error, turn+1, len(s.got), want, err)
				}
				body := s.got[len(s.got)-1].body
				if err := a.check(body); err != nil || !strings.Contains(unescaped(t, body), "a.png, image/png, ") || !strings.Contains(unescaped(t, body), "this model takes no images") {
					t.Errorf("%s: %v: the model is not told: %s", a.name, err, body)
				}
				req.Messages = append(req.Messages, executor.Message{Role: "assistant", Text: answer.Text, Opaque: answer.Opaque},
					executor.Message{Role: "user", Text: "and this", Parts: []executor.Part{{Text: "and this"}, image}})
			}
			if told := strings.Count(logs.String(), "the model takes no images"); told != 1 {
				t.Errorf("%s: told %d times: %s", a.name, told, logs.String())
			}
			req.Model = "m-2" // another model of the server may take them
			if _, err := m.Generate(t.Context(), req, func(string) {}); err != nil || !bytes.Contains(s.got[4].body, []byte("iVBOR")) {
				t.Errorf("%s: another model is not shown the image: %v", a.name, err)
			}
		}
	}
}

// TestOtherFaultsCostNoImages: a refusal that says nothing of images, and one of a
// request without any.
func TestOtherFaultsCostNoImages(t *testing.T) {
	t.Parallel()
	for _, a := range apis() {
		s := &blind{capture: capture{answer: a.answers(t)["text"]}, status: 400, error: `{"error":{"message":"temperature is too high"}}`}
		m, err := a.open(endpoint.Config{BaseURL: "https://models.example", Client: &http.Client{Transport: s}}, slog.New(slog.DiscardHandler))
		must(t, err)
		image := executor.Part{MediaType: "image/png", Data: mediaFile("dot.png")}
		req := messages("", executor.Message{Role: "user", Text: "see", Parts: []executor.Part{{Text: "see"}, image}}).req
		req.Session, req.Effect, req.Model = "s1", "r1t1", "m-1"
		if _, err := m.Generate(t.Context(), req, func(string) {}); err == nil || len(s.got) != 1 {
			t.Errorf("%s: %d requests, %v; want the fault", a.name, len(s.got), err)
		}
	}
}
