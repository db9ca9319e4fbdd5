package audit

import (
	"os"
	"testing"

	"github.com/refold/refold/internal/bus/bustest"
)

func TestMain(m *testing.M) {
	bustest.Serve()
	os.Exit(m.Run())
}
