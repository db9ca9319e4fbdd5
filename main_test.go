package refold_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// The test program is also the program that is killed: see kill_test.go.
func TestMain(m *testing.M) {
	if dir := os.Getenv(killDirVar); dir != "" {
		killed(dir, os.Getenv(killAtVar))
		return
	}
	goleak.VerifyTestMain(m)
}
