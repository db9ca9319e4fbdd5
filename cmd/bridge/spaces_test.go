package main

// The file of --spaces: a fault in it is reported with its key, and a target
// serves only the spaces that it names.

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/bus/bustest"
)

func TestSpacesFile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"no such file":  {"", []string{"--spaces", "no such file"}},
		"no source":     {"targets: {files: {spaces: {support: {scan: false}}}}", []string{"--spaces", "targets.files.spaces.support: give one of dir, bucket and packs: true"}},
		"two faults":    {"targets: {files: {spaces: {host: {dir: x}, s: {bucket: a b}}}}", []string{"targets.files.spaces.host", "targets.files.spaces.s.bucket"}},
		"unknown key":   {"targets: {files: {spaces: {s: {dri: x}}}}", []string{"--spaces", "dri"}},
		"not YAML":      {"targets: [", []string{"--spaces"}},
		"too many dots": {"targets: {a.b: {spaces: {s: {dir: x}}}}", []string{"targets.a.b"}},
	} {
		file := filepath.Join(t.TempDir(), "spaces.yaml")
		if c.text != "" {
			bustest.OK(t, os.WriteFile(file, []byte(c.text), 0o600))
		}
		var stderr bytes.Buffer
		status := Main(t.Context(), []string{"--spaces", file, "--nats", "nats://127.0.0.1:1"}, nil, io.Discard, &stderr)
		for _, want := range c.want {
			if !strings.Contains(stderr.String(), want) {
				t.Errorf("%s: said %q, want %q in it", name, stderr.String(), want)
			}
		}
		if status == 0 || strings.Contains(stderr.String(), "no NATS server") {
			t.Errorf("%s: status %d, %q", name, status, stderr.String())
		}
	}
}

func TestSpacesOfATarget(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bustest.OK(t, os.WriteFile(filepath.Join(dir, "AGENTS.md"), []byte("x"), 0o600))
	target := byName{"support": bridge.Folder{Dir: dir}, "gone": bridge.Folder{Dir: filepath.Join(dir, "gone")}}
	for space, want := range map[string]string{"support": "", "other": "space_unknown", "gone": "space_unknown"} {
		content, err := target.ReadSpace(t.Context(), executor.SpaceRequest{Space: space})
		if content.Files != nil {
			t.Cleanup(func() { _ = content.Files.(io.Closer).Close() })
		}
		var fault *executor.Error
		code := ""
		if errors.As(err, &fault) {
			code = fault.Code
		}
		if code != want || (content.Files != nil) != (want == "") || strings.Contains(errorText(err), dir) {
			t.Errorf("%s: got %v, %v, want %q", space, content, err, want)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
