package endpoint

import (
	"sync"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/llm"
)

// refusesFiles reports whether the server says that the model takes no images or
// documents. What it says counts only if the request had some. The sources of the
// texts stand at the test (internal/llm/conformance/media_refused_test.go).
func (s ServerError) refusesFiles() bool {
	return s.has("image_url", "input_image", "input_file", "support image", "image input", "image inputs", "support vision",
		"not a multimodal", "not multimodal", "modality", "content must be a string", "content' : must be a string", "value: 'file'") ||
		s.Field == "`text` is not set"
}

// textOnly remembers the models of a server that take no images and no documents.
type textOnly struct {
	mu  sync.Mutex
	all map[string]bool
}

func (t *textOnly) has(model string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all[model]
}

// add reports whether the model was not known.
func (t *textOnly) add(model string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all == nil || len(t.all) >= textOnlyMax {
		t.all = map[string]bool{}
	}
	known := t.all[model]
	t.all[model] = true
	return !known
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
