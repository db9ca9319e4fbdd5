package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"os"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/bus"
)

// readRecord reads a record from a file, or from in if the file is "-".
func readRecord(file string, in io.Reader) ([]byte, error) {
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	return io.ReadAll(io.LimitReader(in, codec.BytesMax+1))
}

// published is an install record in the log.
type published struct {
	seq       uint64
	at        time.Time
	hash      codec.Hash       // of the canonical bytes; zero if there are none
	canonical []byte           // nil: the payload can't be read at all
	install   *session.Install // nil: see fault
	fault     error
}

// pinnable reports whether sessions pin the record. They also pin one whose rules
// only a later release knows.
func (p *published) pinnable() bool {
	var unknown *session.UnknownRulesError
	return p.install != nil || errors.As(p.fault, &unknown)
}

// recordJSON is a published record as JSON.
type recordJSON struct {
	Seq   uint64     `json:"seq"`
	Time  int64      `json:"time"` // Unix ms
	Hash  codec.Hash `json:"hash"`
	Tools int        `json:"tools"`
	Rules int        `json:"rules"`
	Fault string     `json:"fault,omitempty"` // why it can't be read
}

func (p *published) json() recordJSON {
	out := recordJSON{Seq: p.seq, Time: p.at.UnixMilli(), Hash: p.hash}
	if p.install != nil {
		out.Tools, out.Rules = p.install.Registry.Len(), p.install.Rules
	}
	if p.fault != nil {
		out.Fault = oneLine(p.fault)
	}
	return out
}

// recordOf decodes an install record.
func recordOf(e session.Event) published {
	p := published{seq: e.Seq, at: time.UnixMilli(e.Time).UTC()}
	if canonical, err := codec.Canonicalize(e.Payload); err == nil {
		p.canonical, p.hash = canonical, codec.Sum(canonical)
	}
	p.install, p.fault = session.ParseInstall(e.Payload)
	return p
}

// records yields all records, the newest first.
func records(ctx context.Context, b *bus.Bus) iter.Seq2[published, error] {
	return func(yield func(published, error) bool) {
		for before := uint64(math.MaxUint64); ; {
			e, found, err := b.InstallBefore(ctx, before)
			if err != nil {
				yield(published{}, err)
				return
			}
			if !found || e.Seq >= before || !yield(recordOf(e), nil) { // not below before: the oldest record again
				return
			}
			before = e.Seq
		}
	}
}

// pinned returns the record that a session would pin if it opened now.
func pinned(ctx context.Context, b *bus.Bus) (p published, found bool, err error) {
	for p, err := range records(ctx, b) {
		if err != nil || p.pinnable() {
			return p, err == nil, err
		}
	}
	return published{}, false, nil
}

// row returns the record's row in a list.
func (p *published) row(note string) []string {
	tools, profiles, rules, hash := "-", "-", "-", "-"
	if p.canonical != nil {
		hash = p.hash.String()
	}
	var unknown *session.UnknownRulesError
	switch {
	case p.install != nil:
		tools, profiles = fmt.Sprint(p.install.Registry.Len()), fmt.Sprint(len(p.install.Registry.Profiles()))
		rules = fmt.Sprint(p.install.Rules)
	case errors.As(p.fault, &unknown):
		rules = fmt.Sprint(unknown.Rules)
	}
	row := []string{fmt.Sprint(p.seq), p.at.Format(time.RFC3339), hash, tools, profiles, rules}
	if note != "" {
		row = append(row, note)
	}
	return row
}
