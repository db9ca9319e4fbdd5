package web

import (
	_ "embed"
	"net/http"
	"strings"
)

// document is the OpenAPI document: TestDocumentIsCurrent writes it from the table of
// routes and the types of bodies.
//
//go:generate go test -run ^TestDocumentIsCurrent$ . -args -rewrite
//go:embed openapi.json
var document []byte

// page shows the document to people.
//
//go:embed docs.html
var page []byte

// openAPI sends the document.
func (c *call) openAPI() (any, error) {
	c.raw("application/json", document)
	return nil, nil
}

// docs sends the page.
func (c *call) docs() (any, error) {
	c.w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'")
	c.raw("text/html; charset=utf-8", page)
	return nil, nil
}

// raw sends bytes.
func (c *call) raw(kind string, body []byte) {
	if len(c.masks) > 0 && (strings.HasPrefix(kind, "text/plain") || strings.HasPrefix(kind, "text/markdown")) {
		body = []byte(c.masks.text(string(body)))
	}
	c.w.Header().Set("Content-Type", kind)
	c.w.WriteHeader(http.StatusOK)
	c.sent = true
	_, _ = c.w.Write(body) // the client may be gone
}
