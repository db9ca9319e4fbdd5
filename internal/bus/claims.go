package bus

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/refold/refold/subjects"
)

// claimBytesMax bounds a claim's body, which names an instance.
const claimBytesMax = 1 << 10

// ClaimBody is what a claim says: who may start the effect, or that nobody may.
type ClaimBody struct {
	By        string `json:"by,omitempty"` // the instance
	Withdrawn bool   `json:"withdrawn,omitempty"`
}

// ClaimedBy returns the body with which an instance claims.
func ClaimedBy(instance string) ([]byte, error) {
	if err := subjects.ValidInstance(instance); err != nil {
		return nil, err
	}
	return json.Marshal(ClaimBody{By: instance})
}

// withdrawn is the body that withdraws.
const withdrawn = `{"withdrawn":true}`

// ParseClaimBody reads the body of a claim. One that names neither an instance
// nor a withdrawal is an error.
func ParseClaimBody(body []byte) (ClaimBody, error) {
	var c ClaimBody
	if err := json.Unmarshal(body, &c); err != nil {
		return ClaimBody{}, fmt.Errorf("claim %q: %w", body, err)
	}
	if (c.By == "") == !c.Withdrawn {
		return ClaimBody{}, fmt.Errorf("claim %q: want by or withdrawn", body)
	}
	return c, nil
}

// Claim stores a claim of an effect. The first that is stored stands for good: won tells whether it says what body says (it may
// have been stored by an earlier, unanswered call), and holder is its body.
// When ctx ends before that is known the error wraps ErrUnknownOutcome, and
// nothing may be started; claiming again is safe.
func (b *Bus) Claim(ctx context.Context, name subjects.ClaimName, body []byte) (won bool, holder []byte, err error) {
	c, err := b.BeginClaim(ctx, name, body)
	if err != nil {
		return false, nil, err
	}
	return c.Wait()
}

// Claiming is a claim that is on its way.
type Claiming struct {
	to    *committer
	of    *commitment
	write *write
}

// BeginClaim is Claim without the waiting for its answer, for which Wait is to be
// called. It waits only where too much is on its way already.
func (b *Bus) BeginClaim(ctx context.Context, name subjects.ClaimName, body []byte) (Claiming, error) {
	if len(body) == 0 {
		return Claiming{}, errors.New("claim: an empty body names nobody")
	}
	w, err := b.claimWrite(name, body)
	if err != nil {
		return Claiming{}, err
	}
	of, err := b.effects.begin(ctx, []*write{w})
	if err != nil {
		return Claiming{}, fmt.Errorf("claim %s: %w", w.subject, err)
	}
	return Claiming{to: b.effects, of: of, write: w}, nil
}

// Wait returns what Claim would. It waits until the context of BeginClaim ends.
func (c Claiming) Wait() (won bool, holder []byte, err error) {
	if err = c.to.wait(c.of); err == nil {
		err = c.write.err
	}
	switch {
	case err != nil:
		return false, nil, fmt.Errorf("claim %s: %w", c.write.subject, err)
	case c.write.held == nil:
		return true, c.write.data, nil
	}
	return bytes.Equal(c.write.held, c.write.data), c.write.held, nil
}

func (b *Bus) claimWrite(name subjects.ClaimName, body []byte) (*write, error) {
	subject, err := b.names.Claim(name)
	if err != nil {
		return nil, err
	}
	w := &write{subject: subject, data: body, fenced: true}
	return w, b.check(w, claimBytesMax)
}

// Withdraw stores the first claim of an effect as withdrawn: won, and no
// bridge starts it. Else holder is the claim of the bridge that did.
func (b *Bus) Withdraw(ctx context.Context, name subjects.EffectName) (won bool, holder []byte, err error) {
	return b.Claim(ctx, subjects.ClaimName{EffectName: name, N: 1}, []byte(withdrawn))
}
