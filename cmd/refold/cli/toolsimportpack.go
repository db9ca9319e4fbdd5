package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/refold/refold/bridge/function"
	"github.com/refold/refold/internal/spacefiles"
	"github.com/refold/refold/space"
)

// firstVersion is the version of a pack whose folder has no index.
const firstVersion = "1.0.0"

// writePack writes tools into a folder as a pack: its index and its bindings. The
// tool_ids begin with the pack's name, and the target is <name>-v<major>. needs is
// what tools need, by tool_id.
func writePack(ctx context.Context, s streams, dir string, tools []*function.Function, needs map[string][]string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	head, err := packHead(dir)
	if err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	version, _ := space.ParseVersion(head.Version)
	target := head.Name + "-v" + strconv.FormatUint(uint64(version.Major), 10)
	var specs []json.RawMessage
	for _, f := range tools {
		spec, err := specInPack(f, head.Name, target, needs[f.ToolID()])
		if err != nil {
			return err
		}
		specs = append(specs, spec)
	}
	files, err := spacefiles.PackFiles(os.DirFS(dir), head, specs, nil)
	if err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	for _, name := range []string{spacefiles.BindingsName, spacefiles.IndexName} {
		if err := os.WriteFile(filepath.Join(dir, name), files[name], 0o644); err != nil {
			return err
		}
	}
	b, err := bundle(ctx, s, "", dir)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "%s  %s\n", b.built.Manifest.Hash(), summary(b.built.Manifest))
	return nil
}

// packHead returns the name and version of a folder's pack: those of its index,
// else the folder's name and firstVersion.
func packHead(dir string) (spacefiles.PackHead, error) {
	full, err := filepath.Abs(dir)
	if err != nil {
		return spacefiles.PackHead{}, err
	}
	var index struct{ Name, Version string }
	text, err := os.ReadFile(filepath.Join(dir, spacefiles.IndexName))
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return spacefiles.PackHead{}, err
	default:
		if err := json.Unmarshal(text, &index); err != nil {
			return spacefiles.PackHead{}, fmt.Errorf("%s: %w", spacefiles.IndexName, err)
		}
	}
	head := spacefiles.PackHead{Name: index.Name, Version: index.Version}
	head.Name = cmp.Or(head.Name, filepath.Base(full))
	head.Version = cmp.Or(head.Version, firstVersion)
	if !space.IsSpaceName(head.Name, space.Pack) {
		return head, fmt.Errorf("%q names no pack: call the folder by 1 to %d of A-Za-z0-9_-, or write an index with a name", head.Name, space.PackNameBytesMax)
	}
	if _, ok := space.ParseVersion(head.Version); !ok {
		return head, fmt.Errorf("%s: its version %q is not MAJOR.MINOR.PATCH", spacefiles.IndexName, head.Version)
	}
	return head, nil
}

// specInPack returns a tool in the form of a pack's bindings.
func specInPack(f *function.Function, pack, target string, needs []string) (json.RawMessage, error) {
	text, err := f.Spec()
	if err != nil {
		return nil, err
	}
	var spec map[string]json.RawMessage
	if err := json.Unmarshal(text, &spec); err != nil {
		return nil, err
	}
	id := f.ToolID()
	if !strings.HasPrefix(id, pack+".") {
		id = pack + "." + strings.TrimPrefix(id, "mcp.")
	}
	members := map[string]any{"tool_id": id, "executor": map[string]string{"kind": "effect", "target": target}}
	if len(needs) > 0 {
		members["needs"] = needs
	}
	for name, value := range members {
		if spec[name], err = json.Marshal(value); err != nil {
			return nil, err
		}
	}
	return json.Marshal(spec)
}
