package strict

// Files that no provider reads.

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"
)

// picture returns an image in one of the formats, of that width.
func picture(t testing.TB, kind string, width int) []byte {
	var b bytes.Buffer
	var err error
	switch m := image.NewGray(image.Rect(0, 0, width, 2)); kind {
	case "image/gif":
		err = gif.Encode(&b, m, nil)
	case "image/jpeg":
		err = jpeg.Encode(&b, m, nil)
	default:
		err = png.Encode(&b, m)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// pictures returns a message of Anthropic's with images of a width.
func pictures(count, width int) string {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, width, 1))); err != nil {
		panic(err)
	}
	one := `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + base64.StdEncoding.EncodeToString(b.Bytes()) + `"}}`
	return `{"role":"user","content":[` + strings.TrimSuffix(strings.Repeat(one+",", count), ",") + `]}`
}

// TestFiles: a whole file passes, and none that is cut anywhere.
func TestFiles(t *testing.T) {
	t.Parallel()
	files := map[string][]byte{
		"image/webp": []byte("RIFF\x16\x00\x00\x00WEBPVP8L\x0a\x00\x00\x00/\x00\x00\x00\x10\x07\x10\x11\x11\x88"),
		"image/heic": []byte("\x00\x00\x00\x18ftypheic\x00\x00\x00\x00mif1heic\x00\x00\x00\x0cmeta\x00\x00\x00\x00"),
		pdf:          []byte("%PDF-1.4\n1 0 obj<</Type/Catalog>>endobj\ntrailer<</Root 1 0 R>>\nstartxref\n9\n%%EOF"),
	}
	for _, kind := range []string{"image/png", "image/jpeg", "image/gif"} {
		files[kind] = picture(t, kind, 3)
	}
	for kind, data := range files {
		check := func(b []byte) error { return file(kind, base64.StdEncoding.EncodeToString(b), 1<<20, []string{kind}) }
		if err := check(data); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		for n := range len(data) {
			if check(data[:n]) == nil && n != 24 { // the first box of a HEIC
				t.Errorf("%s: its first %d of %d bytes pass", kind, n, len(data))
			}
		}
		if file(kind, base64.StdEncoding.EncodeToString(data), 8, []string{kind}) == nil || file(kind, base64.StdEncoding.EncodeToString(data), 1<<20, nil) == nil {
			t.Errorf("%s: too large, or not taken, and it passes", kind)
		}
	}
	if file(pdf, base64.StdEncoding.EncodeToString(bytes.Replace(files[pdf], []byte("/Root"), []byte("/Encrypt 2 0 R/Root"), 1)), 1<<20, []string{pdf}) == nil {
		t.Error("an encrypted document passes")
	}
}
