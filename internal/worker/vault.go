package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"runtime"
	"slices"
	"strings"

	"github.com/refold/refold/actors/spaces"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/secrets"
	"github.com/refold/refold/internal/spacefiles"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/space"
)

// vault looks up the secrets, variables and programs that spaces need.
type vault struct {
	sources secrets.Chain
	catalog *secrets.Catalog
	env     func(string) (string, bool)
	given   secrets.Given
}

// NoEnvironment is an empty environment.
func NoEnvironment(string) (string, bool) { return "", false }

// lacks returns the needs of a space that this machine does not meet, without
// secrets that the catalog calls optional.
func (v *vault) lacks(ctx context.Context, m *space.Manifest) ([]string, error) {
	var all []error
	return spacefiles.Lacks(m.AllNeeds(), spacefiles.Lookup{
		Secret: func(name string) bool {
			value, err := v.sources.Secret(ctx, m.Space, name)
			all = append(all, err)
			return value != "" || v.optional(name)
		},
		Env: func(name string) bool {
			value, _ := v.env(name)
			return value != ""
		},
		Bin: func(name string) bool {
			_, err := exec.LookPath(name)
			return err == nil
		},
		OS: runtime.GOOS,
	}), errors.Join(all...)
}

func (v *vault) optional(name string) bool {
	e, ok := v.catalog.Entry(name)
	return ok && e.Optional
}

// callSecrets holds the secrets of one call. A Call has a pointer to it, so that
// printing a Call shows none.
type callSecrets struct {
	values map[string]string // that the call may read
	given  secrets.Given     // these, and those added by Hide
	all    *secrets.Given    // of all calls of the bridge; nil: none
}

// redacts returns the redactor of the values; nil redacts nothing.
func (s *callSecrets) redacts() *secrets.Redactor {
	if s == nil {
		return nil
	}
	return s.given.Redactor()
}

// newCallSecrets returns the secrets of a call. Values that Hide adds go to all,
// too.
func newCallSecrets(values map[string]string, all *secrets.Given) *callSecrets {
	s := &callSecrets{values: values, all: all}
	s.given.Add(slices.Collect(maps.Values(values))...)
	return s
}

// Secret returns a value that the call may read.
func (s *callSecrets) Secret(name string) (value string, ok bool) {
	value, ok = s.values[name]
	return value, ok
}

// Hide has more values redacted.
func (s *callSecrets) Hide(values ...string) {
	s.given.Add(values...)
	if s.all != nil {
		s.all.Add(values...)
	}
}

// Redacting returns a writer that replaces the values.
func (s *callSecrets) Redacting(w io.Writer) io.WriteCloser { return s.redacts().Writer(w) }

// provideSecrets looks up the secrets that a pack's tool needs, before its call
// starts. If ok is false, the call must not start, and refused is the decision.
func (w *Worker) provideSecrets(f *execution, call *executor.Call) (refused decision, ok bool) {
	if f.secrets == nil { // else it is a rehearsal
		f.secrets = newCallSecrets(nil, &w.vault.given)
	}
	call.Secrets = f.secrets
	pack := call.Pack()
	if pack == "" {
		return decision{}, true
	}
	i := slices.IndexFunc(f.call.Spaces, func(s spaces.UsedSpace) bool { return s.Space == pack })
	m, err := w.manifest(f.life.grace, f.name.Session, f.call.Spaces[i].Hash)
	switch {
	case errors.Is(err, natsio.ErrNotFound), errors.Is(err, journal.ErrOtherBytes), errors.Is(err, errNoManifest):
		return settleAs(failed(codeManifestMissing, fmt.Sprintf("the manifest of %s can't be read: %v", pack, err))), false
	case err != nil:
		if times, ok := w.limiter.allow("manifest_not_read", w.now()); ok {
			w.logFor(f).Warn("manifest_not_read", "error", err.Error(), "times", times)
		}
		return giveBack(troubleDelay, "manifest not read"), false
	}
	needs := slices.Clone(m.Needs)
	if t := slices.IndexFunc(m.Tools, func(t planner.ToolSpec) bool { return t.ToolID == call.ToolID }); t >= 0 {
		needs = append(needs, m.Tools[t].Needs...)
	}
	values := map[string]string{}
	for _, need := range needs {
		name, isSecret := strings.CutPrefix(strings.TrimSuffix(need, "?"), "secret:")
		if !isSecret {
			continue
		}
		value, err := w.vault.sources.Secret(f.life.grace, pack, name)
		switch {
		case err != nil:
			return settleAs(failed(codeSecretMissing, fmt.Sprintf("%s: %v", pack, err))), false
		case value != "":
			values[name] = value
		case !strings.HasSuffix(need, "?") && !w.vault.optional(name):
			detail := fmt.Sprintf("secret %s of %s is missing on the bridge that carries the call out: %s", name, pack, w.vault.catalog.Advice(name))
			return settleAs(failed(codeSecretMissing, detail)), false
		}
		w.vault.given.Add(value)
		w.warnShort(name, value)
	}
	f.secrets = newCallSecrets(values, &w.vault.given)
	call.Secrets = f.secrets
	return decision{}, true
}

// errNoManifest says that a manifest's blob holds something else.
var errNoManifest = errors.New("it is no manifest")

func (w *Worker) manifest(ctx context.Context, sid string, hash codec.Hash) (*space.Manifest, error) {
	if m, ok := w.manifests.Get(hash); ok {
		return m, nil
	}
	ref := codec.Ref{Hash: hash}
	data, err := w.wire.Blob(ctx, ref)
	if errors.Is(err, natsio.ErrNotFound) || errors.Is(err, journal.ErrOtherBytes) {
		data, err = w.wire.Remade(ctx, sid, ref)
	}
	if err != nil {
		return nil, err
	}
	m, problems := space.Parse(data)
	if m == nil {
		return nil, fmt.Errorf("%w: %s", errNoManifest, problems[0])
	}
	w.manifests.Put(hash, m, 4*len(data))
	return m, nil
}

// warnShort warns, at most once in logEvery, that a value is too short to be
// redacted.
func (w *Worker) warnShort(name, value string) {
	if value == "" || len(value) >= secrets.ValueBytesMin {
		return
	}
	if _, ok := w.limiter.allow("secret_not_redacted "+name, w.now()); ok {
		w.log.Warn("secret_not_redacted", "secret", name, "why", fmt.Sprintf("it is shorter than %d bytes: a tool that repeats it shows it", secrets.ValueBytesMin))
	}
}

// WarnShortSecret warns if a secret of a space is too short to be redacted.
func (w *Worker) WarnShortSecret(ctx context.Context, space, name string) {
	if value, err := w.vault.sources.Secret(ctx, space, name); err == nil {
		w.warnShort(name, value)
	}
}

// WarnShortCatalog does the same for the secrets of the catalog.
func (w *Worker) WarnShortCatalog(ctx context.Context) {
	for _, name := range w.vault.catalog.Names() {
		w.WarnShortSecret(ctx, "", name)
	}
}

// redacted returns an outcome, whatever it is, without the values of secrets. It
// must be called before any part of the outcome is stored or logged.
func (o outcome) redacted(r *secrets.Redactor) outcome {
	if r == nil {
		return o
	}
	o.output = r.Text(o.output)
	o.files = slices.Clone(o.files)
	for i := range o.files {
		o.files[i] = executor.File{Name: r.Text(o.files[i].Name), MediaType: r.Text(o.files[i].MediaType), Data: r.Bytes(o.files[i].Data)}
	}
	if o.fault != nil {
		fault := *o.fault
		fault.Code, fault.Detail = r.Text(fault.Code), r.Text(fault.Detail)
		o.fault = &fault
	}
	if o.host != nil {
		o.host = &executor.HostSession{ID: r.Text(o.host.ID), Status: r.Text(o.host.Status), Root: r.Text(o.host.Root), Route: r.Text(o.host.Route)}
	}
	return o
}
