package media_test

import (
	"bytes"
	"compress/zlib"
	"errors"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
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
		"dot.webp": {media.WebP, 1, false}, "dot.heic": {media.HEIC, 0, false}, "dot.heif": {media.HEIF, 0, false}, "dot.avif": {"image/avif", 0, false},
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

// TestDamagedFiles: a file is whole, or it has a fault, wherever it is cut.
func TestDamagedFiles(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"dot.png", "dot.jpg", "dot.gif", "moving.gif", "dot.webp", "dot.heic", "dot.heif", "page.pdf"} {
		whole := file(t, name)
		kind := media.Type(whole)
		if why := media.Fault(kind, whole); why != "" {
			t.Errorf("%s: %s", name, why)
		}
		if why := media.Fault(kind, append(slices.Clone(whole), make([]byte, 100)...)); why != "" && kind != media.HEIC && kind != media.HEIF {
			t.Errorf("%s with bytes after its end: %s", name, why)
		}
		for n := range len(whole) {
			if cut := whole[:n]; media.Fault(kind, cut) == "" && !bytes.HasSuffix(cut, []byte("%%EOF")) {
				t.Errorf("%s: its first %d of %d bytes are whole", name, n, len(whole))
			}
		}
	}
}

// TestDamageOfEachFormat: files with a valid header. The large ones are not decoded.
func TestDamageOfEachFormat(t *testing.T) {
	t.Parallel()
	picture := image.NewGray(image.Rect(0, 0, 1000, 1000))
	var large, photo, drawing bytes.Buffer
	must(t, png.Encode(&large, picture))
	must(t, jpeg.Encode(&photo, picture, nil))
	must(t, gif.Encode(&drawing, picture, nil))
	damaged := func(data []byte, at int, with string) []byte {
		data = slices.Clone(data)
		copy(data[at:], with)
		return data
	}
	dot, page := file(t, "dot.png"), file(t, "page.pdf")
	for what, c := range map[string]struct {
		kind string
		data []byte
		want string
	}{
		"no height":        {media.PNG, damaged(dot, 20, "\x00\x00\x00\x00"), "header"},
		"a chunk":          {media.PNG, damaged(large.Bytes(), 60, "\x00\x00"), "chunk \"IDAT\" is damaged"},
		"a chunk's name":   {media.PNG, damaged(large.Bytes(), 37, "\xFFDAT"), "is damaged"},
		"half a PNG":       {media.PNG, large.Bytes()[:large.Len()/2], "cut off"},
		"no pixels":        {media.PNG, slices.Concat(large.Bytes()[:33], large.Bytes()[large.Len()-12:]), "no picture"},
		"half a JPEG":      {media.JPEG, photo.Bytes()[:photo.Len()/2], "cut off"},
		"a JPEG's segment": {media.JPEG, damaged(photo.Bytes(), 4, "\x00\x00"), "can't be read"},
		"half a GIF":       {media.GIF, drawing.Bytes()[:drawing.Len()/2], "cut off"},
		"a later frame":    {media.GIF, bytes.Replace(file(t, "moving.gif"), []byte("\x0c^\x00;"), []byte("\x0c\xff\x00;"), 1), "pixels"},
		"half a WebP":      {media.WebP, file(t, "dot.webp")[:30], "cut off"},
		"half a HEIC":      {media.HEIC, file(t, "dot.heic")[:60], "cut off"},
		"half a PDF":       {media.PDF, page[:len(page)/2], "cut off"},
		"an encrypted PDF": {media.PDF, bytes.Replace(page, []byte("trailer<<"), []byte("trailer<</Encrypt 9 0 R"), 1), "encrypted"},
	} {
		if got := media.Type(c.data); got != c.kind {
			t.Errorf("%s: it is %q", what, got)
		}
		if got := media.Fault(c.kind, c.data); !strings.Contains(got, c.want) || got == "" {
			t.Errorf("%s: got %q, want %q", what, got, c.want)
		}
	}
	for kind, whole := range map[string][]byte{media.PNG: large.Bytes(), media.JPEG: photo.Bytes(), media.GIF: drawing.Bytes()} {
		if why := media.Fault(kind, whole); why != "" {
			t.Errorf("a large %s: %s", kind, why)
		}
	}
}

// TestPages: the number of a PDF's pages, in its root, wherever that is.
func TestPages(t *testing.T) {
	t.Parallel()
	packed := func(objects string) string {
		var b bytes.Buffer
		z := zlib.NewWriter(&b)
		_, err := z.Write([]byte(objects))
		must(t, errors.Join(err, z.Close()))
		return "5 0 obj<</Type/ObjStm/N 2/First 9/Filter/FlateDecode/Length " + strconv.Itoa(b.Len()) + ">>stream\r\n" + b.String() + "\nendstream endobj"
	}
	const outlines = "<</Type/Outlines/Count 900>>"
	for text, want := range map[string]int{
		string(file(t, "page.pdf")): 1,
		outlines + "<</Type /Pages /Kids[3 0 R] /Count 150 /Resources<</Font<</F 4 0 R>>>> >>" + outlines: 150,
		"<</Count 150/Resources<<>>/Kids[3 0 R]/Type/Pages>> <</Type/Pages/Count 12/Parent 2 0 R>>":       150,
		packed(outlines + "<</Type/Pages/Kids[]/Count 640>>" + outlines):                                  640,
		packed("<</Type/Font>>") + packed("<</Kids[]/Count 7/Type/Pages>>"):                               7,
		"5 0 obj<</Type/ObjStm>>stream\nno stream":                                                        0, "<</Type/Pages/Count 99999999999>>": 0, "": 0, "/ObjStm": 0,
	} {
		if got := media.Pages([]byte(text)); got != want {
			t.Errorf("%.120q: got %d, want %d", text, got, want)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Reading a file takes a limited time, whatever follows it.
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
			media.Fault(kind, data)
			media.Pages(data)
			if width, height, ok := media.Sides(kind, data); ok && (width < 0 || height < 0) {
				t.Errorf("%d by %d", width, height)
			}
		}
	})
}
