//go:build unix

package e2e_test

import (
	"fmt"
	"testing"
)

// TestTutorial types docs/tutorial.md. Its servers have free ports here.
func TestTutorial(t *testing.T) {
	t.Parallel()
	var names []string
	for i, port := range freePorts(t, 6) {
		names = append(names, fmt.Sprint([]int{4222, 4223, 4224, 6222, 6223, 6224}[i]), fmt.Sprint(port))
	}
	play(t, "../docs/tutorial.md", names...)
}
