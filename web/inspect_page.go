package web

import (
	"net/http"

	"github.com/refold/refold/internal/inspector"
)

// pageRoutes are those of the inspector's pages. They need no token: what they show, the
// script asks for with one. They are no part of the API, and not in its document.
func pageRoutes() []*route {
	all := []*route{{method: http.MethodGet, path: "/assets/{version}/{file}", open: withAuth, do: (*call).asset}}
	for _, path := range inspector.Paths {
		all = append(all, &route{method: http.MethodGet, path: path, open: withAuth, do: (*call).page})
	}
	return all
}

// page sends a page of the inspector.
func (c *call) page() (any, error) {
	shell, err := inspector.Shell(c.o.Base)
	if err != nil {
		return nil, err
	}
	h := c.w.Header()
	h.Set("Content-Security-Policy", inspector.Policy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	c.raw("text/html; charset=utf-8", shell)
	return nil, nil
}

// asset sends a file of the pages. Its address has the hash of its content.
func (c *call) asset() (any, error) {
	text, kind, ok := inspector.Asset(c.r.PathValue("file"))
	if !ok || c.r.PathValue("version") != inspector.Hash() {
		return nil, problem(http.StatusNotFound, CodeNotFound, "the pages have no file of this name: load the page again")
	}
	c.w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	c.w.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
	c.raw(kind, text)
	return nil, nil
}
