package media

import (
	"bytes"
	"encoding/binary"
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
// header can't be read. Formats whose header is not read have no sides: 0, 0, true.
func Sides(kind string, data []byte) (width, height int, ok bool) {
	switch kind {
	case PNG, JPEG, GIF:
		config, _, err := image.DecodeConfig(bytes.NewReader(data))
		return config.Width, config.Height, err == nil && config.Width > 0 && config.Height > 0
	case WebP:
		return webpSides(data)
	}
	return 0, 0, len(data) > headerBytes
}

// webpSides reads the first chunk of a WebP: RFC 9649, sections 2.5 to 2.7 and 3.4, and
// RFC 6386, section 9.1.
func webpSides(data []byte) (width, height int, ok bool) {
	const chunk = 20 // where the content of the first chunk begins
	if len(data) <= headerBytes {
		return 0, 0, false
	}
	body := data[chunk:]
	switch kind := string(data[12:16]); {
	case kind == "VP8X" && len(body) >= 10:
		at := func(i int) int { return 1 + int(body[i]) + int(body[i+1])<<8 + int(body[i+2])<<16 }
		return at(4), at(7), true
	case kind == "VP8L" && len(body) >= 5:
		bits := binary.LittleEndian.Uint32(body[1:])
		return 1 + int(bits&0x3FFF), 1 + int(bits>>14&0x3FFF), body[0] == 0x2F
	case kind == "VP8 " && len(body) >= 10:
		width, height = int(binary.LittleEndian.Uint16(body[6:])&0x3FFF), int(binary.LittleEndian.Uint16(body[8:])&0x3FFF)
		return width, height, string(body[3:6]) == "\x9D\x01\x2A" && width > 0 && height > 0
	}
	return 0, 0, false
}

// headerBytes is less than any image or document has.
const headerBytes = 20

// IsAnimated reports whether a GIF or a WebP has more than one frame.
func IsAnimated(kind string, data []byte) bool {
	switch kind {
	case GIF:
		frames, _ := gifBlocks(data, 2)
		return frames > 1
	case WebP: // the flag of an extended header: RFC 9649, section 2.7.1
		return len(data) > 20 && string(data[12:16]) == "VP8X" && data[20]&0x02 != 0
	}
	return false
}

// gifBlocks counts the images of a GIF, up to framesMax, and reports whether it
// reached the end of the file's blocks: GIF89a, sections 18 to 27.
func gifBlocks(data []byte, framesMax int) (frames int, ends bool) {
	const header = 13
	if len(data) < header {
		return 0, false
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
	for len(rest) > 0 && frames < framesMax {
		switch rest[0] {
		case '!':
			skip(2)
			blocks()
		case ',':
			if len(rest) < 11 {
				return frames, false
			}
			frames++
			flags := rest[9]
			skip(10)
			table(flags)
			skip(1)
			blocks()
		default:
			return frames, rest[0] == ';'
		}
	}
	return frames, false
}

// EncodedLen returns how many bytes n bytes are in base64, in which providers
// count them.
func EncodedLen(n int) int { return (n + 2) / 3 * 4 }
