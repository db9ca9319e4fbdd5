package webhook

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/refold/refold/client"
	"github.com/refold/refold/codec/nearest"
	"github.com/refold/refold/internal/yamlfile"
	"github.com/refold/refold/subjects"
)

// Limits of a file.
const (
	hooksMax       = 64
	secretsMax     = 4
	secretBytesMin = 24 // as Standard Webhooks says
	secretBytesMax = 64
)

// Hook is a webhook: which notices a receiver gets, and how.
type Hook struct {
	Name         string
	URL          string
	Events       []string // types of notices
	Scope        string   // before the ids of its sessions, and stripped from what is sent
	Sessions     string   // beginning of its sessions' ids, after the scope
	AllowPrivate bool     // the receiver may have an address of a private network
	ReplyLinks   bool     // ReplyRequested brings the path at which its call is answered

	secret []byte // of reply links

	keys []*standardwebhooks.Webhook // each signs
}

// row is a webhook in a file.
type row struct {
	Name         string   `yaml:"name"`
	URL          string   `yaml:"url"`
	Secret       string   `yaml:"secret"`
	SecretFile   string   `yaml:"secret_file"`
	Events       []string `yaml:"events"`
	Scope        string   `yaml:"scope"`
	Sessions     string   `yaml:"sessions"`
	AllowPrivate bool     `yaml:"allow_private"`
	ReplyLinks   bool     `yaml:"reply_links"`
}

// Read reads a file of webhooks, and the files of secrets that it names. The error has
// the file, the line and the column.
func Read(file string) ([]Hook, error) {
	text, err := yamlfile.Read(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var all struct {
		Webhooks []row `yaml:"webhooks"`
	}
	if err := yaml.NewDecoder(bytes.NewReader(text), yaml.Strict(), yaml.DisallowUnknownField()).Decode(&all); err != nil {
		why, _, _ := strings.Cut(yamlfile.Explain(err, &all).Error(), "\n") // the lines around it may have a secret
		return nil, fmt.Errorf("%s: %s", file, why)
	}
	if n := len(all.Webhooks); n == 0 || n > hooksMax {
		return nil, yamlfile.Place(file, text, "webhooks", fmt.Errorf("webhooks: it has %d: name 1 to %d", n, hooksMax))
	}
	hooks := make([]Hook, len(all.Webhooks))
	for i := range all.Webhooks {
		r := &all.Webhooks[i]
		h, key, err := r.hook(filepath.Dir(file))
		if err == nil && slices.ContainsFunc(hooks[:i], func(other Hook) bool { return other.Name == r.Name }) {
			key, err = "name", errors.New("another webhook has this name")
		}
		if err != nil {
			return nil, yamlfile.Place(file, text, fmt.Sprintf("webhooks[%d].%s", i, key), fmt.Errorf("webhooks[%d].%s: %w", i, key, err))
		}
		hooks[i] = h
	}
	return hooks, nil
}

// SignLinks gives the webhooks the secret of the server that answers reply links. It fails
// if one has reply_links, and there is no secret.
func SignLinks(hooks []Hook, secret []byte) error {
	for i := range hooks {
		if hooks[i].ReplyLinks && len(secret) == 0 {
			return fmt.Errorf("webhook %s has reply_links: give the server --secret FILE, which signs them", hooks[i].Name)
		}
		hooks[i].secret = secret
	}
	return nil
}

var (
	scopeForm    = regexp.MustCompile(`^([a-z0-9]{1,16}-)?$`) // as web.ScopePattern
	sessionsForm = regexp.MustCompile(`^[A-Za-z0-9_-]{0,64}$`)
)

// hook checks a row. An error is about the value of key.
func (r *row) hook(dir string) (h Hook, key string, err error) {
	h = Hook{Name: r.Name, URL: r.URL, Events: r.Events, Scope: r.Scope, Sessions: r.Sessions, AllowPrivate: r.AllowPrivate, ReplyLinks: r.ReplyLinks}
	if _, err := subjects.WebhookConsumer(r.Name); err != nil {
		return h, "name", fmt.Errorf("%q is not 1 to 64 of A-Za-z0-9_-", r.Name)
	}
	if err := checkURL(r.URL, r.AllowPrivate); err != nil {
		return h, "url", err
	}
	if len(r.Events) == 0 {
		return h, "events", fmt.Errorf("name the types of notices, such as %s", "[RunFinished, ApprovalRequested]")
	}
	for i, event := range r.Events {
		if known := client.NoticeTypes(); !slices.Contains(known, event) {
			return h, fmt.Sprintf("events[%d]", i), fmt.Errorf("there is no notice %q: did you mean %s?", event, cmp.Or(nearest.Name(event, known), known[0]))
		}
	}
	if !scopeForm.MatchString(r.Scope) {
		return h, "scope", fmt.Errorf("%q is not 1 to 16 of a-z0-9 and a hyphen, such as acme-", r.Scope)
	}
	if !sessionsForm.MatchString(r.Sessions) {
		return h, "sessions", fmt.Errorf("%q is not the beginning of a session's id", r.Sessions)
	}
	h.keys, key, err = r.secrets(dir)
	return h, key, err
}

func checkURL(text string, private bool) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("%q is no address, such as https://example.com/hooks", text)
	case u.User != nil:
		return errors.New("it has a user or a password: the signature says who sends")
	case u.Scheme == "http" && !private:
		return errors.New("notices would go unencrypted: use https, or allow_private: true for a receiver in your own network")
	}
	return nil
}

// secrets returns the keys that sign: that of secret, or of each line of secret_file.
func (r *row) secrets(dir string) (keys []*standardwebhooks.Webhook, key string, err error) {
	key = "secret"
	lines := []string{r.Secret}
	switch {
	case (r.Secret == "") == (r.SecretFile == ""):
		return nil, "name", errors.New("give it a secret or a secret_file: echo whsec_$(head -c 32 /dev/urandom | base64)")
	case r.SecretFile != "":
		key = "secret_file"
		file := r.SecretFile
		if !filepath.IsAbs(file) {
			file = filepath.Join(dir, file)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, key, err
		}
		lines = strings.Fields(string(text))
	}
	if len(lines) == 0 || len(lines) > secretsMax {
		return nil, key, fmt.Errorf("it has %d secrets: 1 to %d, a line each", len(lines), secretsMax)
	}
	for _, line := range lines {
		secret, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(line, "whsec_"))
		if err != nil || len(secret) < secretBytesMin || len(secret) > secretBytesMax {
			return nil, key, fmt.Errorf("a secret is whsec_ and the base64 of %d to %d bytes: echo whsec_$(head -c 32 /dev/urandom | base64)", secretBytesMin, secretBytesMax)
		}
		signs, err := standardwebhooks.NewWebhookRaw(secret)
		if err != nil {
			return nil, key, err
		}
		keys = append(keys, signs)
	}
	return keys, key, nil
}
