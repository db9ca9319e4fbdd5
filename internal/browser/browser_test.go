//go:build peers

package browser

// Tests that the browser sees what goes wrong in a page, reaches this machine alone, and
// tells pictures apart.

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

const faulty = `<!doctype html><title>A page</title><link rel="icon" href="data:,"><p id="text">Hello</p><script>
console.error("said", 7);
setTimeout(() => { throw new Error("thrown") });
fetch("/missing");
fetch("http://example.com/").catch(() => { document.title = "refused" });
</script>`

// recorder is a test whose failures are expected.
type recorder struct {
	testing.TB
	errors []string
}

func (r *recorder) Errorf(format string, args ...any) { r.errors = append(r.errors, format) }

func TestPeersBrowserSeesFaults(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(faulty))
	}))
	t.Cleanup(server.Close)
	p := Open(t, Narrow)
	p.Do(chromedp.Navigate(server.URL))
	p.Eventually(`document.title == "refused"`)
	p.TakeFault(`console: "said" 7`)
	p.TakeFault("thrown")
	p.TakeFault("/missing: 404")
	recorded := &recorder{TB: t}
	p.t = recorded
	p.reportFaults()
	p.t = t
	if len(recorded.errors) != 1 {
		t.Errorf("a fault that was not taken gives the errors %q, want one", recorded.errors)
	}
	p.TakeFault("http://example.com/: net::ERR_NAME_NOT_RESOLVED")
	if got := p.Text(); got != "Hello" {
		t.Errorf("the page's text is %q", got)
	}
	picture, err := png.Decode(bytes.NewReader(p.Screenshot()))
	if err != nil || picture.Bounds().Size() != image.Pt(int(Narrow.Width), int(Narrow.Height)) {
		t.Errorf("the picture is of %v, %v; want the page's size", picture.Bounds(), err)
	}
	file := filepath.Join(t.TempDir(), "sub", "page.png")
	p.Matches(file, true)
	p.Matches(file, false)
	Value[string](p, `document.body.style.background = "red"`)
	p.t = recorded
	p.Matches(file, false)
	p.t = t
	if _, err := os.Stat(file + ".got.png"); len(recorded.errors) != 2 || err != nil {
		t.Errorf("another picture gives the errors %q and the file: %v", recorded.errors, err)
	}
}

func TestPeersPicturesAlike(t *testing.T) {
	t.Parallel()
	draw := func(size, red int) []byte {
		m := image.NewRGBA(image.Rect(0, 0, size, 200))
		for x := range red {
			for y := range 20 {
				m.Set(x, y, color.RGBA{R: 255, A: 255})
			}
		}
		var b bytes.Buffer
		if err := png.Encode(&b, m); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	if err := alike(draw(200, 20), draw(200, 21)); err != nil {
		t.Errorf("a line of a pixel: %v", err)
	}
	if err := alike(draw(200, 20), draw(200, 60)); !errors.Is(err, errUnlike) || !strings.Contains(err.Error(), "squares") {
		t.Errorf("another square: %v", err)
	}
	if err := alike(draw(200, 20), draw(201, 20)); !errors.Is(err, errUnlike) {
		t.Errorf("another size: %v", err)
	}
}
