package cli

// refold pack: folders are signed and published, each version once, and a
// bridge reads a published version.

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nkeys"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/secrets"
	"github.com/refold/refold/internal/spacefiles"
	"github.com/refold/refold/space"
)

// crm is the folder of a pack.
func crm(version string) map[string]string {
	return map[string]string{
		"agent.workspace.json": `{"v": 1, "kind": "pack", "name": "crm", "version": "` + version + `", "bindings": "bindings.json", "skills": ["skills/*/SKILL.md"]}`,
		"bindings.json": `{"needs": ["secret:CRM_KEY"], "tools": [{"tool_id": "crm.lookup", "tool_name": "crm_lookup",
  "args_schema": {"type": "object"}, "executor": {"kind": "effect", "target": "crm-v1"}}]}`,
		"skills/refunds/SKILL.md": "---\nname: refunds\ndescription: How to refund.\n---\nAsk first.\n",
	}
}

// seed writes a fresh seed into a file and returns its name and public key.
func seed(t *testing.T) (file, key string) {
	t.Helper()
	pair, err := nkeys.CreateUser()
	bustest.OK(t, err)
	text, err := pair.Seed()
	if err == nil {
		key, err = pair.PublicKey()
	}
	bustest.OK(t, err)
	file = filepath.Join(t.TempDir(), "seed")
	bustest.OK(t, os.WriteFile(file, append(text, '\n'), 0o600))
	return file, key
}

func TestPackIsSigned(t *testing.T) {
	t.Parallel()
	dir := folder(t, "crm", crm("1.4.2"))
	file, key := seed(t)
	out, _ := runs(t, 0, "space", "check", dir)
	like(t, "checked", out, `^[0-9a-f]{64}  crm 1\.4\.2: 1 file .*, 1 skill, 1 tool\n  skill refunds`)
	hash, _, _ := strings.Cut(out, " ")
	out, _ = runs(t, 0, "pack", "sign", dir, "--key", file)
	if want := "crm 1.4.2: manifest " + hash + " is signed by " + key + "\n"; out != want {
		t.Errorf("got %q, want %q", out, want)
	}
	if again, _ := runs(t, 0, "space", "check", dir); !strings.HasPrefix(again, hash) {
		t.Errorf("the signature is a part of the space: %s", again)
	}
	content, err := bridge.Folder{Dir: dir}.ReadSpace(t.Context(), executor.SpaceRequest{Space: "crm", Kind: "pack"})
	if err != nil || len(content.Signatures) != 1 || content.Signatures[0].Key != key {
		t.Errorf("the reader: got %+v, %v", content.Signatures, err)
	}
	other, second := seed(t)
	runs(t, 0, "pack", "sign", dir, "--key", file)
	out, _ = runs(t, 0, "pack", "sign", dir, "--key", other)
	if want := "crm 1.4.2: manifest " + hash + " is signed by " + key + ", " + second + "\n"; out != want {
		t.Errorf("with both keys: got %q, want %q", out, want)
	}
	put(t, dir, "skills/refunds/SKILL.md", "---\nname: refunds\ndescription: Another.\n---\n")
	out, _ = runs(t, 0, "pack", "sign", dir, "--key", file)
	if !strings.HasSuffix(out, " is signed by "+key+"\n") {
		t.Errorf("after an edit: got %q", out)
	}
	put(t, dir, "agent.workspace.sig", `[{"key": "X"}]`)
	if _, err := (bridge.Folder{Dir: dir}).ReadSpace(t.Context(), executor.SpaceRequest{Space: "crm", Kind: "pack"}); err == nil || !strings.Contains(err.Error(), "refold pack sign") {
		t.Errorf("a signature that is none: got %v", err)
	}
}

func TestPackIsNotSigned(t *testing.T) {
	t.Parallel()
	good, key := seed(t)
	for want, file := range map[string]string{
		"holds no seed":        "hello\n",
		"holds a public key":   key + "\n",
		"its seed is damaged":  "SUAK" + strings.Repeat("A", 54) + "\n",
		"holds no seed of a N": "",
	} {
		name := filepath.Join(t.TempDir(), "key")
		bustest.OK(t, os.WriteFile(name, []byte(file), 0o600))
		_, errOut := runs(t, statusFailed, "pack", "sign", folder(t, "crm", crm("1.0.0")), "--key", name)
		if !strings.Contains(errOut, want) || strings.Contains(errOut, "SUAKAA") {
			t.Errorf("%q: got %q, want %q", file, errOut, want)
		}
	}
	_, errOut := runs(t, statusFailed, "pack", "sign", folder(t, "support", support()), "--key", good)
	like(t, "a workspace", errOut, `is a workspace: a pack has`)
	broken := crm("1.0")
	out, errOut := runs(t, statusFailed, "pack", "sign", folder(t, "crm", broken), "--key", good)
	like(t, "problems", out+errOut, `(?s)agent.workspace.json:1: version.*1 problem`)
	leaky := crm("1.0.0")
	leaky["skills/refunds/SKILL.md"] += "ghp_" + strings.Repeat("a", 36) + "\n"
	dir := folder(t, "crm", leaky)
	out, errOut = runs(t, statusFailed, "pack", "sign", dir, "--key", good)
	like(t, "a key", out+errOut, `(?s)SKILL.md.*token of GitHub.*--allow-secrets`)
	runs(t, 0, "pack", "sign", dir, "--key", good, "--allow-secrets")
}

func TestPackIsPublishedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	file, key := seed(t)
	other, second := seed(t)
	dir := folder(t, "crm", crm("1.4.2"))
	_, errOut := w.does(statusFailed, "pack", "list")
	like(t, "none", errOut, `^refold: nothing is published: refold pack publish`)
	out, _ := w.does(0, "pack", "publish", dir, "--key", file)
	like(t, "published", out, `^crm 1\.4\.2 is published, at sequence 1: manifest [0-9a-f]{64}, signed by `+key+`\n$`)
	out, errOut = w.does(0, "pack", "publish", dir, "--key", other)
	for _, by := range []string{key, second} {
		like(t, "again, with another key", out+errOut, `^crm 1\.4\.2 was published already, at sequence 1: .*signed by .*`+by)
	}
	put(t, dir, "skills/refunds/SKILL.md", "---\nname: refunds\ndescription: Another.\n---\n")
	_, errOut = w.does(statusFailed, "pack", "publish", dir, "--key", file)
	like(t, "other content", errOut, `^refold: crm 1\.4\.2 is published already, at sequence 1, with the manifest [0-9a-f]{64}`)
	put(t, dir, "agent.workspace.json", crm("1.5.0")["agent.workspace.json"])
	w.does(0, "pack", "publish", dir, "--key", file)
	out, _ = w.does(0, "pack", "list")
	like(t, "list", out, `(?s)^PACK .*crm +1\.4\.2 +1 +[0-9a-f]{64} +U\w+, U\w+\ncrm +1\.5\.0 +4 +[0-9a-f]{64} +`+key+`\n`)
	out, _ = w.does(0, "pack", "list", "crm", "--json")
	like(t, "as JSON", out, `(?s)"version":"1.4.2".*"keys":\["U\w+","U\w+"\]`)
	_, errOut = w.does(statusFailed, "pack", "list", "other")
	like(t, "another", errOut, `nothing is published of other`)

	b, err := bridge.Connect(w.ctx, bridge.Options{URL: w.node.URL()})
	bustest.OK(t, err)
	t.Cleanup(b.Close)
	for version, want := range map[string]string{"": "", "1": "", "1.4": "", "1.4.2": "", "2": "version_unknown"} {
		content, err := bridge.Published{Bridge: b}.ReadSpace(w.ctx, executor.SpaceRequest{Space: "crm", Kind: "pack", Version: version, Trust: &space.Trust{Keys: []string{key}}})
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("version %q: got %v, want %q", version, err, want)
		}
		if err == nil && (len(content.Signatures) != 1 || content.Signatures[0].Key != key || content.Source != "package") {
			t.Errorf("version %q: got %+v", version, content)
		}
	}
	_, err = bridge.Published{Bridge: b}.ReadSpace(w.ctx, executor.SpaceRequest{Space: "shop", Kind: "pack"})
	if err == nil || !strings.HasPrefix(err.Error(), "space_unknown") {
		t.Errorf("a pack that is not published: got %v", err)
	}
}

func TestImportWritesAPack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.service("orders", `{"schema": {"type": "object"}, "retry_safe": true}`)
	dir := filepath.Join(t.TempDir(), "shop")
	w.does(statusUsage, "tools", "import", "services", "--pack", dir, "--registry")
	out, _ := w.does(0, "tools", "import", "services", "--pack", dir)
	like(t, "written", out, `^[0-9a-f]{64}  shop 1\.0\.0: .*, 1 tool\n$`)
	checked, _ := runs(t, 0, "space", "check", dir)
	if checked != out {
		t.Errorf("check says %q, and the import %q", checked, out)
	}
	bindings, err := os.ReadFile(filepath.Join(dir, "bindings.json"))
	like(t, "bindings", string(bindings), `(?s)"target": "shop-v1".*"tool_id": "shop.orders.do".*`)
	bustest.OK(t, err)
	put(t, dir, "agent.workspace.json", `{"v": 1, "kind": "pack", "name": "shop", "version": "2.1.0", "bindings": "bindings.json", "description": "Ours."}`)
	out, _ = w.does(0, "tools", "import", "services", "--pack", dir)
	like(t, "again", out, ` shop 2\.1\.0: `)
	index, err := os.ReadFile(filepath.Join(dir, "agent.workspace.json"))
	like(t, "index", string(index), `"description": "Ours."`)
	bustest.OK(t, err)

	var schema atomic.Value
	schema.Store(`{"type": "object"}`)
	notes := filepath.Join(t.TempDir(), "notes")
	out, _ = w.does(0, "tools", "import", "mcp", mcpServer(t, &schema), "--pack", notes)
	like(t, "mcp", out, `^[0-9a-f]{64}  notes 1\.0\.0: .*, 1 tool\n$`)
	bindings, err = os.ReadFile(filepath.Join(notes, "bindings.json"))
	like(t, "mcp's bindings", string(bindings), `"tool_id": "notes.notes.find"`)
	bustest.OK(t, err)
	config, err := os.ReadFile(mcpServer(t, &schema))
	bustest.OK(t, err)
	secret := file(t, strings.TrimSuffix(string(config), "\n")+"\n    headers: {X-Key: \"${secret:NOTES_KEY}\"}\n")
	_, stderr := w.does(1, "tools", "import", "mcp", secret, "--pack", notes)
	like(t, "without its secret", stderr, `server notes: secret NOTES_KEY is missing: .*--secret NOTES_KEY=FILE`)
	w.does(0, "tools", "import", "mcp", secret, "--secret", "NOTES_KEY="+file(t, "notes-secret"), "--pack", notes)
	bindings, err = os.ReadFile(filepath.Join(notes, "bindings.json"))
	like(t, "the need of the server", string(bindings), `"needs": \[\s*"secret:NOTES_KEY"\s*\]`)
	bustest.OK(t, err)
}

// The files that docs/packs.md shows are valid.
func TestPacksDocumentHasValidFiles(t *testing.T) {
	t.Parallel()
	doc := map[string]string{}
	for _, b := range blocksOf(t, filepath.Join("..", "..", "..", "docs", "packs.md")) {
		doc[b.name] = b.content
	}
	pack := map[string]string{"agent.workspace.json": doc["agent.workspace.json"], "bindings.json": doc["bindings.json"]}
	out, _ := runs(t, 0, "space", "check", folder(t, "crm", pack))
	like(t, "the example", out, `^[0-9a-f]{64}  crm 1\.4\.2: .*, 1 tool\n$`)
	record := strings.Replace(doc["grants"], "{", `{"v": 1, "rules": 1, "tools": [], `, 1)
	runs(t, 0, "install", file(t, record), "--dry-run")
	if _, err := spacefiles.LoadConfig(file(t, doc["spaces.yaml"])); err != nil {
		t.Error(err)
	}
	none := func(string) (string, bool) { return "", false }
	if _, err := secrets.NewCatalog(none, file(t, doc["catalog"])); err != nil {
		t.Error(err)
	}
}
