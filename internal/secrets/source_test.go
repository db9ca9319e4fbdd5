package secrets_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/refold/refold/internal/secrets"
)

// environment returns a lookup with these variables.
func environment(pairs map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := pairs[name]
		return value, ok
	}
}

func write(t *testing.T, name, content string) string {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestFirstValueCounts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	catalog, err := secrets.NewCatalog(environment(map[string]string{"CRM": "from-env", "CRM_KEY": "never", "GITHUB_TOKEN": "gh"}),
		write(t, filepath.Join(dir, "catalog.json"), `[{"id": "CRM_KEY", "label": "CRM key", "env": "CRM", "docs_url": "https://crm.example/keys"}]`))
	if err != nil {
		t.Fatal(err)
	}
	tree := t.TempDir()
	chain := secrets.Chain{secrets.Files(tree), catalog}
	get := func(name string) string {
		t.Helper()
		value, err := chain.Secret(t.Context(), "crm", name)
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	if got := get("CRM_KEY"); got != "from-env" {
		t.Errorf("without a file: got %q", got)
	}
	write(t, filepath.Join(tree, "CRM_KEY"), "\n")
	if got := get("CRM_KEY"); got != "from-env" {
		t.Errorf("an empty file: got %q", got)
	}
	write(t, filepath.Join(tree, "CRM_KEY"), "from-file\r\n")
	if got := get("CRM_KEY"); got != "from-file" {
		t.Errorf("with a file: got %q", got)
	}
	write(t, filepath.Join(tree, "CRM_KEY"), "rotated")
	if got := get("CRM_KEY"); got != "rotated" {
		t.Errorf("a file that changed: got %q", got)
	}
	if got := get("GITHUB_TOKEN"); got != "gh" {
		t.Errorf("the built-in catalog: got %q", got)
	}
	for _, name := range []string{"CRM", "OTHER", "../CRM_KEY", ""} {
		if got := get(name); got != "" {
			t.Errorf("%q has no entry and no file: got %q", name, got)
		}
	}
	if advice := catalog.Advice("CRM_KEY"); !strings.Contains(advice, "CRM key") || !strings.Contains(advice, "https://crm.example/keys") {
		t.Errorf("advice: got %q", advice)
	}
}

func TestFailingSourceNamesTheSecretButNotThePath(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "FOLDER"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := secrets.Chain{secrets.Files(dir)}.Secret(t.Context(), "crm", "FOLDER")
	if err == nil || !strings.Contains(err.Error(), "FOLDER") || strings.Contains(err.Error(), dir) {
		t.Errorf("a folder: got %v; want the secret's name and no path", err)
	}
	write(t, filepath.Join(dir, "LARGE"), strings.Repeat("x", secrets.ValueBytesMax+1))
	if _, err := (secrets.Chain{secrets.Files(dir)}).Secret(t.Context(), "crm", "LARGE"); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("too large: got %v", err)
	}
}

func TestInvalidCatalogIsRefused(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "catalog.json")
	for content, want := range map[string]string{
		`{}`:                          "cannot unmarshal",
		`[{"id": "A", "colour": 1}]`:  "colour",
		`[{"id": "a-b", "env": "A"}]`: "[0].id",
		`[{"id": "A"}]`:               "[0].env",
		`[{"id":"A","env":"A"},{"id":"A","env":"B"}]`: "twice",
	} {
		if _, err := secrets.NewCatalog(environment(nil), write(t, name, content)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", content, err, want)
		}
	}
	if _, err := secrets.NewCatalog(environment(nil), name+".none"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: got %v", err)
	}
}
