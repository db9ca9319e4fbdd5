package media

import (
	"bytes"
	"compress/zlib"
	"io"
	"regexp"
	"strconv"
)

const (
	// pagesBytesMax is the most bytes of compressed objects that Pages reads, and
	// objectsMax the most objects, and streams of them.
	pagesBytesMax = 4 << 20
	objectsMax    = 1_000
	// dictionaryBytes is where the number of pages is looked for, before and after
	// the type of its object.
	dictionaryBytes = 4 << 10
)

// The type of the objects that hold a PDF's pages, and how many: ISO 32000-1, section
// 7.7.3.
var (
	pagesType = regexp.MustCompile(`/Type\s{0,9}/Pages\b`)
	pageCount = regexp.MustCompile(`/Count\s+(\d{1,7})\b`)
)

// Pages returns how many pages a PDF has, 0 if that can't be read. It reads objects
// that stand alone, and those in compressed streams up to a limit.
func Pages(data []byte) int {
	most := rootCount(data)
	left := int64(pagesBytesMax)
	rest := data
	for n := 0; n < objectsMax && left > 0; n++ {
		at := bytes.Index(rest, []byte("/ObjStm"))
		if at < 0 {
			break
		}
		rest = rest[at+len("/ObjStm"):]
		begin := bytes.Index(rest[:min(len(rest), dictionaryBytes)], []byte("stream"))
		if begin < 0 {
			continue
		}
		packed := bytes.TrimLeft(rest[begin+len("stream"):], "\r\n")
		if z, err := zlib.NewReader(bytes.NewReader(packed)); err == nil {
			objects, _ := io.ReadAll(io.LimitReader(z, left)) // what can be read
			left -= int64(len(objects))
			most = max(most, rootCount(objects))
		}
	}
	return most
}

// rootCount returns the largest number of pages of the objects of type Pages: that of
// the root, which counts the others'.
func rootCount(objects []byte) (most int) {
	for _, at := range pagesType.FindAllIndex(objects, objectsMax) {
		for _, m := range pageCount.FindAllSubmatch(dictionary(objects, at[0], at[1]), objectsMax) {
			if n, err := strconv.Atoi(string(m[1])); err == nil {
				most = max(most, n)
			}
		}
	}
	return most
}

// dictionary returns the dictionary around objects[from:to], or a part of a large one.
func dictionary(objects []byte, from, to int) []byte {
	inner := 0
	begin := from
	for ; begin > max(0, from-dictionaryBytes) && inner >= 0; begin-- {
		switch {
		case bytes.HasPrefix(objects[begin:], []byte(">>")):
			inner++
		case bytes.HasPrefix(objects[begin:], []byte("<<")):
			inner--
		}
	}
	end := to
	for inner = 0; end < min(len(objects), to+dictionaryBytes) && inner >= 0; end++ {
		switch {
		case bytes.HasPrefix(objects[end:], []byte("<<")):
			inner++
		case bytes.HasPrefix(objects[end:], []byte(">>")):
			inner--
		}
	}
	return objects[begin:end]
}
