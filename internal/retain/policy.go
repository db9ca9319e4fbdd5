package retain

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/refold/refold/internal/yamlfile"
)

// rulesMax is the most rules of a policy.
const rulesMax = 256

// Policy says which sessions are archived and deleted, and when.
type Policy struct {
	ArchiveTo string `yaml:"archive_to"` // directory of the archives of rules that name none
	Rules     []Rule `yaml:"rules"`      // of the sessions with a prefix; the longest prefix counts
}

// Rule is what is done with sessions. One without closed_after and idle_after does
// nothing, so that a longer prefix can be an exception.
type Rule struct {
	Prefix      string `yaml:"prefix"`       // of the sessions' names; empty: all
	ClosedAfter *Span  `yaml:"closed_after"` // a closed session is due so long after its last event
	IdleAfter   *Span  `yaml:"idle_after"`   // a session with nothing to do is due so long after its last event
	ArchiveTo   string `yaml:"archive_to"`   // empty: the policy's
	DeleteAfter *Span  `yaml:"delete_after"` // it is deleted so long after it was due; absent: never
}

// Span is a duration such as 90d or 36h.
type Span time.Duration

// UnmarshalYAML implements yaml.BytesUnmarshaler.
func (d *Span) UnmarshalYAML(text []byte) error {
	of := strings.Trim(strings.TrimSpace(string(text)), `"'`)
	if days, ok := strings.CutSuffix(of, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			*d = Span(n) * Span(24*time.Hour)
			return nil
		}
	}
	n, err := time.ParseDuration(of)
	if err != nil || n < 0 {
		return fmt.Errorf("%q is no duration such as 90d or 36h", of)
	}
	*d = Span(n)
	return nil
}

// Read reads a policy, and checks it. An error names the file, and an unknown key.
func Read(name string) (*Policy, error) {
	text, err := yamlfile.Read(name)
	if err != nil {
		return nil, err
	}
	p := &Policy{}
	err = yaml.NewDecoder(strings.NewReader(string(text)), yaml.DisallowUnknownField()).Decode(p)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w", name, yamlfile.Explain(err, p))
	}
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

func (p *Policy) check() error {
	if len(p.Rules) == 0 || len(p.Rules) > rulesMax {
		return fmt.Errorf("it has %d rules: give 1 to %d", len(p.Rules), rulesMax)
	}
	seen := map[string]bool{}
	for i := range p.Rules {
		r := &p.Rules[i]
		if r.ArchiveTo == "" && r.acts() {
			r.ArchiveTo = p.ArchiveTo
		}
		err := r.check()
		if seen[r.Prefix] {
			err = errors.New("another rule has the same prefix")
		}
		if err != nil {
			return fmt.Errorf("the rule for the prefix %q: %w", r.Prefix, err)
		}
		seen[r.Prefix] = true
	}
	return nil
}

func (r *Rule) acts() bool { return r.ClosedAfter != nil || r.IdleAfter != nil }

func (r *Rule) check() error {
	switch {
	case !r.acts() && (r.ArchiveTo != "" || r.DeleteAfter != nil):
		return errors.New("it says what to do and not when: give closed_after, idle_after or both, such as 90d")
	case r.acts() && r.ArchiveTo == "" && r.DeleteAfter == nil:
		return errors.New("it says when and not what to do: give archive_to, delete_after or both")
	case r.ArchiveTo != "":
		if info, err := os.Stat(r.ArchiveTo); err != nil || !info.IsDir() {
			return fmt.Errorf("archive_to %s is no directory: create it, or mount it", r.ArchiveTo)
		}
	}
	return nil
}

// rule returns the rule of a session; nil if there is none, or if it does nothing.
func (p *Policy) rule(sid string) *Rule {
	var of *Rule
	for i := range p.Rules {
		r := &p.Rules[i]
		if strings.HasPrefix(sid, r.Prefix) && (of == nil || len(r.Prefix) > len(of.Prefix)) {
			of = r
		}
	}
	if of == nil || !of.acts() {
		return nil
	}
	return of
}

// soonest returns after how long a session may be due at the earliest.
func (r *Rule) soonest() time.Duration {
	switch {
	case r.ClosedAfter == nil:
		return time.Duration(*r.IdleAfter)
	case r.IdleAfter == nil:
		return time.Duration(*r.ClosedAfter)
	}
	return time.Duration(min(*r.ClosedAfter, *r.IdleAfter))
}

// due returns for how long a session has been due, and false if it is not: its last event
// is so old, and it is closed or idle.
func (r *Rule) due(age time.Duration, closed, idle bool) (since time.Duration, due bool) {
	for _, c := range []struct {
		is    bool
		after *Span
	}{{closed, r.ClosedAfter}, {idle, r.IdleAfter}} {
		if c.is && c.after != nil && age >= time.Duration(*c.after) {
			since, due = max(since, age-time.Duration(*c.after)), true
		}
	}
	return since, due
}

// deletes reports whether a session is deleted that has been due for so long.
func (r *Rule) deletes(since time.Duration) bool {
	return r.DeleteAfter != nil && since >= time.Duration(*r.DeleteAfter)
}
