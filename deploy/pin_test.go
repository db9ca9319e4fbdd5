package deploy_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Digests that the registry of the test has, by image.
var digests = map[string]string{
	"/v2/library/nats/manifests/2.15.3-alpine": "sha256:" + strings.Repeat("ab", 32),
	"/v2/some/tool/manifests/1.2":              "sha256:" + strings.Repeat("cd", 32),
}

// serveRegistry serves a registry that wants a token, as Docker Hub does.
func serveRegistry(t *testing.T) string {
	t.Helper()
	mux := http.NewServeMux()
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(`{"expires_in": 300, "token": "` + r.FormValue("service") + " " + r.FormValue("scope") + `"}`))
	})
	mux.HandleFunc("/v2/", func(w http.ResponseWriter, r *http.Request) {
		repository, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v2/"), "/manifests/")
		digest, ok := digests[r.URL.Path]
		switch {
		case r.Header.Get("Authorization") != "Bearer the registry repository:"+repository+":pull":
			w.Header().Set("Www-Authenticate", `Bearer realm="`+s.URL+`/token",service="the registry"`)
			w.WriteHeader(http.StatusUnauthorized)
		case !ok:
			w.WriteHeader(http.StatusNotFound)
		case r.Method == http.MethodHead && strings.Contains(strings.Join(r.Header.Values("Accept"), " "), "index"):
			w.Header().Set("Docker-Content-Digest", digest)
		}
	})
	return s.URL
}

// pin runs the script on a file that has the text, and returns what it makes of
// the text and what it says.
func pin(t *testing.T, registry, text string) (after, said string, err error) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "./pin-images.sh", name)
	cmd.Env = append(os.Environ(), "PIN_REGISTRY="+registry)
	out, err := cmd.CombinedOutput()
	read, readErr := os.ReadFile(name)
	if readErr != nil {
		t.Fatal(readErr)
	}
	return string(read), string(out), err
}

const unpinned = `# nats:2.15.3-alpine in a comment
FROM nats:2.15.3-alpine AS nats
FROM some/tool:1.2@sha256:0123
FROM nats AS other
  image: nats:2.15.3-alpine
  image: refold/bridge
  image: some/tool:1x2
`

// TestPinImagesAddsDigests: images from a registry get the digest of their
// version, and nothing else changes; a second run changes nothing.
func TestPinImagesAddsDigests(t *testing.T) {
	t.Parallel()
	registry := serveRegistry(t)
	digests := []string{digests["/v2/library/nats/manifests/2.15.3-alpine"], digests["/v2/some/tool/manifests/1.2"]}
	text := strings.Replace(unpinned, "1x2", "1.2", 1)
	want := `# nats:2.15.3-alpine in a comment
FROM nats:2.15.3-alpine@` + digests[0] + ` AS nats
FROM some/tool:1.2@` + digests[1] + `
FROM nats AS other
  image: nats:2.15.3-alpine@` + digests[0] + `
  image: refold/bridge
  image: some/tool:1.2@` + digests[1] + "\n"
	for range 2 {
		got, said, err := pin(t, registry, text)
		if err != nil || got != want {
			t.Fatalf("got %v, %s\n%s\nwant\n%s", err, said, got, want)
		}
		text = got
	}
}

// TestPinImagesChangesNothingOnFailure: if a digest is not found, nothing
// changes and the error says why.
func TestPinImagesChangesNothingOnFailure(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for registry, want := range map[string]string{
		serveRegistry(t): "has no digest for some/tool:1x2",
		gone.URL:         "can't be reached. Try again later, or name a mirror that can: PIN_REGISTRY=",
	} {
		got, said, err := pin(t, registry, unpinned)
		if err == nil || got != unpinned || !strings.Contains(said, "make pin-images: "+registry+" "+want) {
			t.Errorf("got %v, %q, want %q; the file is\n%s", err, said, want, got)
		}
	}
}
