package sim

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// crashEnv says how the test is to crash, in a process of its own.
const crashEnv = "REFOLD_SIM_CRASH"

// TestACrashNamesItsSeed: a process that crashes before it can report leaves
// its seed.
func TestACrashNamesItsSeed(t *testing.T) {
	t.Parallel()
	crashes := map[string]func(){
		"panic":    func() { blocked(func() { panic("injected") }) },
		"deadlock": func() { blocked(func() { select {} }) },
	}
	if crash := crashes[os.Getenv(crashEnv)]; crash != nil {
		labelled(t, 4711, crash)
		return
	}
	for name := range crashes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			child := exec.Command(os.Args[0], "-test.run=^TestACrashNamesItsSeed$")
			child.Env = append(os.Environ(), crashEnv+"="+name)
			said, err := child.CombinedOutput()
			if err == nil || !strings.Contains(string(said), `"REFOLD_SIM_FROM": "4711"`) {
				t.Errorf("ended with %v, and said %s; want a crash that names its seed", err, said)
			}
		})
	}
}

// blocked waits for another goroutine, for ever.
func blocked(f func()) {
	done := make(chan struct{})
	go f()
	<-done
}
