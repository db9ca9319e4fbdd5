// Package inspector holds the inspector's pages: a shell of HTML, and the script and
// styles that fill it in the browser. The HTTP API of package web has what they show.
//
// # Path
//
// The server answers each path of a page with the same shell (Shell). It names the assets
// below assets/ and a hash of all of them, so a browser may keep them for ever. The script
// reads the page's address, asks the API with the token that it holds in memory, and makes
// nodes. static/app.js is where it begins; static/api.js talks to the server.
//
// # Laws
//
//   - The files that are served are the files that are written: there is no build. The
//     one exception is static/preact.js, which make vendor-js makes of the packages that
//     npm/package-lock.json pins; a test compares its hash.
//   - No text becomes HTML: the script makes text nodes alone, and the browser enforces it
//     (Policy). Control characters, and those that change the direction of text or can't be
//     seen, are shown as escapes.
//   - A page sends requests to its own server alone.
//
// # Testing
//
// Tests with the build tag peers open the pages in Chromium (make check-web).
package inspector

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"html/template"
	"io/fs"
	"path"
	"sync"
)

//go:embed static/*.js static/*.css static/*.svg static/*.txt
var static embed.FS

//go:embed shell.html
var shellText string

var shell = template.Must(template.New("shell").Parse(shellText))

// Policy is the Content-Security-Policy of the pages. Its one policy of Trusted Types lets
// the address of the worker through, and nothing else: static/prove.js has it.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types refold-worker"

// Paths are those of the pages, as a http.ServeMux has them.
var Paths = []string{"/", "/s/{session}", "/approvals", "/fleet", "/system"}

// types are the media types of assets, by the ends of their names.
var types = map[string]string{".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8"}

// Hash names this version of all assets.
var Hash = sync.OnceValue(func() string {
	sum := sha256.New()
	_ = fs.WalkDir(static, "static", func(name string, d fs.DirEntry, err error) error { // an embedded file can be read
		if err == nil && !d.IsDir() {
			text, _ := static.ReadFile(name)
			sum.Write([]byte(name))
			sum.Write(text)
		}
		return nil
	})
	sum.Write(starter)
	return hex.EncodeToString(sum.Sum(nil))[:16]
})

// Asset returns the file that a page names, and its media type; ok is false if there is
// none.
func Asset(name string) (text []byte, mediaType string, ok bool) {
	if name == WorkerName {
		return Worker(), types[".js"], true
	}
	text, err := static.ReadFile("static/" + name)
	return text, types[path.Ext(name)], err == nil && types[path.Ext(name)] != ""
}

// Shell returns the page that the script fills, for a server under a path: empty, or such
// as /agents. It names the program with which the page may fold sessions, if that is not
// nil.
func Shell(base string, p *Program) ([]byte, error) {
	var out bytes.Buffer
	names := map[string]string{"Base": base, "Assets": base + "/assets/" + Hash()}
	if p != nil {
		names["Program"] = p.Hash
	}
	err := shell.Execute(&out, names)
	return out.Bytes(), err
}
