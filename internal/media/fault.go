package media

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image"
	"image/gif"
	"strconv"
)

// decodedPixelsMax is the size up to which an image is decoded. Of a larger one
// only the structure is read: its time must not grow with the pixels that a
// header announces.
const decodedPixelsMax = 1 << 16

// What is wrong with a file.
const (
	faultHeader = "its header can't be read"
	faultCut    = "it is cut off"
	faultEmpty  = "it has no picture"
)

// Fault returns why a file of a type can't be shown, for people, "" if it can:
// providers decode files, and refuse a whole request for one that is damaged
// behind a valid header. It reads the structure to the end, and decodes small
// images.
func Fault(kind string, data []byte) string {
	width, height, ok := Sides(kind, data)
	if !ok {
		return faultHeader
	}
	why := ""
	switch kind {
	case PNG:
		why = pngFault(data)
	case JPEG:
		why = jpegFault(data)
	case GIF:
		why = gifFault(data)
	case WebP:
		why = webpFault(data)
	case HEIC, HEIF:
		why = boxFault(data)
	case PDF:
		why = pdfFault(data)
	}
	if why == "" && !decodes(kind, data, width*height) {
		return "its pixels can't be read"
	}
	return why
}

// decodes reports whether an image whose structure is whole can be decoded. It does
// not decode large ones.
func decodes(kind string, data []byte, pixels int) bool {
	var err error
	switch kind {
	case PNG, JPEG:
		if pixels <= decodedPixelsMax {
			_, _, err = image.Decode(bytes.NewReader(data))
		}
	case GIF:
		if frames, _ := gifBlocks(data, len(data)); frames*pixels <= decodedPixelsMax {
			_, err = gif.DecodeAll(bytes.NewReader(data))
		}
	}
	return err == nil
}

// pngFault reads the chunks of a PNG: PNG Specification, third edition, section 5.
func pngFault(data []byte) string {
	const around = 12 // bytes of length, type and checksum
	pixels := false
	for rest := data[8:]; ; {
		if len(rest) < around {
			return faultCut
		}
		length := uint64(binary.BigEndian.Uint32(rest))
		if length > uint64(len(rest)-around) {
			return faultCut
		}
		body := rest[4 : 8+length]
		if crc32.ChecksumIEEE(body) != binary.BigEndian.Uint32(rest[8+length:]) {
			return fmt.Sprintf("its chunk %s is damaged", strconv.QuoteToASCII(string(body[:4])))
		}
		switch string(body[:4]) {
		case "IDAT":
			pixels = pixels || length > 0
		case "IEND":
			if !pixels {
				return faultEmpty
			}
			return ""
		}
		rest = rest[around+length:]
	}
}

// jpegFault reads the segments of a JPEG to the marker of its end: ITU-T T.81,
// annex B. Compressed data, in which 0xFF is followed by 0 or by a restart
// marker, is skipped.
func jpegFault(data []byte) string {
	scans := 0
	for rest := data[2:]; ; {
		at := bytes.IndexByte(rest, 0xFF)
		if at < 0 || at+1 >= len(rest) {
			return faultCut
		}
		marker := rest[at+1]
		if marker == 0xFF { // a fill byte
			rest = rest[at+1:]
			continue
		}
		rest = rest[at+2:]
		switch {
		case marker == 0xD9 && scans == 0:
			return faultEmpty
		case marker == 0xD9:
			return ""
		case marker <= 1, 0xD0 <= marker && marker <= 0xD8: // these have no length
			continue
		case len(rest) < 2:
			return faultCut
		}
		length := int(binary.BigEndian.Uint16(rest))
		switch {
		case length < 2:
			return "one of its segments is damaged"
		case length > len(rest):
			return faultCut
		case marker == 0xDA:
			scans++
		}
		rest = rest[length:]
	}
}

// gifFault reads all blocks of a GIF.
func gifFault(data []byte) string {
	switch frames, ends := gifBlocks(data, len(data)); {
	case !ends:
		return faultCut
	case frames == 0:
		return faultEmpty
	}
	return ""
}

// webpFault reads the chunks of a WebP: RFC 9649, section 2.
func webpFault(data []byte) string {
	size := uint64(binary.LittleEndian.Uint32(data[4:])) + 8
	if size < 12 || size > uint64(len(data)) {
		return faultCut
	}
	picture := false
	for rest := data[12:size]; len(rest) > 0; {
		if len(rest) < 8 {
			return faultCut
		}
		length := uint64(binary.LittleEndian.Uint32(rest[4:]))
		if length > uint64(len(rest)-8) {
			return faultCut
		}
		switch string(rest[:4]) {
		case "VP8 ", "VP8L", "ANMF":
			picture = picture || length > 0
		}
		rest = rest[min(8+length+length%2, uint64(len(rest))):]
	}
	if !picture {
		return faultEmpty
	}
	return ""
}

// boxFault reads the outermost boxes of a HEIC or HEIF: ISO/IEC 14496-12,
// section 4.2.
func boxFault(data []byte) string {
	meta := false
	for rest := data; len(rest) > 0; {
		if len(rest) < 8 {
			return faultCut
		}
		size := uint64(binary.BigEndian.Uint32(rest))
		switch {
		case size == 0: // to the end
			size = uint64(len(rest))
		case size == 1 && len(rest) >= 16:
			size = binary.BigEndian.Uint64(rest[8:])
		}
		switch {
		case size < 8:
			return "one of its boxes is damaged"
		case size > uint64(len(rest)):
			return faultCut
		}
		meta = meta || string(rest[4:8]) == "meta"
		rest = rest[size:]
	}
	if !meta {
		return faultEmpty
	}
	return ""
}

// pdfFault reads the end of a PDF, where readers begin: ISO 32000-1, section 7.5.5
// and appendix H, by which the end is within the last 1,024 bytes.
func pdfFault(data []byte) string {
	const endBytes, trailerBytes = 1024, 64 << 10
	end := data[max(0, len(data)-endBytes):]
	start := bytes.LastIndex(data, []byte("startxref"))
	if start < 0 || !bytes.Contains(end, []byte("%%EOF")) {
		return faultCut
	}
	windows := [][]byte{data[max(0, start-trailerBytes):start]} // the trailer, or the stream that has it
	if fields := bytes.Fields(data[start+len("startxref") : min(len(data), start+endBytes)]); len(fields) > 0 {
		if at, err := strconv.Atoi(string(fields[0])); err == nil && at >= 0 && at < len(data) {
			windows = append(windows, data[at:min(len(data), at+trailerBytes)])
		}
	}
	for _, w := range windows {
		if _, after, ok := bytes.Cut(w, []byte("/Encrypt")); ok && !bytes.HasPrefix(after, []byte("Metadata")) {
			return "it is encrypted"
		}
	}
	return ""
}
