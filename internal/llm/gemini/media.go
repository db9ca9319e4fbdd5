package gemini

import (
	"github.com/refold/refold/internal/llm"
	"github.com/refold/refold/internal/media"
)

// accepts is what the Gemini API takes inline. A request with inline data has at
// most 20 MB, and documents have at most 1,000 pages.
var accepts = llm.Accepts{
	Server: "Google's API", Images: []string{media.PNG, media.JPEG, media.WebP, media.HEIC, media.HEIF}, Animated: true, Documents: true,
	Many: llm.Many{Max: 1000}, TotalMax: 15 << 20,
}
