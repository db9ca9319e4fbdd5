package endpoint

import (
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/llm"
)

// files is the name of images and documents among what a server refused.
const files = "files"

// refusesFiles reports whether the server says that the model takes no images or
// documents. What it says counts only if the request had some. The sources of the
// texts stand at the test (internal/llm/conformance/media_refused_test.go).
func (s ServerError) refusesFiles() bool {
	return s.has("image_url", "input_image", "input_file", "support image", "image input", "image inputs", "support vision",
		"not a multimodal", "not multimodal", "modality", "content must be a string", "content' : must be a string", "value: 'file'") ||
		s.Field == "`text` is not set"
}

// withoutFiles replaces the images and documents of a request by lines of text. It
// reports whether there were any. Messages may be shared, and are not changed.
func withoutFiles(req *executor.Request) bool {
	for i := range req.Messages {
		for _, p := range req.Messages[i].Parts {
			if len(p.Data) > 0 {
				req.Messages = llm.TextOnly.Fit(req.Messages)
				return true
			}
		}
	}
	return false
}
