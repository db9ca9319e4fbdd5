package cli

// refold pack enable and disable, and packs in the install record.

import (
	"context"
	"strings"
	"testing"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/bridge/function"
	"github.com/refold/refold/internal/bus/bustest"
)

// crmOf is a factory pack.
func crmOf(version string, needs ...string) bridge.Pack {
	return bridge.Pack{Name: "crm", Version: version, Tools: []*function.Function{
		function.New("crm.lookup", func(context.Context, struct{}) (string, error) { return "found", nil }, function.Needs(needs...)),
	}}
}

func TestPackIsEnabledAndDisabled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, err := crmOf("1.4.2", "secret:CRM_KEY").Hash()
	bustest.OK(t, err)
	w.does(0, "install", file(t, `{"v":1,"rules":1,"config":{"provider":"p","model":"m"},"tools":[],"spaces":[{"space":"crm","kind":"pack","digests":["`+one+`"]},
		{"space":"odd","kind":"pack","target":"crm","digests":["`+one+`"]}]}`))
	w.serve(func(b *bridge.Bridge) error { return b.Pack(crmOf("1.4.2", "secret:CRM_KEY")) })
	out, errOut := w.does(0, "pack", "enable", "s1", "crm@1.4")
	like(t, "enabled", out, `^crm 1\.4\.2 is staged: manifest `+one+` \(y1\)\n  it is applied before the next turn\n$`)
	like(t, "what is missing", errOut, `^session s1 is new: this opens it\nrefold: warning: the bridge that read crm lacks secret:CRM_KEY\n$`)
	out, _ = w.does(0, "pack", "disable", "s1", "crm")
	like(t, "disabled", out, `^crm is disabled: its tools are gone\n$`)
	out, _ = w.does(0, "tools", "check", "--within", "0s")
	like(t, "who reads it", out, `(?s)\npack crm +space/crm +1 bridge\n.*, 2 of 2 spaces, for the record`)
	_, errOut = w.does(statusFailed, "pack", "enable", "s1", "crm@2")
	like(t, "another version", errOut, `(?s)crm is not staged: version_unknown: this program has crm 1\.4\.2, and not 2`)
	_, errOut = w.does(statusFailed, "pack", "enable", "s1", "odd")
	like(t, "another name", errOut, `(?s)odd is not staged: space_unknown: this program has the pack crm`)
	_, errOut = w.does(statusUsage, "pack", "enable", "s1", "crm@")
	like(t, "no version", errOut, `crm@: a version follows the @`)
	_, errOut = w.does(statusFailed, "pack", "disable", "s1", "shop")
	like(t, "nothing there", errOut, `^refold: rejected: unknown_space`)
}

// A workspace is no pack, whatever a grant of it permits.
func TestPackCommandsRefuseAWorkspace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.does(0, "install", file(t, spaceRecord))
	for _, verb := range []string{"enable", "disable"} {
		_, errOut := w.does(statusFailed, "pack", verb, "s1", "support")
		like(t, verb, errOut, `rejected: (invalid_data: kind: "support" is a workspace, not a pack|unknown_space)`)
	}
}

func TestRecordBringsAPack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := folder(t, "crm", crm("1.4.2"))
	record := file(t, `{"v":1,"rules":1,"config":{"provider":"p","model":"m"},"tools":[]}`)
	out, errOut := w.does(0, "install", record, "--space", "crm="+dir)
	like(t, "published", out+errOut, `^published at \d+: .*, pack crm 1\.4\.2`)
	shown, _ := w.does(0, "install", "--show")
	if !strings.Contains(shown, `"kind": "pack"`) || !strings.Contains(shown, `"crm.lookup"`) {
		t.Errorf("got %s", shown)
	}
	_, errOut = runs(t, statusFailed, "dev", "--dir", t.TempDir(), "--workspace", dir)
	like(t, "dev", errOut, `--workspace .*: is a pack`)
}
