//go:build peers

package conformance

// Recordings of real providers, published by others: testdata of two modules, at
// versions and with hashes that testdata/recordings pins. They are not copied here.

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/goccy/go-yaml"
)

const (
	fantasyModule   = "charm.land/fantasy"
	langchainModule = "github.com/tmc/langchaingo"
)

// recording is one file: turns of one conversation, in their order.
type recording struct {
	file  string
	turns []exchange
}

// exchange is one request and its answer.
type exchange struct {
	url    string
	sent   []byte
	media  string // of the answer
	answer string

	headers http.Header // of both
}

// cassette is a file as go-vcr writes it.
type cassette struct {
	Interactions []struct {
		Request struct {
			Body    string              `yaml:"body"`
			Headers map[string][]string `yaml:"headers"`
			URL     string              `yaml:"url"`
		} `yaml:"request"`
		Response struct {
			Body    string              `yaml:"body"`
			Headers map[string][]string `yaml:"headers"`
			Code    int                 `yaml:"code"`
		} `yaml:"response"`
	} `yaml:"interactions"`
}

// download returns where a module lies, by its version and hash in
// testdata/recordings.
var download = func() func(module string) (string, error) {
	var mu sync.Mutex
	return func(module string) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		cmd := exec.Command("go", "mod", "download", "-json", module)
		cmd.Dir = filepath.Join("testdata", "recordings")
		cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
		out, err := cmd.Output()
		var got struct{ Dir, Error string }
		if json.Unmarshal(out, &got) == nil && err == nil && got.Error == "" && got.Dir != "" {
			return got.Dir, nil
		}
		said := got.Error
		var exit *exec.ExitError
		if errors.As(err, &exit) && said == "" {
			said = strings.TrimSpace(string(exit.Stderr))
		}
		if strings.Contains(said, "checksum mismatch") {
			return "", fmt.Errorf("%s is not what testdata/recordings/go.sum names; don't use it, and find out who changed it: %s", module, said)
		}
		return "", fmt.Errorf("%s can't be downloaded: %s (%w). If the module proxy can't be reached, try again later, or name one that can: "+
			"GOPROXY=https://HOST make check-peers", module, said, err)
	}
}()

// load reads all recordings once.
var load = sync.OnceValues(func() ([]recording, error) {
	dir, err := download(fantasyModule)
	if err != nil {
		return nil, err
	}
	var all []recording
	root := filepath.Join(dir, "providertests", "testdata")
	err = filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".yaml" {
			return err
		}
		r, err := readCassette(root, path)
		all = append(all, r)
		return err
	})
	if err != nil {
		return nil, err
	}
	if dir, err = download(langchainModule); err != nil {
		return nil, err
	}
	x, _, err := httprr(dir, lengthFile, 0)
	return append(all, recording{file: lengthFile, turns: []exchange{x}}), err
})

func readCassette(root, path string) (recording, error) {
	file, err := filepath.Rel(root, path)
	if err != nil {
		return recording{}, err
	}
	r := recording{file: filepath.ToSlash(file)}
	data, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	var c cassette
	if err := yaml.Unmarshal(data, &c); err != nil {
		return r, fmt.Errorf("%s: %w", file, err)
	}
	for _, i := range c.Interactions {
		if i.Response.Code != http.StatusOK {
			return r, fmt.Errorf("%s: an answer of the status %d, which no test plays", file, i.Response.Code)
		}
		x := exchange{url: i.Request.URL, sent: []byte(i.Request.Body), answer: i.Response.Body, headers: http.Header{}}
		maps.Copy(x.headers, i.Request.Headers)
		maps.Copy(x.headers, i.Response.Headers)
		if media := i.Response.Headers["Content-Type"]; len(media) > 0 {
			x.media = media[0]
		}
		r.turns = append(r.turns, x)
	}
	return r, nil
}

func recordings(t *testing.T) []recording {
	t.Helper()
	all, err := load()
	must(t, err)
	return all
}

// keyLike finds what providers' keys look like.
var keyLike = regexp.MustCompile(`\bsk-[A-Za-z0-9_-]{16,}|\bAIza[0-9A-Za-z_-]{35}|\bBearer [A-Za-z0-9._-]{8,}|\b(AKIA|ASIA)[0-9A-Z]{16}\b|` +
	`\b(gsk|hf|vck)_[A-Za-z0-9]{20,}|\bxai-[A-Za-z0-9]{20,}|\bya29\.[A-Za-z0-9_-]{20,}`)

// secretHeaders hold keys.
var secretHeaders = []string{
	"authorization", "proxy-authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie", "set-cookie", "x-amz-security-token",
}

// scrubbed reports what looks like a key.
func (x exchange) scrubbed(t *testing.T, of string) {
	t.Helper()
	for name, values := range x.headers {
		if slices.Contains(secretHeaders, strings.ToLower(name)) && strings.Join(values, "") != "" {
			t.Errorf("%s: has the header %s", of, name)
		}
	}
	for _, text := range []string{x.url, string(x.sent), x.answer} {
		if found := keyLike.FindString(text); found != "" {
			t.Errorf("%s: has what looks like a key: %.12s…", of, found)
		}
	}
}

// TestRecordingsHoldNoKey: no recording has a header for keys, or a text that
// looks like a key.
func TestRecordingsHoldNoKey(t *testing.T) {
	t.Parallel()
	exchanges, files := 0, 0
	for _, r := range recordings(t) {
		files++
		for i, x := range r.turns {
			exchanges++
			x.scrubbed(t, fmt.Sprintf("%s, %d", r.file, i))
		}
	}
	if !keyLike.MatchString("Bearer "+key) || !keyLike.MatchString(key) {
		t.Errorf("%s is not found", key)
	}
	if exchanges != 545 || files != 357 {
		t.Errorf("%d exchanges in %d files, want 545 in 357", exchanges, files)
	}
	t.Logf("%d exchanges in %d files hold no key", exchanges, files)
}
