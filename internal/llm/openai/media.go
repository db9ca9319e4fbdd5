package openai

import (
	"cmp"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/llm"
	"github.com/refold/refold/internal/media"
)

// acceptsOpenAI is what OpenAI's APIs take. The files of a request have at most
// 50 MB.
var acceptsOpenAI = llm.Accepts{
	Server: "OpenAI's API", Images: []string{media.PNG, media.JPEG, media.GIF, media.WebP}, Documents: true, TotalMax: 45 << 20,
}

// acceptsOthers is what other servers of chat completions take: the images that
// the protocol names. Their limits differ; documents are an extension of OpenAI's.
var acceptsOthers = llm.Accepts{
	Server: "this server", Images: acceptsOpenAI.Images, TotalMax: acceptsOpenAI.TotalMax,
}

func (m *Model) accepts() *llm.Accepts {
	if m.openai {
		return &acceptsOpenAI
	}
	return &acceptsOthers
}

// filename returns the name that OpenAI's APIs require of a document.
func filename(p *executor.Part) param.Opt[string] {
	return param.NewOpt(cmp.Or(p.Name, "document.pdf"))
}

// newChatFile returns an image or a document for chat completions.
func newChatFile(p *executor.Part) openai.ChatCompletionContentPartUnionParam {
	if p.MediaType == media.PDF {
		return openai.FileContentPart(openai.ChatCompletionContentPartFileFileParam{FileData: param.NewOpt(llm.DataURL(p)), Filename: filename(p)})
	}
	return openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{URL: llm.DataURL(p)})
}

// newInputFile returns an image or a document of an input for the Responses API.
func newInputFile(p *executor.Part) responses.ResponseInputContentUnionParam {
	if p.MediaType == media.PDF {
		return responses.ResponseInputContentUnionParam{OfInputFile: &responses.ResponseInputFileParam{
			FileData: param.NewOpt(llm.DataURL(p)), Filename: filename(p),
		}}
	}
	return responses.ResponseInputContentUnionParam{OfInputImage: &responses.ResponseInputImageParam{
		Detail: responses.ResponseInputImageDetailAuto, ImageURL: param.NewOpt(llm.DataURL(p)),
	}}
}

// newOutputFile returns an image or a document of a result for the Responses API.
func newOutputFile(p *executor.Part) responses.ResponseFunctionCallOutputItemUnionParam {
	if p.MediaType == media.PDF {
		return responses.ResponseFunctionCallOutputItemUnionParam{OfInputFile: &responses.ResponseInputFileContentParam{
			FileData: param.NewOpt(llm.DataURL(p)), Filename: filename(p),
		}}
	}
	return responses.ResponseFunctionCallOutputItemUnionParam{OfInputImage: &responses.ResponseInputImageContentParam{ImageURL: param.NewOpt(llm.DataURL(p))}}
}
