package bridge

import (
	"context"
	"strings"

	"github.com/refold/refold/internal/secrets"
	"github.com/refold/refold/internal/worker"
)

// Secrets is a source of the secrets that packs need. The bridge calls it for
// each call, and for each reading of a space, so a value may change while the
// bridge runs. It must be safe for concurrent use.
//
// An empty value means that the source has none; the bridge then tries the next
// one. An error fails the call or the reading, and must not contain a value.
type Secrets interface {
	Secret(ctx context.Context, space, name string) (value string, err error)
}

// SecretName names a secret of a space; of all spaces if Space is empty.
type SecretName struct{ Space, Name string }

// Secret is a source of one secret, for all spaces. value is called each time.
func Secret(name string, value func() (string, error)) Secrets {
	return secrets.Func(func(_ context.Context, _, wanted string) (string, error) {
		if wanted != name {
			return "", nil
		}
		return value()
	})
}

// SecretFile is a source of one secret, for all spaces, in a file. A line break
// at the end of the file is not part of it.
func SecretFile(name, file string) Secrets {
	return Secret(name, func() (string, error) { return secrets.ReadFile(file) })
}

// SecretFiles is a folder with a file for each secret, which has the secret's
// name, as Kubernetes and secret managers write it.
func SecretFiles(dir string) Secrets { return secrets.Files(dir) }

func (o *Options) environment() func(string) (string, bool) {
	if o.LookupEnv == nil {
		return worker.NoEnvironment
	}
	return o.LookupEnv
}

// warnShortSecrets warns at the start of secrets that are too short to be
// redacted, of this program's packs and of the catalog.
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
