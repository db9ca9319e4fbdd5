package bearer

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/refold/refold/web"
)

// Issuer is a row of the file: who signs JWTs, and what their holders may do.
type Issuer struct {
	Issuer     string      `yaml:"issuer"`     // of the claim iss: an https address, which tells where the keys are
	JWKS       string      `yaml:"jwks"`       // address of the keys, without asking the issuer for it
	Audience   string      `yaml:"audience"`   // of the claim aud
	Algorithms []string    `yaml:"algorithms"` // of signatures, such as RS256; absent: RS256 and ES256
	Rights     []web.Right `yaml:"rights"`     // of every holder, unless a claim has them
	Scope      string      `yaml:"scope"`      // of every holder, unless a claim has it
	Agents     []string    `yaml:"agents"`     // of every holder, unless a claim has them

	// AllSessions lets holders without a scope use all sessions.
	AllSessions bool `yaml:"all_sessions"`
	// Claims are the names of claims that have what is not the same for all.
	Claims Claims `yaml:"claims"`
}

// Claims are names of claims. An empty one is not read.
type Claims struct {
	Subject string `yaml:"subject"` // absent: sub
	Rights  string `yaml:"rights"`  // a list, or words separated by spaces; others than rights are left out
	Scope   string `yaml:"scope"`   // with or without the hyphen at its end; a token without it is refused
	Agents  string `yaml:"agents"`  // as rights; a token without it may name none
}

// algorithms are those of signatures by a private key.
var algorithms = []string{
	oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.EdDSA,
}

// verifier verifies the JWTs of an issuer.
type verifier struct {
	of     Issuer
	config oidc.Config
	client *http.Client

	mu   sync.Mutex
	keys *oidc.IDTokenVerifier // nil: not found yet
}

// keysWithin is how long an issuer may take to answer.
const keysWithin = 10 * time.Second

// verifier checks a row, and reports every problem.
func (of Issuer) verifier() (v *verifier, wrong []error) {
	for _, a := range []struct{ name, at string }{{"issuer", of.Issuer}, {"jwks", of.JWKS}} {
		if a.at == "" && a.name == "jwks" {
			continue
		}
		if u, err := url.Parse(a.at); err != nil || u.Host == "" || u.Scheme != "https" && !isLoopback(u) {
			wrong = append(wrong, fmt.Errorf("%s: %q is no https address", a.name, a.at))
		}
	}
	if of.Audience == "" {
		wrong = append(wrong, errors.New("audience: name that of this server, or tokens for others count here"))
	}
	if len(of.Algorithms) == 0 {
		of.Algorithms = []string{oidc.RS256, oidc.ES256}
	}
	for _, a := range of.Algorithms {
		if !slices.Contains(algorithms, a) {
			wrong = append(wrong, fmt.Errorf("algorithms: %q is none of %s", a, strings.Join(algorithms, ", ")))
		}
	}
	if of.Scope == "" && of.Claims.Scope == "" && !of.AllSessions {
		wrong = append(wrong, errors.New("scope: give one, or the name of a claim that has it; all_sessions: true lets every holder use all sessions"))
	}
	if of.Claims.Subject == "" {
		of.Claims.Subject = "sub"
	}
	wrong = append(wrong, checkRights(of.Rights, of.Scope, of.Agents)...)
	config := oidc.Config{ClientID: of.Audience, SupportedSigningAlgs: of.Algorithms}
	return &verifier{of: of, config: config, client: &http.Client{Timeout: keysWithin}}, wrong
}

func isLoopback(u *url.URL) bool {
	return u.Scheme == "http" && slices.Contains([]string{"127.0.0.1", "localhost", "::1"}, u.Hostname())
}

// issuerOf returns the claim iss of a JWT that nobody has verified.
func issuerOf(token string) string {
	parts := strings.Split(token, ".")
	body, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Issuer string `json:"iss"`
	}
	if err != nil || json.Unmarshal(body, &claims) != nil {
		return ""
	}
	return claims.Issuer
}

// find returns the verifier with the issuer's keys, which it fetches when they are first
// needed, and when one is new.
func (v *verifier) find(ctx context.Context) (*oidc.IDTokenVerifier, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.keys != nil {
		return v.keys, nil
	}
	ctx = oidc.ClientContext(context.WithoutCancel(ctx), v.client) // the keys outlive the request
	if v.of.JWKS != "" {
		v.keys = oidc.NewVerifier(v.of.Issuer, oidc.NewRemoteKeySet(ctx, v.of.JWKS), &v.config)
		return v.keys, nil
	}
	provider, err := oidc.NewProvider(ctx, v.of.Issuer)
	if err != nil {
		return nil, errors.New("the issuer of the token does not answer: send the request again later")
	}
	v.keys = provider.Verifier(&v.config)
	return v.keys, nil
}

// verify returns the caller of a JWT.
func (v *verifier) verify(ctx context.Context, token string) (*web.Caller, error) {
	keys, err := v.find(ctx)
	if err != nil {
		return nil, err
	}
	verified, err := keys.Verify(oidc.ClientContext(ctx, v.client), token)
	if err != nil {
		return nil, errUnknown // the cause would help who tries out tokens
	}
	var claims map[string]any
	if err := verified.Claims(&claims); err != nil {
		return nil, errUnknown
	}
	return v.of.caller(claims, verified.Expiry)
}

// caller returns what claims say.
func (of *Issuer) caller(claims map[string]any, expires time.Time) (*web.Caller, error) {
	c := &web.Caller{Rights: of.Rights, Scope: of.Scope, Agents: of.Agents, Expires: expires}
	if c.Subject, _ = claims[of.Claims.Subject].(string); c.Subject == "" {
		return nil, fmt.Errorf("the token has no claim %s", of.Claims.Subject)
	}
	if of.Claims.Rights != "" {
		c.Rights = nil
		for _, word := range words(claims[of.Claims.Rights]) {
			if slices.Contains(web.Rights, web.Right(word)) {
				c.Rights = append(c.Rights, web.Right(word))
			}
		}
	}
	if of.Claims.Agents != "" {
		c.Agents = append([]string{}, words(claims[of.Claims.Agents])...)
	}
	if of.Claims.Scope != "" {
		text, _ := claims[of.Claims.Scope].(string)
		if c.Scope = strings.TrimSuffix(text, "-") + "-"; !web.IsScope(c.Scope) {
			return nil, fmt.Errorf("the token's claim %s is no scope, such as acme", of.Claims.Scope)
		}
	}
	return c, nil
}

// words returns a claim that is a list, or a text of words.
func words(claim any) (all []string) {
	switch c := claim.(type) {
	case string:
		return strings.Fields(c)
	case []any:
		for _, each := range c {
			if text, ok := each.(string); ok {
				all = append(all, text)
			}
		}
	}
	return all
}
