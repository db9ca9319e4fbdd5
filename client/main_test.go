package client_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/refold/refold/internal/bus/bustest"
)

func TestMain(m *testing.M) {
	bustest.Serve()
	goleak.VerifyTestMain(m)
}
