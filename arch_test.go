package refold_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/refold/refold/internal/archtest"
	"github.com/refold/refold/internal/streams"
)

// TestRepository checks the module against its laws: see package archtest.
func TestRepository(t *testing.T) {
	t.Parallel()
	archtest.Repository(t, ".")
}

// TestStreamsConfIsWhatProgramsHave: the file that the documents show is the one that
// is built into the programs.
func TestStreamsConfIsWhatProgramsHave(t *testing.T) {
	t.Parallel()
	shown, err := os.ReadFile("streams.conf")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(shown, streams.File) {
		t.Error("streams.conf and internal/streams/streams.conf differ: copy the one over the other")
	}
}
