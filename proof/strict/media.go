package strict

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/gif"
	_ "image/jpeg" // for readable
	_ "image/png"  // for readable
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

// Anthropic's limits of the images of a request.
const (
	anthropicSideMax  = 8000 // pixels
	anthropicFilesMax = 100
	anthropicManyMax  = 20 // of more, none has more than anthropicManySide pixels a side
	anthropicManySide = 2000
)

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
	if err := readable(media, b); err != nil {
		return fmt.Errorf("a damaged file of type %q: %w", media, err)
	}
	return nil
}

// decodedPixelsMax is the size up to which the compressed data of a JPEG or GIF is
// decoded. A larger header over too little data is no refusal: decoders fill the
// rest in, if the file has its end.
const decodedPixelsMax = 1 << 16

// readable decodes a file to its end, as far as the standard library can.
func readable(media string, b []byte) error {
	config, _, err := image.DecodeConfig(bytes.NewReader(b))
	switch large := config.Width*config.Height > decodedPixelsMax; {
	case err == nil && large && media == "image/jpeg" && bytes.Contains(b, []byte("\xff\xd9")):
		return nil
	case err == nil && large && media == "image/gif" && bytes.HasSuffix(bytes.TrimRight(b, "\x00"), []byte(";")):
		return nil
	}
	switch media {
	case "image/gif":
		_, err := gif.DecodeAll(bytes.NewReader(b))
		return err
	case "image/png", "image/jpeg":
		_, _, err := image.Decode(bytes.NewReader(b))
		return err
	case "image/webp":
		if size := int(binary.LittleEndian.Uint32(b[4:])); size+8 > len(b) {
			return fmt.Errorf("it has %d bytes of %d", len(b), size+8)
		}
	case "image/heic", "image/heif":
		for len(b) > 0 {
			if len(b) < 8 {
				return errors.New("half a box")
			}
			size := int(binary.BigEndian.Uint32(b))
			if size < 8 || size > len(b) {
				return fmt.Errorf("a box of %d bytes, of which there are %d", size, len(b))
			}
			b = b[size:]
		}
	case pdf:
		end := b[max(0, len(b)-1024):]
		if !bytes.Contains(end, []byte("startxref")) || !bytes.Contains(end, []byte("%%EOF")) {
			return errors.New("it has no end")
		}
		if bytes.Contains(b, []byte("/Encrypt ")) {
			return errors.New("it is encrypted")
		}
	}
	return nil
}

// side returns the longer side of an image of base64 text, 0 if it is not read.
func side(data string) int {
	b, _ := base64.StdEncoding.DecodeString(data)
	config, _, err := image.DecodeConfig(bytes.NewReader(b))
	if err != nil {
		return 0
	}
	return max(config.Width, config.Height)
}

// anthropicImagesFault returns the rule that the images and documents of a
// conversation break together, nil if they break none.
func anthropicImagesFault(messages []AnthropicMessage) error {
	files, largest := 0, 0
	for _, m := range messages {
		for _, b := range m.Content {
			for _, source := range append(b.sources, b.Source) {
				if source != nil {
					files, largest = files+1, max(largest, side(source.Data))
				}
			}
		}
	}
	switch {
	case largest > anthropicSideMax:
		return breaks(anthropicSide, "an image has %d pixels", largest)
	case files > anthropicFilesMax, files > anthropicManyMax && largest > anthropicManySide:
		return breaks(anthropicMany, "it has %d images and documents of up to %d pixels a side", files, largest)
	}
	return nil
}
