package worker

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/journal"
)

// A claim's body is the same bytes whoever encodes it: they are compared.
func TestClaimBody(t *testing.T) {
	t.Parallel()
	for _, c := range []Claim{{By: NewULID(time.Now())}, {By: NewULID(time.Now()), Hash: codec.Sum(nil).String()}, {Hash: codec.Sum(nil).String(), Withdrawn: true}, {By: "a-b_9"}, {By: `a"b<`}, {By: "é"}, {Withdrawn: true}, {}} {
		want, err := json.Marshal(journal.ClaimBody(c))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := bodyOf(c); err != nil || string(got) != string(want) {
			t.Errorf("%+v: got %s, %v, want %s", c, got, err, want)
		}
	}
}
