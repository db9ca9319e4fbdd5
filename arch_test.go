package refold_test

import (
	"testing"

	"github.com/refold/refold/internal/archtest"
)

// TestRepository checks the module against its laws: see package archtest.
func TestRepository(t *testing.T) {
	t.Parallel()
	archtest.Repository(t, ".")
}
