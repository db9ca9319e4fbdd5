package e2e_test

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// serverEnv, if set, makes the test binary a NATS server with its files there.
const serverEnv = "REFOLD_E2E_SERVER"

// networksEnv makes the test binary the one that TestNetworks runs in namespaces. It is
// where the programs under test are.
const networksEnv = "REFOLD_E2E_NETWORKS"

// bin is where the programs under test are.
var bin string

func TestMain(m *testing.M) {
	if dir := os.Getenv(serverEnv); dir != "" {
		serveNATS(dir)
		return
	}
	if url := os.Getenv(clientsEnv); url != "" {
		if err := playClients(url); err != nil {
			fmt.Fprintln(os.Stderr, "clients:", err)
			os.Exit(1)
		}
		return
	}
	if ledger := os.Getenv(mcpEnv); ledger != "" {
		if err := serveMCP(ledger); err != nil {
			fmt.Fprintln(os.Stderr, "mcp:", err)
			os.Exit(1)
		}
		return
	}
	if os.Getenv(bridgeEnv) != "" {
		if err := serveText(); err != nil {
			fmt.Fprintln(os.Stderr, "bridge:", err)
			os.Exit(1)
		}
		return
	}
	if ledger := os.Getenv(mortalEnv); ledger != "" {
		if err := serveMortal(ledger); err != nil {
			fmt.Fprintln(os.Stderr, "bridge:", err)
			os.Exit(1)
		}
		return
	}
	if bin = os.Getenv(networksEnv); bin != "" {
		os.Exit(m.Run())
	}
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "refold-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	bin = dir
	build := exec.Command("go", "build", "-o", dir+string(filepath.Separator), "../cmd/...", "../proof/kit")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		return 1
	}
	for folder, name := range daemonNames { // go build names programs after folders
		if err := os.Rename(executable(folder), executable(name)); err != nil {
			fmt.Fprintln(os.Stderr, "build:", err)
			return 1
		}
	}
	return m.Run()
}

// daemonNames are the names of the daemons' binaries, by their folders in cmd.
var daemonNames = map[string]string{"bridge": "refold-bridge", "session-actor": "refold-session-actor"}

// program returns the path of a program under test. A daemon goes by its folder.
func program(name string) string {
	return executable(cmp.Or(daemonNames[name], name))
}

func executable(name string) string {
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	return filepath.Join(bin, name)
}
