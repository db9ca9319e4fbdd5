//go:build peers

package browser

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// still hides what differs from picture to picture: the caret and what moves. A page's
// policy may forbid elements with styles, but not this.
const still = `(() => {
	const sheet = new CSSStyleSheet();
	sheet.replaceSync("*, *::before, *::after { caret-color: transparent !important; animation: none !important; transition: none !important }");
	document.adoptedStyleSheets.push(sheet);
	return document.fonts.ready.then(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true)))));
})()`

// Screenshot returns a picture of what the page shows, as PNG.
func (p *Page) Screenshot() []byte {
	p.t.Helper()
	Value[bool](p, still)
	return run(p, chromedp.CaptureScreenshot())
}

// StopClock stops the clock of what the page loads from now on, at Unix milliseconds.
func (p *Page) StopClock(ms int64) {
	p.t.Helper()
	p.Do(command(page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: fmt.Sprintf("Date.now = () => %d;", ms)}))
}

// How much pictures of the same page may differ. Versions of Chromium and FreeType draw
// the edges of letters and of rounded corners differently, by a pixel or a shade.
const (
	cell      = 8     // pixels: the mean of a square of these is compared
	shadeMax  = 40    // of 255: how much the mean of a square may differ
	unlikeMax = 0.002 // of all squares: so many may differ by more
)

// Matches compares what the page shows with a picture in a file, and fails the test if
// they differ by more than the drawing of letters does; the new picture is beside the
// file then, with the ending .got.png. With rewrite it writes the file if they differ so,
// or if there is none.
func (p *Page) Matches(file string, rewrite bool) {
	p.t.Helper()
	got := p.Screenshot()
	want, err := os.ReadFile(file)
	if err == nil {
		err = alike(got, want)
	}
	switch {
	case err == nil:
		return
	case rewrite && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, errUnlike)):
		err = errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, got, 0o644))
		if err != nil {
			p.t.Fatal(err)
		}
	default:
		beside := file + ".got.png"
		p.t.Errorf("%s: %v: the page now is %s. If it is right, run the test with -rewrite; written: %v", file, err, beside, os.WriteFile(beside, got, 0o644))
	}
}

// errUnlike says that two pictures are not of the same page.
var errUnlike = errors.New("the pictures differ")

// alike reports how two pictures in PNG differ, or nil.
func alike(got, want []byte) error {
	a, err := png.Decode(bytes.NewReader(got))
	if err != nil {
		return err
	}
	b, err := png.Decode(bytes.NewReader(want))
	if err != nil {
		return err
	}
	if a.Bounds() != b.Bounds() {
		return fmt.Errorf("%w: %v instead of %v", errUnlike, a.Bounds().Size(), b.Bounds().Size())
	}
	var all, unlike int
	var first image.Point
	for y := a.Bounds().Min.Y; y < a.Bounds().Max.Y; y += cell {
		for x := a.Bounds().Min.X; x < a.Bounds().Max.X; x += cell {
			all++
			if differ(mean(a, x, y), mean(b, x, y)) {
				if unlike++; unlike == 1 {
					first = image.Pt(x, y)
				}
			}
		}
	}
	if float64(unlike) > unlikeMax*float64(all) {
		return fmt.Errorf("%w in %d of %d squares, the first at %v", errUnlike, unlike, all, first)
	}
	return nil
}

// mean returns the mean colour of a square, 0 to 255 each.
func mean(m image.Image, x, y int) (sum [3]int) {
	square := image.Rect(x, y, x+cell, y+cell).Intersect(m.Bounds())
	for y := square.Min.Y; y < square.Max.Y; y++ {
		for x := square.Min.X; x < square.Max.X; x++ {
			r, g, b, _ := m.At(x, y).RGBA()
			sum[0] += int(r >> 8)
			sum[1] += int(g >> 8)
			sum[2] += int(b >> 8)
		}
	}
	for i := range sum {
		sum[i] /= square.Dx() * square.Dy()
	}
	return sum
}

func differ(a, b [3]int) bool {
	for i := range a {
		if max(a[i]-b[i], b[i]-a[i]) > shadeMax {
			return true
		}
	}
	return false
}
