package provider_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold"
	"github.com/refold/refold/provider"
	"github.com/refold/refold/provider/anthropic"
	"github.com/refold/refold/provider/compatible"
	"github.com/refold/refold/provider/gemini"
	"github.com/refold/refold/provider/openai"
)

// each are the constructors, by provider.
var each = map[string]func(o ...provider.Option) refold.ModelRef{
	"openai":    func(o ...provider.Option) refold.ModelRef { return openai.Model("m", o...) },
	"anthropic": func(o ...provider.Option) refold.ModelRef { return anthropic.Model("m", o...) },
	"gemini":    func(o ...provider.Option) refold.ModelRef { return gemini.Model("m", o...) },
}

func TestReferencesTakeTheKeyFromTheEnvironment(t *testing.T) { //nolint:paralleltest // it sets the environment
	for name, model := range each {
		t.Setenv(strings.ToUpper(name)+"_BASE_URL", "")
		t.Setenv(strings.ToUpper(name)+"_API_KEY", "")
		if _, err := model().Open(); err == nil || !strings.Contains(err.Error(), strings.ToUpper(name)+"_API_KEY") {
			t.Errorf("%s without a key: got %v, want the name of its variable", name, err)
		}
		t.Setenv(strings.ToUpper(name)+"_API_KEY", "k")
		ref := model()
		if ref.Provider != name || ref.Model != "m" {
			t.Errorf("%s: got %s/%s", name, ref.Provider, ref.Model)
		}
		if m, err := ref.Open(); err != nil || m == nil {
			t.Errorf("%s with a key: got %v", name, err)
		}
		if again := model(provider.Key("k")); again.Account != ref.Account {
			t.Errorf("%s: the same key twice is two accounts", name)
		}
		if other := model(provider.Key("other")); other.Account == ref.Account {
			t.Errorf("%s: two keys are one account", name)
		}
		// A server of one's own gets no key of the provider's.
		if own := model(provider.BaseURL("http://127.0.0.1:1/v1")); own.Account == model(provider.BaseURL("http://127.0.0.1:1/v1"), provider.Key("k")).Account {
			t.Errorf("%s: another server gets the key in the environment", name)
		}
	}
}

func TestKeyFiles(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "key")
	if _, err := openai.Model("m", provider.KeyFile(file)).Open(); err == nil {
		t.Error("a file that is not there: got no error")
	}
	for _, c := range []struct {
		text  string
		fails bool
	}{{" \n", true}, {"k\n", false}} {
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := openai.Model("m", provider.KeyFile(file)).Open(); (err != nil) != c.fails {
			t.Errorf("%q: got %v", c.text, err)
		}
	}
	if _, err := openai.Model("m", provider.KeyFile(file), provider.Key("k")).Open(); err == nil {
		t.Error("two keys: got no error")
	}
}

func TestServersOfOnesOwn(t *testing.T) {
	t.Parallel()
	local := compatible.Model("http://127.0.0.1:11434/v1", "llama3.2", provider.Limit(5, time.Second)).As("local")
	if local.Provider != "local" || len(local.Serve) != 1 {
		t.Errorf("got %+v", local)
	}
	if _, err := local.Open(); err != nil {
		t.Errorf("without a key: %v", err)
	}
	if _, err := compatible.Model("127.0.0.1", "m").Open(); err == nil {
		t.Error("no URL: got no error")
	}
}
