package scripted

import (
	_ "embed" // the scripts that are built in
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/tools/txtar"
)

var (
	//go:embed testdata/demo/demo.yaml
	demoScript []byte
	//go:embed testdata/demo/broken.txtar
	demoFiles []byte
	//go:embed testdata/echo/echo.yaml
	echoScript []byte
)

// The names of built-in scripts.
const (
	NameDemo = "demo"
	NameEcho = "echo"
)

// DemoInput is the user's message for Demo.
const DemoInput = "The tests of this program fail. Find out why, and repair it."

// Demo returns a script that repairs the broken program of files when the user
// sends DemoInput. It needs the tools open_session, read_file, grep, list_dir,
// apply_patch and shell, and a host session in the directory into which Unpack
// wrote files.
func Demo() (script *Script, files *txtar.Archive) {
	return builtin("demo.yaml", demoScript), txtar.Parse(demoFiles)
}

// Echo returns a script that repeats any text. On "list", "list PATH", "read
// PATH", "grep PATTERN", "run COMMAND" or "write PATH TEXT" it calls the tool,
// after open_session if that is offered, and answers with the result. On "wait"
// it answers after 20 seconds.
func Echo() *Script { return builtin("echo.yaml", echoScript) }

// Open returns the built-in script of that name, or else reads a file.
func Open(nameOrFile string) (*Script, error) {
	switch nameOrFile {
	case NameDemo:
		script, _ := Demo()
		return script, nil
	case NameEcho:
		return Echo(), nil
	}
	return Load(nameOrFile)
}

// builtin parses an embedded script, which the tests have parsed too.
func builtin(name string, data []byte) *Script {
	script, err := Parse(name, data)
	if err != nil {
		panic(err)
	}
	return script
}

// Unpack writes files into an existing directory, with the directories that
// they need. It overwrites existing files. After an error some may be missing.
func Unpack(files *txtar.Archive, dir string) error {
	for _, f := range files.Files {
		if !filepath.IsLocal(f.Name) {
			return fmt.Errorf("unpack: %s would lie outside of %s", f.Name, dir)
		}
		path := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("unpack: %w", err)
		}
		if err := os.WriteFile(path, f.Data, 0o644); err != nil {
			return fmt.Errorf("unpack: %w", err)
		}
	}
	return nil
}
