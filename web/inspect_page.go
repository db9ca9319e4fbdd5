package web

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"

	"github.com/refold/refold/internal/inspector"
)

// pageRoutes are those of the inspector's pages. They need no token: what they show, the
// script asks for with one. They are no part of the API, and not in its document.
func pageRoutes() []*route {
	all := []*route{
		{method: http.MethodGet, path: "/assets/{version}/{file}", open: withAuth, do: (*call).asset},
		{method: http.MethodGet, path: "/program/{hash}", open: withAuth, do: (*call).program},
	}
	for _, path := range inspector.Paths {
		all = append(all, &route{method: http.MethodGet, path: path, open: withAuth, do: (*call).page})
	}
	return all
}

// page sends a page of the inspector.
func (c *call) page() (any, error) {
	shell, err := inspector.Shell(c.o.Base, c.proves)
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
	if c.r.PathValue("file") == inspector.WorkerName {
		c.w.Header().Set("Content-Security-Policy", inspector.WorkerPolicy)
	}
	c.cached()
	c.raw(kind, text)
	return nil, nil
}

// cached lets browsers keep an answer whose address has the hash of its content.
func (c *call) cached() {
	c.w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	c.w.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
}

// program sends the program with which a page folds a session again.
func (c *call) program() (any, error) {
	if c.proves == nil || c.r.PathValue("hash") != c.proves.Hash {
		return nil, problem(http.StatusNotFound, CodeNotFound, "this server has no such program: load the page again")
	}
	c.cached()
	c.w.Header().Set("Vary", "Accept-Encoding")
	if strings.Contains(c.r.Header.Get("Accept-Encoding"), "gzip") {
		c.w.Header().Set("Content-Encoding", "gzip")
		c.raw("application/wasm", c.proves.Compressed)
		return nil, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(c.proves.Compressed))
	if err != nil {
		return nil, err
	}
	c.w.Header().Set("Content-Type", "application/wasm")
	c.sent = true
	_, _ = io.Copy(c.w, z) // the client may be gone
	return nil, nil
}
