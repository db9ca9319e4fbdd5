package e2e_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// upgradeFrom names the commit whose programs TestUpgrade upgrades.
const upgradeFrom = "testdata/upgrade-from"

// Builds. The programs of this checkout are in bin, those of others in folders there.
const (
	thisBuild  = "new"
	oldBuild   = "old"   // of the commit upgradeFrom
	newerBuild = "newer" // of this checkout, as a later release might change it
)

// upgradePrograms are what TestUpgrade starts.
var upgradePrograms = []string{"./cmd/refold", "./cmd/bridge", "./cmd/session-actor", "./e2e/peer"}

// buildPeer builds e2e/peer of this checkout, once.
var buildPeer = sync.OnceValue(func() error { return buildIn("..", "", nil, "./e2e/peer") })

// buildOld builds the programs of the commit upgradeFrom, once. Its e2e/peer is that of
// this checkout: the same source, on the old packages.
var buildOld = sync.OnceValue(func() error {
	name, err := os.ReadFile(upgradeFrom)
	if err != nil {
		return err
	}
	commit, tree := strings.TrimSpace(string(name)), filepath.Join(bin, "old-tree")
	if out, err := exec.Command("git", "cat-file", "-e", commit+"^{commit}").CombinedOutput(); err != nil {
		return fmt.Errorf("this clone does not have the commit %s, which e2e/%s names: git fetch --unshallow (%w: %s)", commit, upgradeFrom, err, bytes.TrimSpace(out))
	}
	if err := os.Mkdir(tree, 0o700); err != nil {
		return err
	}
	archive := filepath.Join(bin, "old.tar")
	for _, args := range [][]string{
		{"git", "-C", "..", "archive", "--format=tar", "-o", archive, commit},
		{"tar", "-xf", archive, "-C", tree},
	} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %w: %s", args, err, out)
		}
	}
	peer, err := filepath.Abs("peer")
	if err != nil {
		return err
	}
	replace := map[string]string{}
	for _, file := range []string{"main.go", "tools.go"} {
		replace[filepath.Join(tree, "e2e", "peer", file)] = filepath.Join(peer, file)
	}
	return buildIn(tree, oldBuild, replace, upgradePrograms...)
})

// newerEdits are what a later release might change: another version of turns, a new field
// of calls, new rules, and the age of notices.
var newerEdits = []edit{
	{"actors/session/event.go", "const WindowVersion = 2", "const WindowVersion = 3"},
	{"actors/session/compact.go", "if shortened {", "if true {"},
	{"actors/session/effect.go", "ToolName string `msgpack:\"tool_name\" lim:\"@tool_name\"`\n\t// Version of the protocol.\n\tV int `msgpack:\"v\" lim:\"=1\"`\n", "ToolName string `msgpack:\"tool_name\" lim:\"@tool_name\"`\n\tV int `msgpack:\"v\" lim:\"=1\"`\n\tZone string `msgpack:\"zone\"`\n"},
	{"actors/session/effect.go", "ToolName: c.ToolName, V: Version,", "ToolName: c.ToolName, V: Version, Zone: \"b\","},
	{"actors/session/rules.go", "const RulesVersion = 1", "const RulesVersion = 2"},
	{"internal/streams/streams.conf", noticesAge + `"168h"`, noticesAge + `"240h"`},
}

// noticesAge is what stands before the age in streams.conf.
const noticesAge = "description: \"Refold: notices\"\n    retention: limits\n    storage: file\n    discard: old\n    max_age: "

// buildNewer builds the programs of this checkout with newerEdits, once.
var buildNewer = sync.OnceValue(func() error {
	dir := filepath.Join(bin, newerBuild+"-edits")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	replace, err := edited(dir, newerEdits)
	if err != nil {
		return err
	}
	return buildIn("..", newerBuild, replace, upgradePrograms...)
})

// edit replaces a text of a file of this checkout, at its first place.
type edit struct{ file, from, to string }

// edited writes the edited files into dir, and returns them by those that they replace.
func edited(dir string, edits []edit) (replace map[string]string, err error) {
	replace = map[string]string{}
	for _, edit := range edits {
		file, err := filepath.Abs(filepath.Join("..", edit.file))
		if err != nil {
			return nil, err
		}
		text, err := os.ReadFile(cmp.Or(replace[file], file))
		if err != nil {
			return nil, err
		}
		if !bytes.Contains(text, []byte(edit.from)) {
			return nil, fmt.Errorf("%s has no %q any more: edit it elsewhere", file, edit.from)
		}
		replace[file] = filepath.Join(dir, filepath.Base(edit.file))
		if err := os.WriteFile(replace[file], bytes.Replace(text, []byte(edit.from), []byte(edit.to), 1), 0o600); err != nil {
			return nil, err
		}
	}
	return replace, nil
}

// buildIn builds programs of a tree into a folder of bin, with files in the place of
// those of the tree.
func buildIn(tree, into string, replace map[string]string, programs ...string) error {
	dir := filepath.Join(bin, into)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	args := []string{"build", "-trimpath", "-ldflags", "-s -w", "-o", dir + string(filepath.Separator)}
	if replace != nil {
		text, err := json.Marshal(map[string]any{"Replace": replace})
		if err != nil {
			return err
		}
		overlay := filepath.Join(dir, "overlay.json")
		if err := os.WriteFile(overlay, text, 0o600); err != nil {
			return err
		}
		args = append(args, "-overlay", overlay)
	}
	build := exec.Command("go", append(args, programs...)...)
	build.Dir = tree
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build %v of %s: %w\n%s", programs, tree, err, out)
	}
	return nil
}

// of returns the name of a program of a build, as program takes it.
func of(build, name string) string {
	if build == thisBuild {
		return name
	}
	return filepath.Join(build, name)
}
