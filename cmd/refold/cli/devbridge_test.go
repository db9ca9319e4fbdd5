package cli

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/llm/provider"
)

func TestNetworkedModelsAreParsed(t *testing.T) { //nolint:paralleltest // it sets the environment
	for _, of := range provider.All {
		t.Setenv(of.KeyVariable(), "k")
	}
	for _, c := range []struct {
		text  string
		want  networkedModel
		fault string
		ok    bool
	}{
		{text: "echo"}, {text: "scripted:openai"}, {text: "local=scripted:x"},
		{text: "openai:gpt-4.1", want: networkedModel{served: "openai", provider: "openai", name: "gpt-4.1"}, ok: true},
		{text: "openai-chat:llama3.2:1b", want: networkedModel{served: "openai-chat", provider: "openai-chat", name: "llama3.2:1b"}, ok: true},
		{text: "local=openai-chat:http://127.0.0.1:1/v1", want: networkedModel{served: "local=openai-chat:http://127.0.0.1:1/v1", provider: "local"}, ok: true},
		{text: "google=gemini", want: networkedModel{served: "google=gemini", provider: "google"}, ok: true},
		{text: "gemini", ok: true, fault: "gemini:NAME"},
		{text: "openai-chat:http://127.0.0.1:1/v1", ok: true, fault: "local=openai-chat:http://127.0.0.1:1/v1"},
		{text: "local=openai-chat:llama", ok: true, fault: "is not an address"},
	} {
		got, ok, err := parseNetworked(c.text)
		if got != c.want || ok != c.ok || (err == nil) != (c.fault == "") || err != nil && !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%s: got %+v %v %v", c.text, got, ok, err)
		}
	}
}

// TestRealModelsAreNamedAlike: the help of dev, its errors and the list of
// networked models name the same models.
func TestRealModelsAreNamedAlike(t *testing.T) {
	t.Parallel()
	var help, errOut text
	if status := Main(t.Context(), []string{"dev", "--help"}, nil, &help, io.Discard); status != 0 {
		t.Errorf("help: status %d", status)
	}
	if status := Main(t.Context(), []string{"dev", "--dir", t.TempDir(), "--model", "gpt"}, nil, io.Discard, &errOut); status != statusFailed {
		t.Errorf("an unknown model: status %d", status)
	}
	shown := strings.Join(strings.Fields(help.String()), " ")
	if !strings.Contains(shown, provider.Kinds(":NAME")) || !strings.Contains(errOut.String(), provider.Kinds("")) {
		t.Errorf("got %q and %q", shown, errOut.String())
	}
}

func TestMissingKeyIsNamed(t *testing.T) {
	for _, of := range provider.All {
		t.Setenv(of.KeyVariable(), "")
	}
	t.Setenv("OPENAI_BASE_URL", "")
	for text, want := range map[string]string{
		"gemini:x": "GEMINI_API_KEY", "google=gemini": "GEMINI_API_KEY", "openai:x": "OPENAI_API_KEY",
		"local=openai-chat:http://127.0.0.1:1/v1": "", "echo": "",
	} {
		if _, _, err := parseNetworked(text); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), "no key: set "+want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
	t.Setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
	if _, _, err := parseNetworked("openai:x"); err != nil {
		t.Errorf("another server: %v", err)
	}
}

// TestWorkdirHoldsNoKeys: the files of dev lie in no directory in which commands
// run. The default of --dir lies in the current one.
func TestWorkdirHoldsNoKeys(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	work := filepath.Join(root, "work")
	bustest.OK(t, os.Mkdir(work, 0o700))
	link := filepath.Join(root, "link")
	bustest.OK(t, os.Symlink(work, link))
	for _, c := range []struct {
		workdir, dir string
		refused      bool
	}{
		{work, filepath.Join(work, ".refold"), true},
		{work, filepath.Join(link, ".refold"), true},
		{link, filepath.Join(work, "a", "b"), true},
		{work, work, true},
		{"/", filepath.Join(root, "dir"), true},
		{filepath.Join(work, "new"), filepath.Join(work, "new", ".refold"), true},
		{work, filepath.Join(root, "work-refold"), false},
		{work, filepath.Join(root, "..refold"), false},
		{work, root, false},
		{"", filepath.Join(work, ".refold"), false},
	} {
		err := devCommand{Workdir: c.workdir, Dir: c.dir}.checkWorkdir()
		if (err != nil) != c.refused {
			t.Errorf("--workdir %s --dir %s: %v", c.workdir, c.dir, err)
		}
	}
	var errOut text
	status := Main(t.Context(), []string{"dev", "--workdir", work, "--dir", filepath.Join(work, ".refold")}, nil, io.Discard, &errOut)
	if status != statusUsage || !strings.Contains(errOut.String(), "as in --dir "+work+"-refold") {
		t.Errorf("status %d: %s", status, errOut.String())
	}
	if _, err := os.Stat(filepath.Join(work, ".refold")); err == nil {
		t.Error("files are there")
	}
}
