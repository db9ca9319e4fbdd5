package spacefiles_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/refold/refold/internal/spacefiles"
	"github.com/refold/refold/space"
)

func write(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		file := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(file), 0o755))
		must(t, os.WriteFile(file, []byte(content), 0o600))
	}
}

func openDir(dir string) func(context.Context) (fs.FS, error) {
	return func(context.Context) (fs.FS, error) { return spacefiles.OpenDir(dir) }
}

// TestAttackFilesThatLeadOut: links out of the folder, pipes and sockets are
// reported wherever they are named, and never read or waited for.
func TestAttackFilesThatLeadOut(t *testing.T) {
	t.Parallel()
	outside, dir := t.TempDir(), t.TempDir()
	write(t, outside, map[string]string{"secret.md": "secret"})
	files := support()
	files["agent.workspace.json"] = strings.Replace(files["agent.workspace.json"], `["docs/**/*.md", "docs/plan.png"]`, `["docs/**/*.md", "docs/pipe", "docs/out/secret.md", "/etc/passwd"]`, 1)
	write(t, dir, files)
	for name, target := range map[string]string{
		"docs/link.md": filepath.Join(outside, "secret.md"), "docs/up.md": "../../" + filepath.Base(outside) + "/secret.md", "docs/out": outside, "docs/inside.md": "a.md",
	} {
		must(t, os.Symlink(target, filepath.Join(dir, name)))
	}
	must(t, syscall.Mkfifo(filepath.Join(dir, "docs/pipe"), 0o600))
	built, err := spacefiles.Read(t.Context(), openDir(dir), asSupport)
	must(t, err)
	var got []string
	for _, p := range built.Problems {
		got = append(got, string(p.Code)+" "+p.Path+" "+p.File)
		if strings.Contains(p.Detail, outside) || strings.Contains(p.Detail, dir) {
			t.Errorf("%v names a path of this machine", p)
		}
	}
	want := []string{
		"path_escapes context.docs[0] agent.workspace.json", "path_escapes context.docs[0] agent.workspace.json",
		"path_escapes context.docs[2] agent.workspace.json", "path_escapes context.docs[3] agent.workspace.json", "not_regular  docs/pipe",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestFoldersAndBucketsAgree: the same files give the same manifest.
func TestFoldersAndBucketsAgree(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, support())
	built, err := spacefiles.Read(t.Context(), openDir(dir), asSupport)
	if err != nil || built.Manifest == nil {
		t.Fatal(err, built.Problems)
	}
	var entries []spacefiles.Object
	for name, content := range support() {
		entries = append(entries, spacefiles.Object{Name: name, Size: int64(len(content))})
	}
	entries = append(entries, spacefiles.Object{Name: "../escape"}, spacefiles.Object{Name: "/abs"})
	objects := spacefiles.NewObjects(entries, func(name string, size int64) ([]byte, error) { return []byte(support()[name]), nil })
	if got := mustBuild(t, objects, spacefiles.Options{}); got.Hash() != built.Manifest.Hash() {
		t.Errorf("the bucket gives %+v, the folder %+v", got, built.Manifest)
	}
}

// changing is a folder in which a file changes after each of the first reads.
type changing struct {
	fstest.MapFS
	left *int
}

func (c changing) Open(name string) (fs.File, error) {
	f, err := c.MapFS.Open(name)
	if name == "docs/a.md" && *c.left > 0 {
		*c.left--
		file := *c.MapFS[name]
		file.ModTime = file.ModTime.Add(time.Second)
		file.Data = append([]byte("more "), file.Data...)
		c.MapFS[name] = &file
	}
	return f, err
}

func TestChangedFileIsReadAgain(t *testing.T) {
	t.Parallel()
	for changes, want := range map[int]error{0: nil, 2: nil, 3: spacefiles.ErrChanged} {
		fsys := changing{folder(support()), &changes}
		times := changes
		built, err := spacefiles.Read(t.Context(), func(context.Context) (fs.FS, error) { return fsys, nil }, asSupport)
		if !errors.Is(err, want) || (built.Manifest != nil) != (want == nil) {
			t.Errorf("%d changes: got %v, want %v", times, err, want)
		}
		if want == nil && string(built.Files[built.Manifest.Files[0].Ref]) != strings.Repeat("more ", times)+"A\n" {
			t.Errorf("%d changes: the content is not the last one", times)
		}
	}
}

// TestChangedListingIsReadAgain: a glob depends on the listing. If a file
// appears or disappears during the reading, everything is read again.
func TestChangedListingIsReadAgain(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(dir string) error{
		"a file comes": func(dir string) error { return os.WriteFile(filepath.Join(dir, "docs/new.md"), nil, 0o600) },
		"a file goes":  func(dir string) error { return os.Remove(filepath.Join(dir, "docs/b.txt")) },
	} {
		dir := t.TempDir()
		write(t, dir, map[string]string{"agent.workspace.json": `{"v": 1, "context": {"docs": ["docs/*"]}}`, "docs/a.md": "A", "docs/b.txt": "B"})
		opened := 0
		built, err := spacefiles.Read(t.Context(), func(context.Context) (fs.FS, error) {
			opened++
			d, err := spacefiles.OpenDir(dir)
			return &interrupted{Dir: d, at: "docs/a.md", then: func() error {
				if opened > 1 {
					return nil
				}
				return change(dir)
			}}, err
		}, asSupport)
		again := mustBuild(t, os.DirFS(dir), spacefiles.Options{})
		if err != nil || built.Manifest == nil || opened != 2 || built.Manifest.Hash() != again.Hash() {
			t.Errorf("%s: read %d times, %v, %v, want what is there now", name, opened, err, built.Problems)
		}
	}
}

// interrupted is a folder in which something happens when a file is opened.
type interrupted struct {
	*spacefiles.Dir
	at   string
	then func() error
}

func (i *interrupted) Open(name string) (fs.File, error) {
	f, err := i.Dir.Open(name)
	if name == i.at {
		err = errors.Join(err, i.then())
	}
	return f, err
}

// TestReplacedFileIsReadAgain: an object that was replaced after the listing is
// not a missing file.
func TestReplacedFileIsReadAgain(t *testing.T) {
	t.Parallel()
	for _, replaced := range []int{0, 2, 3} {
		left := replaced
		open := func(context.Context) (fs.FS, error) {
			return spacefiles.NewObjects([]spacefiles.Object{{Name: "AGENTS.md", Size: 1}}, func(string, int64) ([]byte, error) {
				if left--; left >= 0 {
					return nil, fmt.Errorf("AGENTS.md: %w", spacefiles.ErrReplaced)
				}
				return []byte("x"), nil
			}), nil
		}
		built, err := spacefiles.Read(t.Context(), open, asSupport)
		if (replaced == 3) != errors.Is(err, spacefiles.ErrChanged) || (built.Manifest == nil) != (replaced == 3) {
			t.Errorf("replaced %d times: got %v, %v", replaced, err, built.Problems)
		}
	}
}

// TestGiantFilesAreNotRead: the size is checked before the content is read.
func TestGiantFilesAreNotRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, map[string]string{"agent.workspace.json": `{"v": 1, "context": {"docs": ["docs/*"]}}`, "docs/a.md": "A"})
	must(t, os.Truncate(filepath.Join(dir, "docs/a.md"), 1<<40))
	built, err := spacefiles.Read(t.Context(), openDir(dir), asSupport)
	if err != nil || len(built.Problems) != 1 || built.Problems[0].Code != space.TooLarge || built.Problems[0].File != "docs/a.md" {
		t.Errorf("a file of a TiB: got %v, %v", built.Problems, err)
	}
	object := spacefiles.NewObjects([]spacefiles.Object{{Name: "AGENTS.md", Size: 1 << 40}}, func(string, int64) ([]byte, error) {
		return nil, errors.New("its content was asked for")
	})
	built, err = spacefiles.Read(t.Context(), func(context.Context) (fs.FS, error) { return object, nil }, asSupport)
	if err != nil || len(built.Problems) != 1 || built.Problems[0].Code != space.TooLarge {
		t.Errorf("an object of a TiB: got %v, %v", built.Problems, err)
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	load := func(text string) (*spacefiles.Config, error) {
		file := filepath.Join(dir, "spaces.yaml")
		write(t, dir, map[string]string{"spaces.yaml": text})
		return spacefiles.LoadConfig(file)
	}
	c, err := load("targets:\n  files:\n    spaces:\n      support: {dir: agents/support}\n      shared: {bucket: FILES, prefix: a/b/, scan: false}\n")
	must(t, err)
	if s := c.Targets["files"].Spaces["support"]; s.Dir != filepath.Join(dir, "agents/support") {
		t.Errorf("the folder is %s: it is relative to the file", s.Dir)
	}
	for text, want := range map[string]string{
		"": "targets: name one",
		"targets:\n  a b: {spaces: {s: {dir: x}}}":                 "targets.a b:",
		"targets:\n  a: {}":                                        "targets.a.spaces: name one",
		"targets:\n  a: {spaces: {host: {dir: x}}}":                "targets.a.spaces.host: a space's name",
		"targets:\n  a: {spaces: {s: {dir: x, bucket: y}}}":        "targets.a.spaces.s: give one of",
		"targets:\n  a: {spaces: {s: {dir: x, prefix: p/}}}":       "targets.a.spaces.s.prefix",
		"targets:\n  a: {spaces: {s: {bucket: x, prefix: ../p/}}}": "targets.a.spaces.s.prefix",
		"targets:\n  a: {spaces: {s: {dri: x}}}":                   "dri",
		"targets:\n  a: {spaces: {s: {dir: x}, s: {dir: y}}}":      "s",
		"targets:\n  a: {spaces: {s: {bucket: a.b}}}":              "targets.a.spaces.s.bucket:",
		"targts: {}": "targts",
	} {
		if _, err := load(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want an error with %q", text, err, want)
		}
	}
}

func TestSourcesHaveVersions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, map[string]string{"1.0.0/AGENTS.md": "one", "2.0.0/AGENTS.md": "two"})
	store := func(_ context.Context, bucket, prefix string) (fs.FS, error) {
		var entries []spacefiles.Object
		for _, name := range []string{"p/1.0.0/AGENTS.md", "p/2.0.0/AGENTS.md"} {
			if rest, ok := strings.CutPrefix(name, prefix); ok {
				entries = append(entries, spacefiles.Object{Name: rest, Size: 3})
			}
		}
		return spacefiles.NewObjects(entries, func(string, int64) ([]byte, error) {
			return []byte(map[bool]string{true: "one", false: "two"}[strings.Contains(prefix, "1.0.0")]), nil
		}), nil
	}
	for name, s := range map[string]spacefiles.Source{"dir": {Dir: dir}, "bucket": {Bucket: "B", Prefix: "p/"}} {
		var hashes []string
		for _, version := range []string{"1.0.0", "2.0.0"} {
			built, err := spacefiles.Read(t.Context(), func(ctx context.Context) (fs.FS, error) { return s.Open(ctx, version, store) }, func() spacefiles.Options { return spacefiles.Options{Space: "s"} })
			if err != nil || built.Manifest == nil {
				t.Fatalf("%s %s: %v, %v", name, version, err, built.Problems)
			}
			hashes = append(hashes, built.Manifest.Hash().String())
		}
		if hashes[0] == hashes[1] {
			t.Errorf("%s: both versions are the same", name)
		}
		for _, version := range []string{"3.0.0", "..", "1.0.0/..", "/etc"} {
			if _, err := s.Open(t.Context(), version, store); !errors.Is(err, spacefiles.ErrVersion) {
				t.Errorf("%s, version %q: got %v, want ErrVersion", name, version, err)
			}
		}
	}
}

// TestVersionMustBeAFolder: not a file, or a link that leads out.
func TestVersionMustBeAFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, map[string]string{"1.0.0": "a file"})
	must(t, os.Symlink(t.TempDir(), filepath.Join(dir, "2.0.0")))
	for _, version := range []string{"1.0.0", "2.0.0"} {
		if _, err := (&spacefiles.Source{Dir: dir}).Open(t.Context(), version, nil); !errors.Is(err, spacefiles.ErrVersion) {
			t.Errorf("version %s: got %v, want ErrVersion", version, err)
		}
	}
	if _, err := (&spacefiles.Source{Dir: filepath.Join(dir, "gone")}).Open(t.Context(), "", nil); !errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), dir) {
		t.Errorf("a folder that is not there: got %v, want fs.ErrNotExist without the path", err)
	}
}

func TestSecretsInFoldersAreReported(t *testing.T) {
	t.Parallel()
	files := support()
	files["docs/a.md"] = "ok\nkey: sk-" + strings.Repeat("a", 40) + "\n"
	built := build(t, folder(files), spacefiles.Options{})
	found := built.Secrets()
	if len(found) != 1 || found[0].Code != space.SecretInFile || found[0].Line != 2 || strings.Contains(found[0].Detail, "sk-") {
		t.Errorf("got %v", found)
	}
	if found := build(t, folder(support()), spacefiles.Options{}); found.Secrets() != nil {
		t.Errorf("without a key: got %v", found.Secrets())
	}
}

func asSupport() spacefiles.Options { return spacefiles.Options{Space: "support"} }
