package mcp

// Servers get secrets by name, and new values without a restart of the bridge.

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/secrets"
)

// vault has one secret, of the pack crm and of tools that are no pack's.
type vault struct {
	value atomic.Pointer[string]
	asked atomic.Pointer[string] // for which pack
}

func (v *vault) Secret(_ context.Context, pack, name string) (string, error) {
	v.asked.Store(&pack)
	if name != "CRM_KEY" {
		return "", nil
	}
	return *v.value.Load(), nil
}

func (v *vault) set(value string) { v.value.Store(&value) }

func TestServersAreGivenSecrets(t *testing.T) {
	t.Parallel()
	over(t, stateful, func(t *testing.T, w *world) {
		v := &vault{}
		v.set("first-secret")
		w.secrets = secrets.Chain{v}
		s := w.config.Servers["peer"]
		if s.URL != "" {
			s.Headers["X-Token"] = "${secret:CRM_KEY}"
		} else {
			s.Env = append(s.Env, "GIVEN=${secret:CRM_KEY}", "LITERAL=${HOME}")
		}
		w.config.Servers["peer"] = s
		if got := w.unused().SecretNames(); !slices.Equal(got, []string{"CRM_KEY"}) {
			t.Errorf("names: got %v", got)
		}
		w.imports()
		shown := func(value string) string { return fmt.Sprintf("***** is %x", value) }
		w.want(w.call(t.Context(), "token", `{}`, true), "succeeded", "", shown("first-secret"))
		v.set("second-secret")
		w.want(w.call(t.Context(), "token", `{}`, true), "succeeded", "", shown("second-secret"))

		// A call in progress goes on with what it began with.
		ctx, withdraw := context.WithCancel(t.Context())
		hanging := make(chan bridge.Rehearsed, 1)
		go func() { hanging <- w.call(ctx, "hang", `{}`, false) }()
		w.until("the call hangs", func() bool { return countNotes(w.ledger, "hangs") == 1 })
		if s.URL != "" {
			v.set("third-secret")
			w.want(w.call(t.Context(), "token", `{}`, true), "succeeded", "", shown("third-secret"))
		}
		v.set("")
		r := w.call(t.Context(), "token", `{}`, true)
		w.want(r, "failed", "secret_missing", "")
		if !strings.Contains(r.Detail, "server peer") || !strings.Contains(r.Detail, "CRM_KEY") {
			t.Errorf("detail: got %q", r.Detail)
		}
		withdraw()
		<-hanging
		for _, secret := range []string{"first-secret", "second-secret", "third-secret"} {
			if strings.Contains(w.log.String(), secret) {
				t.Errorf("%s is in the log", secret)
			}
		}
	})
}

// TestNoServerStartsWithoutItsSecret: nothing is started, and the secret is
// requested for the pack.
func TestNoServerStartsWithoutItsSecret(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "peer")
	w.imports()
	v := &vault{}
	v.set("")
	w.secrets = secrets.Chain{v}
	s := w.config.Servers["peer"]
	s.Env = append(s.Env, "GIVEN=${secret:CRM_KEY}")
	w.config.Servers["peer"] = s
	w.open()
	before := w.log.String()
	r, err := w.servers.Execute(t.Context(), executor.Call{
		ToolID: "crm.peer.token", Arguments: json.RawMessage(`{}`), Spaces: []executor.CallSpace{{Space: "crm", Kind: "pack"}},
	})
	if err != nil || r.Error == nil || r.Error.Code != "secret_missing" {
		t.Errorf("got %+v, %v", r.Error, err)
	}
	if pack := v.asked.Load(); pack == nil || *pack != "crm" {
		t.Errorf("asked for %v", pack)
	}
	if log := strings.TrimPrefix(w.log.String(), before); strings.Contains(log, "mcp_server_ready") {
		t.Errorf("a server was started: %s", log)
	}
	if _, err := w.servers.Import(t.Context()); err == nil || !strings.Contains(err.Error(), "CRM_KEY is missing") {
		t.Errorf("import: got %v", err)
	}
}

// unused returns servers of the config that are not used.
func (w *world) unused() *Servers {
	w.t.Helper()
	servers, err := New(w.config, nil, Options{Env: w.env, Secrets: w.secrets})
	must(w.t, err)
	return servers
}
