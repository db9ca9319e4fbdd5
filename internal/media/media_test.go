package media_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/refold/refold/internal/media"
)

func file(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestTypeIsThatOfTheBytes(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		kind     string
		sides    int
		animated bool
	}{
		"dot.png": {media.PNG, 2, false}, "dot.jpg": {media.JPEG, 2, false}, "dot.gif": {media.GIF, 2, false}, "moving.gif": {media.GIF, 2, true},
		"dot.webp": {media.WebP, 0, false}, "dot.heic": {media.HEIC, 0, false}, "dot.heif": {media.HEIF, 0, false}, "dot.avif": {"image/avif", 0, false},
		"page.pdf": {media.PDF, 0, false},
	} {
		data := file(t, name)
		kind := media.Type(data)
		if kind != want.kind || media.IsAnimated(kind, data) != want.animated {
			t.Errorf("%s: got %q, animated %v, want %+v", name, kind, media.IsAnimated(kind, data), want)
		}
		if width, height, ok := media.Sides(kind, data); width != want.sides || height != want.sides || !ok {
			t.Errorf("%s: got %d by %d, %v", name, width, height, ok)
		}
		if _, _, ok := media.Sides(kind, data[:12]); ok {
			t.Errorf("%s: its first 12 bytes are a whole header", name)
		}
	}
	for name, data := range map[string]string{
		"nothing": "", "text": "GIF it to me", "text on a format": "GIF89a is a format.", "text on another": "BM is one, too.", "markup": "<svg xmlns='http://www.w3.org/2000/svg'/>", "archive": "PK\x03\x04", "half a header": "\x89PNG",
		"video": "\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00", "sound": "RIFF\x24\x00\x00\x00WAVEfmt ",
	} {
		if got := media.Type([]byte(data)); got != "" {
			t.Errorf("%s: got %q", name, got)
		}
	}
	for kind, data := range map[string]string{"image/tiff": "II*\x00abcd", "image/bmp": "BM1234\x00", "image/x-icon": "\x00\x00\x01\x00"} {
		if got := media.Type([]byte(data)); got != kind {
			t.Errorf("got %q, want %q", got, kind)
		}
	}
}

// Reading a header takes a limited time, whatever follows it.
func FuzzHeaders(f *testing.F) {
	for _, name := range []string{"dot.png", "dot.jpg", "dot.gif", "moving.gif", "dot.webp", "dot.heic", "page.pdf"} {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, kind := range []string{media.Type(data), media.GIF, media.WebP} {
			media.IsAnimated(kind, data)
			if width, height, ok := media.Sides(kind, data); ok && (width < 0 || height < 0) {
				t.Errorf("%d by %d", width, height)
			}
		}
	})
}
