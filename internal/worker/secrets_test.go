package worker

// Secrets of packs: which calls receive one, what becomes of a call without its
// secret, and that no value is stored or logged, whatever the outcome.

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/spaces"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/bridge/function"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/secrets"
	"github.com/refold/refold/internal/spacefiles"
	"github.com/refold/refold/space"
)

// secret needs escaping in every encoding.
const secret = `pa/ss+w"or?d <é>=&%`

// spelt are encodings in which a tool may repeat a value.
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

// crm is a pack of one tool that needs CRM_KEY.
type crm struct {
	function.Set
	tool     *function.Function
	manifest *space.Manifest
}

func crmPack(t *testing.T, run func(ctx context.Context) (executor.Result, error), options ...function.Option) crm {
	t.Helper()
	options = append(options, function.Needs("secret:CRM_KEY", "secret:CRM_HOST?"))
	tool, err := function.New("crm.lookup", func(ctx context.Context, _ struct{}) (executor.Result, error) { return run(ctx) }, options...).InPack("crm", "crm-v1")
	if err != nil {
		t.Fatal(err)
	}
	spec, err := tool.Spec()
	if err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{
		"agent.workspace.json": {Data: []byte(`{"v":1,"kind":"pack","name":"crm","version":"1.4.2","bindings":"b.json"}`)},
		"b.json":               {Data: []byte(`{"tools":[` + string(spec) + `]}`)},
	}
	built, err := spacefiles.Read(t.Context(), func(context.Context) (fs.FS, error) { return files, nil },
		func() spacefiles.Options { return spacefiles.Options{Space: "crm", Kind: space.Pack} })
	if err != nil || built.Manifest == nil {
		t.Fatal(err, built.Problems)
	}
	return crm{Set: function.Set{"crm.lookup": tool}, tool: tool, manifest: built.Manifest}
}

// valueOf is a source of one secret.
func valueOf(name, value string) secrets.Source {
	return secrets.Func(func(_ context.Context, _, asked string) (string, error) {
		if asked != name {
			return "", nil
		}
		return value, nil
	})
}

// outcomeOf executes one call of the pack's tool and returns its settlement, all
// stored bytes, and the log.
func outcomeOf(t *testing.T, p crm, values map[string]string, edit func(*session.ToolCall)) (settled session.ToolCallSettled, stored, logged []byte) {
	t.Helper()
	w, q := newWorld(), newQueue()
	w.blobs[codec.RefOf(p.manifest.Bytes())] = p.manifest.Bytes()
	var log bytes.Buffer
	b := startBridge(t, w, "me", q, Target{Class: session.ClassTool, Name: "crm-v1", Executor: p})
	for name, value := range values {
		b.vault.sources = append(b.vault.sources, valueOf(name, value))
	}
	b.log = slog.New(b.vault.given.Handler(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	call := toolCall("r1t1c0", p.tool.RetrySafe())
	call.Arguments, call.ToolID, call.ToolName = "{}", "crm.lookup", "crm_lookup"
	call.Spaces = []spaces.UsedSpace{{Hash: p.manifest.Hash(), Kind: space.Pack, Space: "crm", Version: "1.4.2"}}
	if edit != nil {
		edit(&call)
	}
	q.ask(t, session.ClassTool, "crm-v1", "s1", call.Effect, call)
	pass(time.Second)
	if strings.Contains(call.IdempotencyKey, "withdrawn") {
		b.Cancelled("s1", []byte(`{"effects":["r1t1c0"]}`))
	}
	pass(2 * testRun)
	b.stop()
	settled = body[session.ToolCallSettled](t, w.last(t))
	for _, e := range w.events {
		stored = append(stored, e.Payload...)
	}
	for _, blob := range w.blobs {
		stored = append(stored, blob...)
	}
	return settled, stored, log.Bytes()
}

func TestNoOutcomeOfACallHoldsASecret(t *testing.T) {
	t.Parallel()
	said := strings.Join(spelt(secret), " | ")
	key := func(ctx context.Context) string {
		call, _ := function.CallOf(ctx)
		value, _ := call.Secret("CRM_KEY")
		return strings.ReplaceAll(said, secret, value)
	}
	for name, c := range map[string]struct {
		run    func(ctx context.Context) (executor.Result, error)
		status session.CallStatus
		edit   func(*session.ToolCall)
	}{
		"success": {status: session.CallSucceeded, run: func(ctx context.Context) (executor.Result, error) {
			return executor.Result{Output: key(ctx), Files: []executor.File{{Name: secret, MediaType: secret, Data: []byte("\xff\x00" + key(ctx))}}, HostSession: &executor.HostSession{ID: secret, Status: "ready"}}, nil
		}},
		"a large result": {status: session.CallSucceeded, run: func(ctx context.Context) (executor.Result, error) {
			return executor.Result{Output: strings.Repeat(key(ctx)+"\n", 20_000)}, nil
		}},
		"an error": {status: session.CallFailed, run: func(ctx context.Context) (executor.Result, error) {
			return executor.Result{Output: key(ctx)}, fmt.Errorf("crm refuses %s", key(ctx))
		}},
		"an error with a code": {status: session.CallFailed, run: func(ctx context.Context) (executor.Result, error) {
			return executor.Result{}, &executor.Error{Code: secret, Detail: key(ctx)}
		}},
		"an unknown outcome": {status: session.CallUnknown, run: func(ctx context.Context) (executor.Result, error) {
			return executor.Result{}, &function.UnknownOutcomeError{Err: errors.New(key(ctx))}
		}},
		"a panic":        {status: session.CallUnknown, run: func(ctx context.Context) (executor.Result, error) { panic(key(ctx)) }},
		"a panic of any": {status: session.CallUnknown, run: func(ctx context.Context) (executor.Result, error) { panic(struct{ V string }{key(ctx)}) }},
		"the run time is over": {status: session.CallUnknown, run: func(ctx context.Context) (executor.Result, error) {
			<-ctx.Done()
			return executor.Result{Output: key(ctx)}, fmt.Errorf("%s: %w", key(ctx), ctx.Err())
		}},
		"withdrawn": {status: session.CallUnknown, edit: func(c *session.ToolCall) { c.IdempotencyKey += "withdrawn" }, run: func(ctx context.Context) (executor.Result, error) {
			<-ctx.Done()
			return executor.Result{Output: key(ctx)}, errors.New(key(ctx))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				settled, stored, logged := outcomeOf(t, crmPack(t, c.run), map[string]string{"CRM_KEY": secret}, c.edit)
				if settled.Status != string(c.status) {
					t.Errorf("got %s (%v), want %s", settled.Status, settled.Error, c.status)
				}
				if !bytes.Contains(stored, []byte(secrets.Mark)) {
					t.Errorf("nothing was redacted: %.300s", stored)
				}
				for _, s := range spelt(secret) {
					if bytes.Contains(stored, []byte(s)) || bytes.Contains(logged, []byte(s)) {
						t.Errorf("%q is stored (%t) or logged (%t)", s, bytes.Contains(stored, []byte(s)), bytes.Contains(logged, []byte(s)))
					}
				}
			})
		})
	}
}

func TestCallWithoutItsSecretIsNotStarted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		started := false
		run := func(ctx context.Context) (executor.Result, error) {
			started = true
			call, _ := function.CallOf(ctx)
			_, host := call.Secret("CRM_HOST")
			_, other := call.Secret("OTHER")
			return executor.Result{Output: fmt.Sprint(host, other)}, nil
		}
		settled, _, _ := outcomeOf(t, crmPack(t, run), map[string]string{"CRM_KEY": "", "OTHER": "other-value"}, nil)
		if started || settled.Status != string(session.CallFailed) || settled.Error.Code != codeSecretMissing || !strings.Contains(settled.Error.Detail, "--secret CRM_KEY=FILE") {
			t.Errorf("started: %t; got %s %+v", started, settled.Status, settled.Error)
		}
		settled, _, _ = outcomeOf(t, crmPack(t, run), map[string]string{"CRM_KEY": "here-it-is", "OTHER": "other-value"}, nil)
		if settled.Status != string(session.CallSucceeded) || settled.Output.Text != "false false" {
			t.Errorf("optional, and not needed: got %s %+v", settled.Status, settled.Output)
		}
		settled, _, _ = outcomeOf(t, crmPack(t, run), nil, func(c *session.ToolCall) { c.Spaces[0].Hash = codec.Sum([]byte("gone")) })
		if settled.Error == nil || settled.Error.Code != codeManifestMissing {
			t.Errorf("a manifest that is not stored: got %+v", settled.Error)
		}
	})
}

func TestShortSecretIsReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, _, logged := outcomeOf(t, crmPack(t, func(context.Context) (executor.Result, error) { return executor.Result{}, nil }), map[string]string{"CRM_KEY": "12345"}, nil)
		if !bytes.Contains(logged, []byte("secret_not_redacted")) || bytes.Contains(logged, []byte("12345")) {
			t.Errorf("got %s", logged)
		}
	})
}

func TestRehearsedCallHasSecrets(t *testing.T) {
	t.Parallel()
	p := crmPack(t, func(ctx context.Context) (executor.Result, error) {
		call, _ := function.CallOf(ctx)
		value, _ := call.Secret("CRM_KEY")
		var streamed bytes.Buffer
		w := call.Redacting(&streamed)
		for _, b := range []byte("key " + value) {
			_, _ = w.Write([]byte{b})
		}
		_ = w.Close()
		return executor.Result{Output: streamed.String() + ", " + value + fmt.Sprintf(", %+v", call)}, nil
	})
	got := Rehearse(t.Context(), p.tool, executor.Call{Session: "s1", Effect: "r1t1c0", ToolID: p.tool.ToolID(), Arguments: json.RawMessage("{}")}, Rehearsal{Secrets: map[string]string{"CRM_KEY": "here-it-is"}})
	if !strings.HasPrefix(got.Output, "key *****, *****, {") || strings.Contains(got.Output, "here-it-is") {
		t.Errorf("got %q", got.Output)
	}
}

func TestReaderReportsMissingNeeds(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{
		"agent.workspace.json": {Data: []byte(`{"v":1,"kind":"pack","name":"crm","version":"1.0.0","bindings":"b.json"}`)},
		"b.json": {Data: []byte(`{"needs":["secret:CRM_KEY","env:REGION","os:plan9|vms","bin:no-such-program-anywhere","secret:LATER?"],"tools":[
			{"tool_id":"crm.a","tool_name":"crm_a","args_schema":{"type":"object"},"executor":{"kind":"effect","target":"crm-v1"},"needs":["secret:OTHER"]}]}`)},
	}
	for name, c := range map[string]struct {
		values, env map[string]string
		want        []string
	}{
		"nothing is there": {want: []string{"bin:no-such-program-anywhere", "env:REGION", "os:plan9|vms", "secret:CRM_KEY", "secret:OTHER"}},
		"some is":          {values: map[string]string{"OTHER": "x"}, env: map[string]string{"REGION": "no", "CRM_KEY": "x"}, want: []string{"bin:no-such-program-anywhere", "os:plan9|vms", "secret:CRM_KEY"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := New(newWorld(), "me", "me", time.Now, slog.New(slog.DiscardHandler))
			w.vault.env = func(name string) (string, bool) { return c.env[name], c.env[name] != "" }
			for name, value := range c.values {
				w.vault.sources = append(w.vault.sources, valueOf(name, value))
			}
			effect := syncEffect("y1", func(s *session.Space) { s.Kind, s.Space = space.Pack, "crm" })
			f := &execution{effect: effectOf(t, effect), served: &Target{Spaces: readSpace(func(context.Context, executor.SpaceRequest) (executor.SpaceContent, error) {
				return executor.SpaceContent{Files: files}, nil
			})}}
			got, err := w.sync(t.Context(), f, &effect)
			if err != nil {
				t.Fatal(err)
			}
			ready, ok := got.body.(session.WorkspaceSnapshotReady)
			if !ok || !slices.Equal(ready.Lacks, c.want) {
				t.Errorf("got %+v, want %v", got.body, c.want)
			}
		})
	}
}

// effectOf returns a sync as a bridge has read it.
func effectOf(t *testing.T, s session.Space) *effect {
	t.Helper()
	e := &effect{own: &s}
	e.name.Effect, e.name.Session, e.name.Class = s.Effect, s.Session, s.Class
	return e
}
