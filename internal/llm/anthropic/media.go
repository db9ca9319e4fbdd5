package anthropic

import (
	"encoding/base64"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/llm"
	"github.com/refold/refold/internal/media"
)

// accepts is what the Messages API takes. A request has at most 32 MB. Models
// with a context of more than 200,000 tokens take more images than 100.
var accepts = llm.Accepts{
	Server: "Anthropic's API", Images: []string{media.PNG, media.JPEG, media.GIF, media.WebP}, Animated: true, Documents: true,
	ImageMax: 5 << 20, ImageSideMax: 8000, Many: llm.Many{Max: 100, Large: 20, SideMax: 2000}, TotalMax: 24 << 20,
}

// newFile returns an image or a document.
func newFile(p *executor.Part) anthropic.ContentBlockParamUnion {
	data := base64.StdEncoding.EncodeToString(p.Data)
	if p.MediaType == media.PDF {
		document := anthropic.DocumentBlockParam{Source: anthropic.DocumentBlockParamSourceUnion{OfBase64: &anthropic.Base64PDFSourceParam{Data: data}}}
		if p.Name != "" {
			document.Title = param.NewOpt(p.Name)
		}
		return anthropic.ContentBlockParamUnion{OfDocument: &document}
	}
	return anthropic.ContentBlockParamUnion{OfImage: &anthropic.ImageBlockParam{Source: anthropic.ImageBlockParamSourceUnion{
		OfBase64: &anthropic.Base64ImageSourceParam{Data: data, MediaType: anthropic.Base64ImageSourceMediaType(p.MediaType)},
	}}}
}
