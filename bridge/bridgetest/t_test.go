package bridgetest_test

import (
	"context"
	"fmt"
	"os"

	"github.com/refold/refold/bridge/bridgetest"
)

// exampleT is a T for examples, which have no testing.T.
type exampleT struct {
	ctx      context.Context
	cleanups []func()
}

var _ bridgetest.T = (*exampleT)(nil)

// newT returns a T and a function that ends it.
func newT() (t *exampleT, end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	t = &exampleT{ctx: ctx}
	return t, func() {
		cancel()
		for i := len(t.cleanups) - 1; i >= 0; i-- {
			t.cleanups[i]()
		}
	}
}

func (t *exampleT) Helper()                        {}
func (t *exampleT) Context() context.Context       { return t.ctx }
func (t *exampleT) Cleanup(fn func())              { t.cleanups = append(t.cleanups, fn) }
func (t *exampleT) Errorf(format string, a ...any) { fmt.Println("error:", fmt.Sprintf(format, a...)) }
func (t *exampleT) Fatalf(format string, a ...any) { panic(fmt.Sprintf(format, a...)) }
func (t *exampleT) TempDir() string {
	dir, err := os.MkdirTemp("", "bridgetest")
	if err != nil {
		panic(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
