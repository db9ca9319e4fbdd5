package bearer_test

import (
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/web"
	"github.com/refold/refold/web/bearer"
)

// write returns the path of a file with a text.
func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// with returns a request with a token.
func with(t *testing.T, token string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	r.Header.Set("Authorization", "Bearer "+token)
	return r
}

func TestTokensOfAFile(t *testing.T) {
	t.Parallel()
	ann, old := bearer.New(), bearer.New()
	first, err := bearer.Row(bearer.Token{Name: "ann", Hash: bearer.HashOf(ann), Rights: []web.Right{web.RightRead, web.RightAsk}, Scope: "acme-", Agents: []string{"helper"}})
	if err != nil {
		t.Fatal(err)
	}
	second, err := bearer.Row(bearer.Token{Name: "old", Hash: bearer.HashOf(old), Rights: web.Rights, Expires: time.Unix(1, 0)})
	if err != nil {
		t.Fatal(err)
	}
	path := write(t, "tokens:\n"+first+second)
	f, err := bearer.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	got, err := f.Auth(with(t, ann))
	if err != nil || got.Subject != "ann" || got.Scope != "acme-" || len(got.Rights) != 2 || !slices.Equal(got.Agents, []string{"helper"}) {
		t.Errorf("got %+v (%v)", got, err)
	}
	for _, bad := range []string{"", old, ann + "x", bearer.HashOf(ann), "a.b.c"} {
		if got, err := f.Auth(with(t, bad)); err == nil {
			t.Errorf("token %q: got %+v", bad, got)
		}
	}
	// A faulty file changes nothing, and a good one counts at once.
	if err := os.WriteFile(path, []byte("tokens:\n- nam: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.Reload(); err == nil || !strings.Contains(err.Error(), `[2:3]`) || !strings.Contains(err.Error(), `did you mean "name"?`) {
		t.Errorf("got %v, want the place", err)
	}
	if _, err := f.Auth(with(t, ann)); err != nil {
		t.Errorf("after a faulty file: %v", err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_ = f.Reload()
	for _, text := range []string{
		"tokens:\n- {name: a, hash: x}", "tokens:\n- {name: a, hash: '" + bearer.HashOf("a") + "', rights: [write]}", "tokens:\n- {name: a, hash: '" + bearer.HashOf("a") + "', scope: acme}",
		"issuers:\n- {issuer: 'http://example.com', audience: a, scope: a-}", "issuers:\n- {issuer: 'https://example.com', scope: a-}", "issuers:\n- {issuer: 'https://example.com', audience: a}",
		"issuers:\n- {issuer: 'https://example.com', audience: a, scope: a-, algorithms: [none]}", "issuers:\n- {issuer: 'https://example.com', audience: a, scope: a-, algorithms: [HS256]}",
	} {
		if _, err := bearer.Open(write(t, text)); err == nil {
			t.Errorf("%s: no error", text)
		}
	}
}

// issuer signs JWTs, and serves its key.
type issuer struct {
	key *rsa.PrivateKey
	url string
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	is := &issuer{key: key}
	mux := http.NewServeMux()
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"keys": [{"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "k", "n": %q, "e": %q}]}`,
			encode(key.N.Bytes()), encode(big.NewInt(int64(key.E)).Bytes()))
	})
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"issuer": %q, "jwks_uri": %q}`, is.url, is.url+"/keys")
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	is.url = s.URL
	return is
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// token returns a JWT: signed by the issuer with RS256, with another algorithm by its
// public key as a secret, or not at all.
func (is *issuer) token(t *testing.T, alg string, claims map[string]any) string {
	t.Helper()
	body, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	signed := encode(fmt.Appendf(nil, `{"alg": %q, "kid": "k"}`, alg)) + "." + encode(body)
	var signature []byte
	switch alg {
	case "RS256":
		sum := sha256.Sum256([]byte(signed))
		if signature, err = rsa.SignPKCS1v15(rand.Reader, is.key, crypto.SHA256, sum[:]); err != nil {
			t.Fatal(err)
		}
	case "HS256":
		mac := hmac.New(sha256.New, is.key.N.Bytes())
		mac.Write([]byte(signed))
		signature = mac.Sum(nil)
	}
	return signed + "." + encode(signature)
}

// FD-07: a JWT counts with a signature of the issuer alone, for this server, in its time,
// and with a scope.
func TestAttackJWTs(t *testing.T) {
	t.Parallel()
	is, other := newIssuer(t), newIssuer(t)
	for _, keys := range []string{"", "\n  jwks: " + is.url + "/keys"} {
		f, err := bearer.Open(write(t, fmt.Sprintf("issuers:\n- issuer: %s%s\n  audience: refold\n  rights: [read]\n  claims: {scope: org, rights: may, agents: agents}\n", is.url, keys)))
		if err != nil {
			t.Fatal(err)
		}
		claims := func(changes ...any) map[string]any {
			c := map[string]any{"iss": is.url, "aud": "refold", "sub": "ann", "org": "acme", "may": "read approve fly", "agents": []string{"helper"}, "exp": time.Now().Add(time.Hour).Unix()}
			for i := 0; i < len(changes); i += 2 {
				if c[changes[i].(string)] = changes[i+1]; changes[i+1] == nil {
					delete(c, changes[i].(string))
				}
			}
			return c
		}
		got, err := f.Auth(with(t, is.token(t, "RS256", claims())))
		if err != nil || got.Subject != "ann" || got.Scope != "acme-" || !slices.Equal(got.Rights, []web.Right{web.RightRead, web.RightApprove}) || got.Expires.IsZero() {
			t.Errorf("got %+v (%v)", got, err)
		}
		for what, bad := range map[string]string{
			"none":         is.token(t, "none", claims()),
			"shared":       is.token(t, "HS256", claims()),
			"other key":    other.token(t, "RS256", claims()),
			"other issuer": other.token(t, "RS256", claims("iss", other.url)),
			"no issuer":    is.token(t, "RS256", claims("iss", nil)),
			"audience":     is.token(t, "RS256", claims("aud", "billing")),
			"expired":      is.token(t, "RS256", claims("exp", time.Now().Add(-time.Hour).Unix())),
			"not yet":      is.token(t, "RS256", claims("nbf", time.Now().Add(time.Hour).Unix())),
			"no scope":     is.token(t, "RS256", claims("org", nil)),
			"no subject":   is.token(t, "RS256", claims("sub", nil)),
			"bad scope":    is.token(t, "RS256", claims("org", "Acme Corp")),
			"cut":          is.token(t, "RS256", claims())[:100],
		} {
			if got, err := f.Auth(with(t, bad)); err == nil {
				t.Errorf("%s: got %+v", what, got)
			}
		}
	}
}
