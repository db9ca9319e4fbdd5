package bridge

import (
	"context"
	"strings"

	"github.com/refold/refold/internal/secrets"
	"github.com/refold/refold/internal/worker"
)

// Secrets finds the values of secrets that packs need. It is asked for each call,
// and for each reading of a space, so a value may change while the bridge runs. It
// may be called from several goroutines.
//
// An empty value means that it has none; the next source is asked then. An error
// fails the call or the reading, and must not hold a value.
type Secrets interface {
	Secret(ctx context.Context, space, name string) (value string, err error)
}

// SecretName names a secret of a space; of all spaces if Space is empty.
type SecretName struct{ Space, Name string }

// Secret is one secret, of all spaces: value is called each time it is needed.
func Secret(name string, value func() (string, error)) Secrets {
	return secrets.Func(func(_ context.Context, _, asked string) (string, error) {
		if asked != name {
			return "", nil
		}
		return value()
	})
}

// SecretFile is one secret, of all spaces, that a file holds. A line break at its
// end is not a part of it.
func SecretFile(name, file string) Secrets {
	return Secret(name, func() (string, error) { return secrets.ReadFile(file) })
}

// SecretFiles is a folder that has a file for each secret, called as it is: what
// Kubernetes and agents of secret managers write.
func SecretFiles(dir string) Secrets { return secrets.Files(dir) }

// environment returns what may be read of the environment.
func (o *Options) environment() func(string) (string, bool) {
	if o.LookupEnv == nil {
		return worker.NoEnvironment
	}
	return o.LookupEnv
}

// warnShortSecrets says at the start which secrets are too short to be redacted,
// of the packs of this program and of the catalog.
func (b *Bridge) warnShortSecrets(ctx context.Context) {
	for _, s := range b.options.SecretNames {
		b.worker.WarnShortSecret(ctx, s.Space, s.Name)
	}
	for _, s := range b.packs {
		for _, need := range s.manifest.AllNeeds() {
			if name, ok := strings.CutPrefix(strings.TrimSuffix(need, "?"), "secret:"); ok {
				b.worker.WarnShortSecret(ctx, s.manifest.Space, name)
			}
		}
	}
	b.worker.WarnShortCatalog(ctx)
}
