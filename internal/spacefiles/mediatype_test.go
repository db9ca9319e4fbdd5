package spacefiles_test

import (
	"os"
	"testing"

	"github.com/refold/refold/internal/spacefiles"
)

// A name does not decide what an image or a document is, but which text a text is.
func TestMediaTypeOfFiles(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, file, want string }{
		{"plan.png", "dot.png", "image/png"}, {"plan.png", "dot.jpg", "image/jpeg"}, {"plan", "dot.webp", "image/webp"}, {"shot.jpg", "dot.heic", "image/heic"},
		{"paper.pdf", "page.pdf", "application/pdf"}, {"paper.txt", "page.pdf", "application/pdf"}, {"new.avif", "dot.avif", "application/octet-stream"},
		{"README.md", "README.md", "text/markdown"}, {"plan.png", "README.md", "text/plain"},
	} {
		content, err := os.ReadFile("../media/testdata/" + c.file)
		if err != nil {
			t.Fatal(err)
		}
		if got := spacefiles.MediaType(c.name, content); got != c.want {
			t.Errorf("%s with the content of %s: got %s, want %s", c.name, c.file, got, c.want)
		}
	}
}
