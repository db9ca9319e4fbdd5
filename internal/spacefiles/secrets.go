package spacefiles

import (
	"bytes"
	"regexp"
	"slices"

	"github.com/refold/refold/space"
)

// secrets are keys of known formats.
var secrets = []struct {
	what string
	is   *regexp.Regexp
}{
	{"a private key", regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----`)},
	{"a seed of a NATS nkey", regexp.MustCompile(`\bS[UANOCX][A-Z2-7]{56}\b`)},
	{"a key of OpenAI or Anthropic", regexp.MustCompile(`\bsk-[A-Za-z0-9_-]{20,}`)},
	{"a key of AWS", regexp.MustCompile(`\b(AKIA|ASIA)[A-Z0-9]{16}\b`)},
	{"a key of Google", regexp.MustCompile(`\bAIza[A-Za-z0-9_-]{35}\b`)},
	{"a token of GitHub", regexp.MustCompile(`\b(gh[pousr]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9_]{40,})`)},
	{"a token of Slack", regexp.MustCompile(`\bxox[abprs]-[A-Za-z0-9-]{10,}`)},
	{"a key of Stripe", regexp.MustCompile(`\b[rs]k_live_[A-Za-z0-9]{20,}`)},
}

// Secrets reports files of a space that seem to contain a key. The details do
// not repeat the key.
func (b *Built) Secrets() []space.Problem {
	var found []space.Problem
	if b.Manifest == nil {
		return nil
	}
	for i := range b.Manifest.Files {
		f := &b.Manifest.Files[i]
		content := b.Files[f.Ref]
		for _, s := range secrets {
			if at := s.is.FindIndex(content); at != nil {
				found = append(found, space.Problem{
					Code: space.SecretInFile, File: f.Path, Line: 1 + bytes.Count(content[:at[0]], []byte("\n")),
					Detail: "holds what looks like " + s.what + ": take it out, and replace the key",
				})
			}
		}
	}
	return space.SortProblems(slices.Clip(found))
}
