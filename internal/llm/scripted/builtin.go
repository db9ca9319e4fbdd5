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

// The names by which Open knows the scripts that are built in.
const (
	NameDemo = "demo"
	NameEcho = "echo"
)

// DemoInput is what the user says to the model of Demo.
const DemoInput = "The tests of this program fail. Find out why, and repair it."

// Demo returns a script that repairs the broken program of files, told
// DemoInput: it needs the tools open_session, read_file, grep, list_dir,
// apply_patch and shell, and a host session that opens where Unpack put files.
func Demo() (script *Script, files *txtar.Archive) {
	return builtin("demo.yaml", demoScript), txtar.Parse(demoFiles)
}

// Echo returns a script that answers any text with itself. Told "list",
// "list PATH", "read PATH", "grep PATTERN", "run COMMAND" or "write PATH TEXT" it
// calls the tool, after open_session if that is offered, and answers with what it
// returned. Told "wait" it answers after 20 seconds.
func Echo() *Script { return builtin("echo.yaml", echoScript) }

// Open returns the script that is built in under a name, else that of a file.
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

// builtin reads a script that tests have read before.
func builtin(name string, data []byte) *Script {
	script, err := Parse(name, data)
	if err != nil {
		panic(err)
	}
	return script
}

// Unpack writes files into a directory that exists, and what directories they
// need. Files that are there are overwritten. After an error some may be
// missing.
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
