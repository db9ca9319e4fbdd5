package api

// What: the public packages, the HTTP API and the messages are what the release promises.
//
// How: the lines of the code are compared with the files in the directory api.

import (
	"os"
	"regexp"
	"testing"

	"github.com/refold/refold/internal/archtest"
)

const root = "../.."

func TestPublicPackagesArePromised(t *testing.T) {
	t.Parallel()
	public, experimental := archtest.Promised()
	lines, err := Go(root, public, experimental)
	if err != nil {
		t.Fatal(err)
	}
	Check(t, root, "go.txt", lines)
}

// TestHTTPIsPromised: what the inspector alone uses comes with the server, and is not.
func TestHTTPIsPromised(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile(root + "/web/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	lines, err := HTTP(document, "inspector")
	if err != nil {
		t.Fatal(err)
	}
	Check(t, root, "http.txt", lines)
}

// TestMessagesArePromised: snapshots are a cache, and are not.
func TestMessagesArePromised(t *testing.T) {
	t.Parallel()
	lines, err := Wire(os.DirFS(root+"/docs/schemas"), "Snapshot", "SnapshotBlob")
	if err != nil {
		t.Fatal(err)
	}
	Check(t, root, "wire.txt", lines)
}

// TestVersionsAreTheSame: the clients have the version of the changelog's latest section.
func TestVersionsAreTheSame(t *testing.T) {
	t.Parallel()
	versions := map[string]string{}
	for name, pattern := range map[string]string{
		"CHANGELOG.md":                    `(?m)^## \[(\d+\.\d+\.\d+)\]`,
		"clients/python/pyproject.toml":   `(?m)^version = "(.*)"$`,
		"clients/typescript/package.json": `(?m)^  "version": "(.*)",$`,
	} {
		text, err := os.ReadFile(root + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(pattern).FindSubmatch(text)
		if found == nil {
			t.Fatalf("%s has no version", name)
		}
		versions[name] = string(found[1])
	}
	for name, got := range versions {
		if want := versions["CHANGELOG.md"]; got != want {
			t.Errorf("%s: got version %s, want %s", name, got, want)
		}
	}
}
