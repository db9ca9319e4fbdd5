package api

// What: the public packages, the HTTP API and the messages are what the release promises,
// and a change of each kind is found, whether it breaks programs or adds something.
//
// How: the lines of the code are compared with the files in the directory api. For each
// kind of change a small module, document or schema is compared with the one before.

import (
	"os"
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
