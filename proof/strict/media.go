package strict

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
)

// The formats that each API takes, by the published documents:
// platform.claude.com/docs/en/build-with-claude/vision,
// developers.openai.com/api/docs/guides/images-vision,
// ai.google.dev/gemini-api/docs/image-understanding.
var (
	anthropicImages = []string{"image/jpeg", "image/png", "image/gif", "image/webp"}
	openaiImages    = []string{"image/png", "image/jpeg", "image/webp", "image/gif"}
	geminiImages    = []string{"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"}
)

// geminiKinds are what the API takes inline.
var geminiKinds = append([]string{pdf}, geminiImages...)

const pdf = "application/pdf"

// Limits of base64 text, in bytes. Anthropic's is the one of its error "image
// exceeds 5 MB maximum: … bytes > 5242880 bytes".
const (
	anthropicImageMax = 5 << 20
	anthropicBodyMax  = 32 << 20
	geminiBodyMax     = 20 << 20
	openaiFilesMax    = 50 << 20
)

// beginnings are the first bytes of each format, from an offset.
var beginnings = map[string]struct {
	at    int
	bytes []string
}{
	"image/png": {0, []string{"\x89PNG\r\n\x1a\n"}}, "image/jpeg": {0, []string{"\xff\xd8\xff"}}, "image/gif": {0, []string{"GIF87a", "GIF89a"}},
	"image/webp": {8, []string{"WEBP"}}, "image/heic": {4, []string{"ftyphei", "ftyphev"}}, "image/heif": {4, []string{"ftypmif1", "ftypmsf1", "ftypheif"}},
	pdf: {0, []string{"%PDF-"}},
}

// dataURL returns what is wrong with a file in a data URL.
func dataURL(url string, kinds ...string) error {
	media, data, ok := strings.Cut(strings.TrimPrefix(url, "data:"), ";base64,")
	if !ok || !strings.HasPrefix(url, "data:") {
		return fmt.Errorf("a file at %.20q", url)
	}
	return file(media, data, openaiFilesMax, kinds)
}

// file returns what is wrong with an image or a document: its base64 text, its type,
// or bytes that do not begin as that type does.
func file(media, data string, bytesMax int, kinds []string) error {
	b, err := base64.StdEncoding.DecodeString(data)
	begins, known := beginnings[media]
	switch {
	case err != nil || len(b) < 20:
		return fmt.Errorf("not a valid file of type %q", media)
	case len(data) > bytesMax:
		return fmt.Errorf("a file of %d bytes in base64, at most %d", len(data), bytesMax)
	case !known || !slices.Contains(kinds, media):
		return fmt.Errorf("a file of type %q, of which %v are taken", media, kinds)
	case !slices.ContainsFunc(begins.bytes, func(first string) bool { return bytes.HasPrefix(b[begins.at:], []byte(first)) }):
		return fmt.Errorf("a file that is not of its type %q", media)
	}
	return nil
}
