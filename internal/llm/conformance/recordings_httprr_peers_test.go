//go:build peers

package conformance

// Recordings in httprr files: requests and responses as on the wire, each pair
// after a line with their sizes.

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The files that show what the others don't.
const (
	lengthFile  = "llms/huggingface/testdata/TestHuggingFaceLLMWithProvider.httprr" // an answer that ended by its length
	authFile    = "llms/googleai/testdata/TestGoogleAIErrorHandling.httprr"
	limitedFile = "llms/openai/testdata/TestOpenRouterStreaming.httprr"
)

// notKey is in place of the keys in these files.
const notKey = "Bearer test-api-key"

// httprr returns the nth exchange of a file, and its response as it was.
func httprr(dir, file string, n int) (x exchange, response string, err error) {
	data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(file)))
	if err != nil {
		return x, "", err
	}
	_, left, ok := strings.Cut(string(data), "\n") // which version of the form it is
	for i := 0; ok; i++ {
		var sizes string
		var sent, came int
		sizes, left, ok = strings.Cut(left, "\n")
		if _, err := fmt.Sscan(sizes, &sent, &came); err != nil || sent+came > len(left) {
			break
		}
		if i == n {
			x, err = parsed(left[:sent], left[sent:sent+came])
			return x, left[sent : sent+came], err
		}
		left = left[sent+came:]
	}
	return x, "", fmt.Errorf("%s has no exchange %d", file, n)
}

// parsed reads a request and a response.
func parsed(sent, came string) (x exchange, err error) {
	request, err := http.ReadRequest(bufio.NewReader(strings.NewReader(sent)))
	if err != nil {
		return x, err
	}
	if x.sent, err = io.ReadAll(request.Body); err != nil {
		return x, err
	}
	response, err := http.ReadResponse(bufio.NewReader(strings.NewReader(came)), request)
	if err != nil {
		return x, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	x.url, x.media, x.answer, x.headers = request.URL.String(), response.Header.Get("Content-Type"), string(bytes.TrimSpace(answer)), request.Header
	maps.Copy(x.headers, response.Header)
	if request.Header.Get("Authorization") == notKey {
		delete(x.headers, "Authorization")
	}
	return x, err
}

// TestRecordingsGiveOurErrorCodes: refusals of real providers get our codes.
func TestRecordingsGiveOurErrorCodes(t *testing.T) {
	t.Parallel()
	dir, err := download(langchainModule)
	must(t, err)
	for _, c := range []struct {
		api, file    string
		at           int
		status, code string
		passes       bool
	}{
		{"gemini", authFile, 0, "403", "auth", false},
		{"openai-chat", limitedFile, 1, "429", "rate_limited", true},
	} {
		x, response, err := httprr(dir, c.file, c.at)
		must(t, err)
		x.scrubbed(t, c.file)
		if !strings.HasPrefix(response, "HTTP/2.0 "+c.status) {
			t.Errorf("%s: %.40s, want the status %s", c.file, response, c.status)
		}
		head, body, _ := strings.Cut(response, "\r\n\r\n")
		response = "HTTP/1.1" + strings.TrimPrefix(head, "HTTP/2.0") + "\r\nConnection: close\r\n\r\n" + body
		a := apiOf(t, c.api)
		got := a.ask(t, hello, 0, response, a.answers(t)["text"])
		switch asked := len(got.server.got()); {
		case c.passes && (got.err != nil || asked != 2 || !strings.Contains(got.log, "code="+c.code+" ")):
			t.Errorf("%s: got %v after %d requests, logged %s, want it asked again for %s", c.file, got.err, asked, got.log, c.code)
		case !c.passes && (got.fault == nil || got.fault.Code != c.code || got.fault.Retryable || asked != 1):
			t.Errorf("%s: got %v after %d requests, want %s at once", c.file, got.err, asked, c.code)
		}
	}
}
