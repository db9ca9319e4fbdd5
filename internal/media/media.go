package media

import (
	"bytes"
	"image"
	_ "image/gif"  // for Sides
	_ "image/jpeg" // for Sides
	_ "image/png"  // for Sides
	"net/http"
	"strings"
	"unicode/utf8"
)

// The types that some provider takes, and that Type returns.
const (
	PNG  = "image/png"
	JPEG = "image/jpeg"
	GIF  = "image/gif"
	WebP = "image/webp"
	HEIC = "image/heic"
	HEIF = "image/heif"
	PDF  = "application/pdf"
)

// brands are the major brands of the image formats that share the container of
// ISO/IEC 14496-12: ISO/IEC 23008-12 annex B (HEIF, HEIC), and the AV1 Image File
// Format, section 4.
var brands = map[string]string{
	"heic": HEIC, "heix": HEIC, "heim": HEIC, "heis": HEIC, "hevc": HEIC, "hevx": HEIC, "hevm": HEIC, "hevs": HEIC,
	"mif1": HEIF, "msf1": HEIF, "heif": HEIF,
	"avif": "image/avif", "avis": "image/avif",
}

// Type returns the media type of an image or a PDF by its first bytes, "" for
// everything else. Text is no image, even if it begins as one does. It also returns
// types of images that no provider takes, for people: image/avif, image/bmp,
// image/tiff, image/x-icon.
func Type(data []byte) string {
	kind := begins(data)
	if kind != "" && kind != PDF && IsText(data) {
		return ""
	}
	return kind
}

// IsText reports whether data is text: UTF-8 without the character NUL.
func IsText(data []byte) bool { return utf8.Valid(data) && bytes.IndexByte(data, 0) < 0 }

func begins(data []byte) string {
	if len(data) >= 12 && string(data[4:8]) == "ftyp" {
		return brands[string(data[8:12])]
	}
	if bytes.HasPrefix(data, []byte("II*\x00")) || bytes.HasPrefix(data, []byte("MM\x00*")) {
		return "image/tiff" // TIFF 6.0, section 2
	}
	// The standard library follows the WHATWG's MIME Sniffing standard, which has
	// neither of the above.
	if found := http.DetectContentType(data); strings.HasPrefix(found, "image/") || found == PDF {
		return found
	}
	return ""
}

// Sides returns the width and the height of an image in pixels. ok is false if its
// header can't be read. Formats that the standard library does not read have no
// sides: 0, 0, true.
func Sides(kind string, data []byte) (width, height int, ok bool) {
	switch kind {
	case PNG, JPEG, GIF:
		config, _, err := image.DecodeConfig(bytes.NewReader(data))
		return config.Width, config.Height, err == nil && config.Width > 0 && config.Height > 0
	}
	return 0, 0, len(data) > headerBytes
}

// headerBytes is less than any image or document has.
const headerBytes = 20

// IsAnimated reports whether a GIF or a WebP has more than one frame.
func IsAnimated(kind string, data []byte) bool {
	switch kind {
	case GIF:
		return gifFrames(data) > 1
	case WebP: // the flag of an extended header: RFC 9649, section 2.7.1
		return len(data) > 20 && string(data[12:16]) == "VP8X" && data[20]&0x02 != 0
	}
	return false
}

// gifFrames counts the images of a GIF, up to two: GIF89a, sections 18 to 26.
func gifFrames(data []byte) (frames int) {
	const header = 13
	if len(data) < header {
		return 0
	}
	rest := data[header:]
	skip := func(n int) { rest = rest[min(n, len(rest)):] }
	table := func(flags byte) { // a colour table, if the flags announce one
		if flags&0x80 != 0 {
			skip(3 << (flags&7 + 1))
		}
	}
	blocks := func() { // sub-blocks, up to an empty one
		for len(rest) > 0 && rest[0] != 0 {
			skip(1 + int(rest[0]))
		}
		skip(1)
	}
	table(data[10])
	for len(rest) > 0 && frames < 2 {
		switch rest[0] {
		case '!':
			skip(2)
			blocks()
		case ',':
			if len(rest) < 11 {
				return frames
			}
			frames++
			flags := rest[9]
			skip(10)
			table(flags)
			skip(1)
			blocks()
		default:
			return frames
		}
	}
	return frames
}

// EncodedLen returns how many bytes n bytes are in base64, in which providers
// count them.
func EncodedLen(n int) int { return (n + 2) / 3 * 4 }
