package journal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/subjects"
)

// ClaimsMax bounds the claims of one effect. Each except the last is of a bridge that
// is gone, or of another effect that had the name before.
const ClaimsMax = 1024

// claimBytesMax bounds a claim's body, which names an instance.
const claimBytesMax = 1 << 10

// ClaimBody reserves an effect for one bridge, or forbids its start: the body on
// refold.fx.claim.<class>.<target>.<session>.<effect>[.<n>]. The first one that is
// stored counts.
//
// It names the instance that may start the effect, or withdraws the effect. A released
// one says that the instance has given the effect back in order, and so did not die of
// it. Hash is the SHA-256 of the effect's payload in hex. A claim without it, such as
// a withdrawal, holds for any payload under the effect's name.
//
//wire:rule {"oneOf": [{"required": ["by"]}, {"required": ["withdrawn"], "not": {"required": ["released"]}}]}
type ClaimBody struct {
	// The instance that starts the effect; a ULID per process start.
	By string `json:"by,omitempty" pattern:"^[A-Za-z0-9_-]{1,64}$"`
	// SHA-256 of the effect's payload, as it was delivered. Bridges and session-actors
	// always send it. A claim without it applies to any payload.
	Hash string `json:"hash,omitempty" pattern:"^[0-9a-f]{64}$"`
	// No bridge may start the effect.
	Withdrawn bool `json:"withdrawn,omitempty" lim:"=true"`
	// The instance has given the effect back in order: it did not die of it.
	Released bool `json:"released,omitempty" lim:"=true"`
}

// ClaimedBy returns the body with which an instance claims.
func ClaimedBy(instance string) ([]byte, error) {
	if err := subjects.ValidInstance(instance); err != nil {
		return nil, err
	}
	return json.Marshal(ClaimBody{By: instance})
}

// Concerns reports whether a claim is about the effect whose payload has the hash, in
// hex. A claim of another hash is of an effect that the server lost, and whose name
// this one has now. It is skipped, and the next claim decides.
func (c ClaimBody) Concerns(hash string) bool { return c.Hash == "" || c.Hash == hash }

// Withdrawn returns the body with which a session withdraws an effect.
func Withdrawn(w *session.Withdrawal) []byte {
	c := ClaimBody{Withdrawn: true}
	if !w.Hash.IsZero() {
		c.Hash = w.Hash.String()
	}
	body, err := json.Marshal(c)
	if err != nil {
		panic("journal: a claim does not encode: " + err.Error())
	}
	return body
}

// WithdrawsNext reports whether a session must withdraw at the next claim too,
// because the stored one is of another effect. A stored claim that can't be parsed
// counts as a bridge's.
func WithdrawsNext(w *session.Withdrawal, stored []byte) bool {
	c, err := ParseClaimBody(stored)
	return err == nil && !w.Hash.IsZero() && !c.Concerns(w.Hash.String())
}

// ParseClaimBody parses the body of a claim. It must have either an instance or a
// withdrawal.
func ParseClaimBody(body []byte) (ClaimBody, error) {
	var c ClaimBody
	if err := json.Unmarshal(body, &c); err != nil {
		return ClaimBody{}, fmt.Errorf("claim %q: %w", body, err)
	}
	if (c.By == "") == !c.Withdrawn || c.Released && c.By == "" {
		return ClaimBody{}, fmt.Errorf("claim %q: want by or withdrawn", body)
	}
	return c, nil
}

// Claim stores a claim of an effect, of which the first stored one counts. holder is
// the body of that claim, empty if the server can't read it. won reports whether it
// equals body, which an earlier call without an answer may have stored. If ctx ends
// first, the error wraps ErrUnknownOutcome and the caller must not start the effect;
// claiming again is safe.
func (j *Journal) Claim(ctx context.Context, name subjects.ClaimName, body []byte) (won bool, holder []byte, err error) {
	c, err := j.BeginClaim(ctx, name, body)
	if err != nil {
		return false, nil, err
	}
	return c.Wait()
}

// Claiming is a pending claim.
type Claiming struct {
	to    *committer
	of    *waiter
	write *write
}

// BeginClaim sends a claim; the caller must call Wait for the outcome. BeginClaim
// blocks only while the committer is full.
func (j *Journal) BeginClaim(ctx context.Context, name subjects.ClaimName, body []byte) (Claiming, error) {
	if len(body) == 0 {
		return Claiming{}, errors.New("claim: an empty body names no instance")
	}
	w, err := j.claimWrite(name, body)
	if err != nil {
		return Claiming{}, err
	}
	of, err := j.effects.begin(ctx, []*write{w})
	if err != nil {
		return Claiming{}, fmt.Errorf("claim %s: %w", w.subject, err)
	}
	return Claiming{to: j.effects, of: of, write: w}, nil
}

// foreignClaim replaces a claim of another system: it concerns no effect of this one, so
// the next claim decides.
var foreignClaim = []byte(`{"by":"-","hash":"-"}`)

// Wait returns the results of Claim. It waits until the context of BeginClaim ends.
func (c Claiming) Wait() (won bool, holder []byte, err error) {
	if err = c.to.wait(c.of); err == nil {
		err = c.write.err
	}
	var unreadable *UnreadableError
	switch {
	case errors.As(err, &unreadable):
		return false, nil, nil
	case err != nil:
		return false, nil, fmt.Errorf("claim %s: %w", c.write.subject, err)
	case c.write.existing == nil:
		return true, c.write.data, nil
	case c.write.foreign:
		return false, foreignClaim, nil
	}
	return bytes.Equal(c.write.existing, c.write.data), c.write.existing, nil
}

func (j *Journal) claimWrite(name subjects.ClaimName, body []byte) (*write, error) {
	subject, err := j.names.Claim(name)
	if err != nil {
		return nil, err
	}
	w := &write{subject: subject, data: body, fenced: true}
	return w, j.check(w, claimBytesMax)
}

// Holder returns the instance of the latest claim of an effect; found is false if
// there is no claim, or the effect was withdrawn or given back. Claims of other effects that had the
// name before don't count.
func (j *Journal) Holder(ctx context.Context, name subjects.EffectName) (instance string, found bool, err error) {
	subject, err := j.names.Effect(name)
	if err != nil {
		return "", false, err
	}
	effect, err := j.lastOn(ctx, j.names.EffectsStream(), subject)
	if err != nil {
		return "", false, fmt.Errorf("read %s: %w", subject, err)
	}
	if j.conn.IsForeign(effect.header) {
		effect.seq = 0
	}
	hash := codec.Sum(effect.data).String()
	for n := 1; n <= ClaimsMax; n++ {
		if subject, err = j.names.Claim(subjects.ClaimName{EffectName: name, N: n}); err != nil {
			return "", false, err
		}
		m, err := j.lastOn(ctx, j.names.EffectsStream(), subject)
		if err != nil {
			return "", false, fmt.Errorf("read the claim on %s: %w", subject, err)
		}
		if m.seq == 0 {
			break
		}
		c, err := ParseClaimBody(m.data)
		switch {
		case j.conn.IsForeign(m.header):
		case err == nil && effect.seq > 0 && !c.Concerns(hash):
		case err != nil || c.Withdrawn:
			return "", false, nil //nolint:nilerr // a body that does not parse names no instance
		case c.Released:
			instance = ""
		default:
			instance = c.By
		}
	}
	return instance, instance != "", nil
}
