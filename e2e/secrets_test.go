package e2e_test

// A secret is in every place from which a bridge may read one, and the tools of
// a pack return it in every encoding and with every outcome. Then all messages
// of all streams, all blobs, and the output of daemons and commands are
// searched.

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/spaces"
	"github.com/refold/refold/bridge"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/bridge/function"
)

// secretIn are the secrets, by the place where each is.
var secretIn = map[string]string{
	"FILE":       `file+"val/ue?é<1>`,
	"DIR":        `dir+"val/ue?é<2>`,
	"SPACE_FILE": `space-file+"val/ue?é<3>`,
	"SPACE_ENV":  `space-env+"val/ue?é<4>`,
	"CATALOG":    `catalog+"val/ue?é<5>`,
	"PROGRAM":    `program+"val/ue?é<6>`,
}

// spelt are the encodings of a value.
func spelt(value string) []string {
	quoted, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	all := []string{value, url.QueryEscape(value), url.PathEscape(value), strings.Trim(string(quoted), `"`)}
	for _, e := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		all = append(all, e.EncodeToString([]byte(value)))
	}
	return all
}

// leaky returns the tools of a pack. Each repeats all secrets that it is given, and
// ends in its own way.
func leaky() bridge.Pack {
	needs := make([]string, 0, len(secretIn))
	for name := range secretIn {
		needs = append(needs, "secret:"+name)
	}
	said := func(ctx context.Context) string {
		call, _ := function.CallOf(ctx)
		var all []string
		for name := range secretIn {
			value, ok := call.Secret(name)
			if !ok {
				panic("secret " + name + " is not given")
			}
			all = append(all, spelt(value)...)
		}
		return strings.Join(all, "\n")
	}
	tool := func(name string, end func(ctx context.Context, said string) (executor.Result, error)) *function.Function {
		return function.New("leak."+name, func(ctx context.Context, _ struct{}) (executor.Result, error) { return end(ctx, said(ctx)) },
			function.Needs(needs...), function.Deadline(2*time.Second))
	}
	return bridge.Pack{Name: "leak", Version: "1.0.0", Tools: []*function.Function{
		tool("succeed", func(_ context.Context, said string) (executor.Result, error) {
			return executor.Result{Output: said, Files: []executor.File{{Data: []byte("\xff" + said)}}}, nil
		}),
		tool("say_much", func(_ context.Context, said string) (executor.Result, error) {
			return executor.Result{Output: strings.Repeat(said+"\n", 1<<10)}, nil
		}),
		tool("fail", func(_ context.Context, said string) (executor.Result, error) {
			return executor.Result{}, errors.New(said)
		}),
		tool("doubt", func(_ context.Context, said string) (executor.Result, error) {
			return executor.Result{Output: said}, &function.UnknownOutcomeError{Err: errors.New(said)}
		}),
		tool("panic", func(_ context.Context, said string) (executor.Result, error) { panic(said) }),
		tool("wait", func(ctx context.Context, said string) (executor.Result, error) {
			<-ctx.Done()
			return executor.Result{Output: said}, fmt.Errorf("%s: %w", said, ctx.Err())
		}),
	}}
}

// plant writes the secrets where they belong. It returns the arguments and the
// environment of a bridge process, and the options of a bridge of this process.
func plant(t *testing.T, spacesYAML string) (args, env []string, options bridge.Options) {
	t.Helper()
	dir := t.TempDir()
	write := func(name, value string) string {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(value+"\n"), 0o600)); err != nil {
			t.Fatal(err)
		}
		return file
	}
	file, program := write("file", secretIn["FILE"]), write("program", secretIn["PROGRAM"])
	tree := filepath.Dir(write("tree/DIR", secretIn["DIR"]))
	write("space", secretIn["SPACE_FILE"])
	catalog := write("catalog.json", `[{"id": "CATALOG", "label": "A key", "env": "SECRET_OF_CATALOG", "docs_url": "https://keys.example"}]`)
	config := write("spaces.yaml", spacesYAML)
	args = []string{"--spaces", config, "--secret", "FILE=" + file, "--secret", "PROGRAM=" + program, "--secrets", tree, "--secrets-catalog", catalog, "--log-level", "debug"}
	env = []string{"SECRET_OF_SPACE=" + secretIn["SPACE_ENV"], "SECRET_OF_CATALOG=" + secretIn["CATALOG"], "CATALOG=never-read-from-here"}
	options = bridge.Options{
		Secrets: []bridge.Secrets{
			bridge.SecretFile("FILE", file), bridge.SecretFiles(tree), bridge.SecretFile("SPACE_FILE", filepath.Join(dir, "space")),
			bridge.Secret("SPACE_ENV", func() (string, error) { return secretIn["SPACE_ENV"], nil }),
			bridge.Secret("PROGRAM", func() (string, error) { return secretIn["PROGRAM"], nil }),
		},
		SecretsCatalogs: []string{catalog},
		LookupEnv: func(name string) (string, bool) {
			return map[string]string{"SECRET_OF_CATALOG": secretIn["CATALOG"]}[name], name == "SECRET_OF_CATALOG"
		},
	}
	return args, env, options
}

func TestNoSecretIsStoredOrPrinted(t *testing.T) {
	t.Parallel()
	hash, err := leaky().Hash()
	if err != nil {
		t.Fatal(err)
	}
	s := startSystem(t, spaceRecord(
		object{"space": "leak", "kind": "pack", "digests": list{hash}},
		object{"space": "*", "kind": "pack", "target": "files", "sources": list{"module"}, "keys": list{"UAMLP57E5EJZYV2V5ONO4T2NUUWCIQVXNCB66HAP2NIGTF3XXI2PZOEB"}},
	))
	module := t.TempDir()
	needs, err := json.Marshal([]string{"secret:CATALOG", "secret:DIR", "secret:FILE", "secret:PROGRAM", "secret:SPACE_ENV", "secret:SPACE_FILE"})
	if err != nil {
		t.Fatal(err)
	}
	folder(t, module, map[string]string{
		"agent.workspace.json": `{"v": 1, "kind": "pack", "name": "shop", "version": "1.0.0", "bindings": "b.json"}`,
		"b.json":               `{"tools": [], "needs": ` + string(needs) + `}`,
	})
	args, env, options := plant(t, "targets: {files: {spaces: {shop: {dir: "+module+", secrets: {SPACE_FILE: {file: space}, SPACE_ENV: {env: SECRET_OF_SPACE}}}}}}\n")
	reader := startDaemonWith(t, env, "bridge", append(args, "--nats", s.url)...)
	var logged output
	options.URL, options.Provision, options.Logger = s.url, true, slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	serveBridge(t, options, func(b *bridge.Bridge) error { return b.Pack(leaky()) })
	models := s.models(`
turns:
  - calls: [{tool: leak_succeed}, {tool: leak_say_much}, {tool: leak_fail}, {tool: leak_doubt}, {tool: leak_panic}, {tool: leak_wait}]
  - say: "Done: ${result}"
`, "scripted")

	heard := listen(t, s.nc, "refold.out.s1")
	s.sync("s1", "leak", object{"apply": "next_run"})
	if staged := nth[spaces.WorkspaceStaged](t, heard, spaces.NoticeWorkspaceStaged, 1); len(staged.Lacks) != 0 {
		t.Errorf("lacks %v", staged.Lacks)
	}
	s.sync("s1", "shop", nil) // nobody signed it: what counts is that it was read
	nth[spaces.WorkspaceFailed](t, heard, spaces.NoticeWorkspaceFailed, 1)
	s.run(session.DoorIn, "s1", "Go.", nil)
	s.wantEnd("s1", 1, session.Completed, "")
	if n := strings.Count(reader.out.String(), "is missing"); n != 0 {
		t.Errorf("the reader misses something:\n%s", reader.out)
	}

	found := map[string][]byte{"the bridge of the pack": []byte(logged.String()), "session-actor": []byte(s.actor.out.String()), "bridge": []byte(reader.out.String()), "models": []byte(models.out.String())}
	for _, command := range [][]string{
		{"view", "s1"}, {"replay", "s1", "--events"}, {"replay", "s1", "--export"}, {"verify", "s1"}, {"tools", "s1"}, {"why", "s1", "leak_fail"}, {"prompt", "s1"}, {"space", "diff", "s1"},
		{"bridge", "doctor"}, {"pack", "list"}, {"install", "--show"},
	} {
		out, errOut, _ := run(t, time.Minute, nil, "refold", append(command, "--nats", s.url)...)
		found["refold "+strings.Join(command, " ")] = []byte(out + errOut)
	}
	s.everything(found)
	marked := 0
	for place, content := range found {
		marked += bytes.Count(content, []byte("*****"))
		for name, value := range secretIn {
			for _, text := range spelt(value) {
				if bytes.Contains(content, []byte(text)) {
					t.Errorf("%s: holds the secret %s as %q", place, name, text)
				}
			}
		}
	}
	if marked < 6*len(secretIn) {
		t.Errorf("%d values were redacted: the tools did not say them", marked)
	}
}

// everything adds what all streams of the server hold: headers and payloads, those
// of one subject put together, since a blob is in chunks.
func (s *system) everything(found map[string][]byte) {
	s.t.Helper()
	ctx := s.t.Context()
	streams := s.js.ListStreams(ctx)
	for info := range streams.Info() {
		stream, err := s.js.Stream(ctx, info.Config.Name)
		if err != nil {
			s.t.Fatal(err)
		}
		for seq := max(info.State.FirstSeq, 1); seq <= info.State.LastSeq; seq++ {
			m, err := stream.GetMsg(ctx, seq)
			if errors.Is(err, jetstream.ErrMsgNotFound) {
				continue
			}
			if err != nil {
				s.t.Fatal(err)
			}
			place := info.Config.Name + " " + m.Subject
			found[place] = append(found[place], m.Data...)
			for name, values := range m.Header {
				found[place+" headers"] = append(found[place+" headers"], fmt.Sprintln(name, values)...)
			}
		}
	}
	if err := streams.Err(); err != nil {
		s.t.Fatal(err)
	}
}
