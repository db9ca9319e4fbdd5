package bearer

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/refold/refold/internal/yamlfile"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/web"
)

// Token is a row of the file: a token by its hash, and what its holder may do.
type Token struct {
	Name    string      `yaml:"name"`             // the publisher of events
	Hash    string      `yaml:"hash"`             // sha256: and 64 hexadecimal digits
	Rights  []web.Right `yaml:"rights,flow"`      // read, ask, approve, operate, erase
	Scope   string      `yaml:"scope,omitempty"`  // before every session id; absent: all sessions
	Agents  []string    `yaml:"agents,omitempty"` // that requests may name; absent: all
	Expires time.Time   `yaml:"expires,omitempty"`
}

// contents are what the file says.
type contents struct {
	Tokens  []Token  `yaml:"tokens"`
	Issuers []Issuer `yaml:"issuers"`
}

// tokensMax is how many tokens a file may have.
const tokensMax = 10_000

// File is who may do what, by a file. It is safe for concurrent use.
type File struct {
	path string
	now  atomic.Pointer[known]
}

// known is a file that was read.
type known struct {
	tokens  map[string]*web.Caller // by hash
	issuers map[string]*verifier
}

// Open reads a file. The error has the line and the column of what is wrong, or the row.
// Issuers are asked for their keys when they are first needed.
func Open(path string) (*File, error) {
	f := &File{path: path}
	return f, f.Reload()
}

// Reload reads the file again. If it is faulty, what it said before still counts.
func (f *File) Reload() error {
	text, err := yamlfile.Read(f.path)
	if err != nil {
		return fmt.Errorf("read %s: %w", f.path, err)
	}
	var c contents
	d := yaml.NewDecoder(bytes.NewReader(text), yaml.Strict(), yaml.DisallowUnknownField())
	if err := d.Decode(&c); err != nil {
		return fmt.Errorf("%s: %w", f.path, yamlfile.Explain(err, &c))
	}
	k, err := c.known()
	if err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	f.now.Store(k)
	return nil
}

// known checks the file, and reports every problem.
func (c *contents) known() (*known, error) {
	k := &known{tokens: map[string]*web.Caller{}, issuers: map[string]*verifier{}}
	var wrong []error
	if len(c.Tokens) > tokensMax {
		wrong = append(wrong, fmt.Errorf("tokens: %d of them, at most %d", len(c.Tokens), tokensMax))
	}
	names := map[string]bool{}
	for i := range c.Tokens {
		t := &c.Tokens[i]
		bad := func(format string, args ...any) {
			wrong = append(wrong, fmt.Errorf("tokens[%d], %s: %w", i, t.Name, fmt.Errorf(format, args...)))
		}
		digits, isHash := strings.CutPrefix(t.Hash, hashPrefix)
		if sum, err := hex.DecodeString(digits); !isHash || err != nil || len(sum) != sha256.Size {
			bad("hash: it is %s and 64 hexadecimal digits, as refold serve token prints it", hashPrefix)
		}
		switch {
		case t.Name == "":
			bad("name: it is empty")
		case names[t.Name]:
			bad("name: another token has it")
		}
		names[t.Name] = true
		if k.tokens[t.Hash] != nil {
			bad("hash: another token has it")
		}
		for _, err := range checkRights(t.Rights, t.Scope, t.Agents) {
			bad("%w", err)
		}
		k.tokens[t.Hash] = &web.Caller{Subject: t.Name, Rights: t.Rights, Scope: t.Scope, Agents: t.Agents, Expires: t.Expires}
	}
	for i := range c.Issuers {
		v, errs := c.Issuers[i].verifier()
		for _, err := range errs {
			wrong = append(wrong, fmt.Errorf("issuers[%d], %s: %w", i, c.Issuers[i].Issuer, err))
		}
		if k.issuers[c.Issuers[i].Issuer] != nil {
			wrong = append(wrong, fmt.Errorf("issuers[%d]: %s is named twice", i, c.Issuers[i].Issuer))
		}
		k.issuers[c.Issuers[i].Issuer] = v
	}
	return k, errors.Join(wrong...)
}

func checkRights(rights []web.Right, scope string, agents []string) (wrong []error) {
	for _, r := range rights {
		if !slices.Contains(web.Rights, r) {
			wrong = append(wrong, fmt.Errorf("rights: %q is none of read, ask, approve, operate, erase", r))
		}
	}
	if !web.IsScope(scope) {
		wrong = append(wrong, fmt.Errorf("scope: %q is not 1 to 16 of a-z0-9 and a hyphen, such as acme-", scope))
	}
	for _, a := range agents {
		if !planner.IsName(a) {
			wrong = append(wrong, fmt.Errorf("agents: %q is not 1 to 64 of A-Za-z0-9_-", a))
		}
	}
	return wrong
}

// errUnknown says that a token is not known, and no more.
var errUnknown = errors.New("the token is not one of this server, or has expired: get another one")

// Auth implements web.Auth.
func (f *File) Auth(r *http.Request) (*web.Caller, error) {
	token := web.Bearer(r)
	if token == "" {
		return nil, errors.New("send a token: Authorization: Bearer …")
	}
	k := f.now.Load()
	if c := k.tokens[HashOf(token)]; c != nil {
		if !c.Expires.IsZero() && !time.Now().Before(c.Expires) {
			return nil, errUnknown
		}
		return c, nil
	}
	if strings.Count(token, ".") != 2 {
		return nil, errUnknown
	}
	return k.verify(r.Context(), token)
}

// hashPrefix names the hash function in the file.
const hashPrefix = "sha256:"

// HashOf returns the hash of a token, as the file has it.
func HashOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hashPrefix + hex.EncodeToString(sum[:])
}

// New returns a new token: 256 random bits.
func New() string {
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // never fails
	return "refold_" + base64.RawURLEncoding.EncodeToString(secret[:])
}

// Row returns the row of a token for the file, as YAML. It fails if the file would be
// refused with it.
func Row(t Token) (string, error) {
	if _, err := (&contents{Tokens: []Token{t}}).known(); err != nil {
		return "", err
	}
	text, err := yaml.MarshalWithOptions([]Token{t}, yaml.IndentSequence(false))
	return string(text), err
}

// verify returns the caller of a JWT.
func (k *known) verify(ctx context.Context, token string) (*web.Caller, error) {
	v := k.issuers[issuerOf(token)]
	if v == nil {
		return nil, errUnknown
	}
	return v.verify(ctx, token)
}
