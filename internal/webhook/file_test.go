package webhook

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/refold/refold/internal/bus/bustest"
)

func writeFile(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	bustest.OK(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestFileOfWebhooks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFile(t, dir, "keys", "whsec_"+secret+"\n"+secret+"\n")
	hooks, err := Read(writeFile(t, dir, "hooks.yaml", `
webhooks:
- name: crm
  url: https://crm.example.com/hooks
  secret: whsec_`+secret+`
  events: [RunFinished, ApprovalRequested]
  scope: acme-
- name: ops
  url: http://10.0.0.1/hooks
  secret_file: keys
  events: [SessionQuarantined]
  allow_private: true
`))
	bustest.OK(t, err)
	if len(hooks) != 2 || hooks[0].Name != "crm" || hooks[0].Scope != "acme-" || len(hooks[0].keys) != 1 || !hooks[1].AllowPrivate || len(hooks[1].keys) != 2 {
		t.Errorf("got %+v", hooks)
	}
}

// TestFaultyFilesAreRefusedWithTheirPlace: file, line and column, and what to write.
func TestFaultyFilesAreRefusedWithTheirPlace(t *testing.T) {
	t.Parallel()
	good := "webhooks:\n- name: crm\n  url: https://example.com\n  secret: " + secret + "\n  events: [RunFinished]\n"
	dir := t.TempDir()
	for _, c := range []struct{ old, new, want string }{
		{"url:", "ulr:", `[3:3] unknown field "ulr"; did you mean "url"?`},
		{"name: crm", "name: a.b", "hooks.yaml:2:9: webhooks[0].name: \"a.b\" is not 1 to 64"},
		{"https://example.com", "example.com", "hooks.yaml:3:8: webhooks[0].url: "},
		{"https://example.com", "http://example.com", "3:8: webhooks[0].url: notices would go unencrypted: use https"},
		{"https://example.com", "https://a:b@example.com", "the signature says who sends"},
		{secret, "short", "4:11: webhooks[0].secret: a secret is whsec_"},
		{"secret: " + secret, "secret_file: none", "4:16: webhooks[0].secret_file: open "},
		{"  secret: " + secret + "\n", "", "give it a secret or a secret_file"},
		{"[RunFinished]", "[RunFinished, RunFinish]", `5:25: webhooks[0].events[1]: there is no notice "RunFinish": did you mean RunFinished?`},
		{"[RunFinished]", "[]", "name the types of notices"},
		{"events:", "scope: Acme\n  events:", "5:10: webhooks[0].scope: "},
		{"events:", "sessions: 'a b'\n  events:", "5:13: webhooks[0].sessions: "},
		{"events: [RunFinished]\n", "events: [RunFinished]\n- {name: crm, url: 'https://b.example', secret: " + secret + ", events: [RunFinished]}\n", "6:10: webhooks[1].name: another webhook has this name"},
		{good, "webhooks: []\n", "it has 0: name 1 to 64"},
	} {
		_, err := Read(writeFile(t, dir, "hooks.yaml", strings.Replace(good, c.old, c.new, 1)))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: got %v, want %s", c.new, err, c.want)
		}
	}
}
