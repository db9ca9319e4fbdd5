package web_test

// The commands of docs/http.md, top to bottom: each is what it says, and succeeds.

import (
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/refold/refold"
	"github.com/refold/refold/refoldtest"
	"github.com/refold/refold/web"
)

var (
	shell = regexp.MustCompile("(?s)```sh\n(.*?)```")
	words = regexp.MustCompile(`'[^']*'|"[^"]*"|\S+`)
)

// TestCommandsOfTheDocument sends what each curl command of docs/http.md would.
func TestCommandsOfTheDocument(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/http.md")
	if err != nil {
		t.Fatal(err)
	}
	anyone := func(*http.Request) (*web.Caller, error) { return &web.Caller{Subject: "dev", Rights: web.Rights}, nil }
	model := refold.Model(refoldtest.Model(refoldtest.Say("Files."), refoldtest.Say("Des fichiers.")))
	w := serve(t, web.Options{Auth: anyone}, model)
	if _, err := w.rt.Agent("default", refold.ServedElsewhere(), model); err != nil {
		t.Fatal(err)
	}
	commands := 0
	for _, block := range shell.FindAllStringSubmatch(string(text), -1) {
		for line := range strings.Lines(block[1]) {
			commands++
			method, url, body, headers := curl(t, strings.ReplaceAll(line, "$URL", w.url))
			got := w.do("", method, url, body, headers...)
			if got.status >= 300 || got.text == "" {
				t.Errorf("%s: got %d %s", strings.TrimSpace(line), got.status, got.text)
			}
		}
	}
	if commands < 10 {
		t.Errorf("%d commands: some are lost", commands)
	}
}

// curl returns the request of a command.
func curl(t *testing.T, line string) (method, url, body string, headers []string) {
	t.Helper()
	all := words.FindAllString(line, -1)
	for i := range all {
		all[i] = strings.Trim(all[i], `'"`)
	}
	if len(all) == 0 || all[0] != "curl" {
		t.Fatalf("%q is no curl command", line)
	}
	method = http.MethodGet
	for i := 1; i < len(all); i++ {
		switch all[i] {
		case "-s", "-sN":
		case "-X":
			i++
			method = all[i]
		case "-H":
			i++
			name, value, _ := strings.Cut(all[i], ": ")
			headers = append(headers, name, value)
		case "-d", "--data-binary":
			i++
			if body = all[i]; method == http.MethodGet {
				method = http.MethodPost
			}
		default:
			if url != "" || all[i][0] == '-' {
				t.Fatalf("%q: what is %s?", line, all[i])
			}
			url = all[i]
		}
	}
	return method, url, body, headers
}
