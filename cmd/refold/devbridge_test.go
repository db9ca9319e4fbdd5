package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/refold/refold/internal/bus/bustest"
)

func TestNetworkedModel(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text, kind, name, fault string
		ok                      bool
	}{
		{text: "echo"}, {text: "scripted:openai"},
		{text: "openai:gpt-4.1", kind: "openai", name: "gpt-4.1", ok: true},
		{text: "openai-chat:llama3.2:1b", kind: "openai-chat", name: "llama3.2:1b", ok: true},
		{text: "gemini", ok: true, fault: "gemini:NAME"},
	} {
		kind, name, ok, err := networkedModel(c.text)
		if kind != c.kind || name != c.name || ok != c.ok || (err == nil) != (c.fault == "") || err != nil && !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%s: got %q %q %v %v", c.text, kind, name, ok, err)
		}
	}
}

func TestFindBridge(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	if _, err := findBridge(filepath.Join(dir, "bin", "refold")); err == nil || !strings.Contains(err.Error(), "go install ./cmd/...") {
		t.Errorf("without one: got %v", err)
	}
	inPath := filepath.Join(dir, "bridge")
	bustest.OK(t, os.WriteFile(inPath, []byte("#!/bin/sh\n"), 0o755))
	if got, err := findBridge(filepath.Join(dir, "bin", "refold")); err != nil || got != inPath {
		t.Errorf("in the PATH: got %s, %v", got, err)
	}
	if got, err := findBridge(filepath.Join(dir, "refold")); err != nil || got != inPath {
		t.Errorf("beside: got %s, %v", got, err)
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
	for _, kind := range networked.kinds() {
		if !strings.Contains(shown, kind+":NAME") || !strings.Contains(errOut.String(), kind) {
			t.Errorf("%s: missing in %q or %q", kind, shown, errOut.String())
		}
	}
}

func TestAMissingKeyIsNamed(t *testing.T) {
	t.Setenv("GEMINI_API_KEY", "")
	if got := networked.lacks("gemini"); !strings.Contains(got, "GEMINI_API_KEY is not set") {
		t.Errorf("without one: got %q", got)
	}
	t.Setenv("GEMINI_API_KEY", "k")
	if got := networked.lacks("gemini") + networked.lacks(""); got != "" {
		t.Errorf("with one, and of a model without keys: got %q", got)
	}
}
