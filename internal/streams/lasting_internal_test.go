package streams

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// TestStreamsWithoutLeaderAreToldWhenThatLasts: a leader that is chosen in time is not
// missed; what else is wrong is told at once.
func TestStreamsWithoutLeaderAreToldWhenThatLasts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		without, missing := Finding{Stream: "A", Trouble: "stream A has " + noLeader}, Finding{Stream: "B", Missing: true}
		since := map[Finding]time.Time{}
		for i, step := range []struct {
			after       time.Duration
			found, want []Finding
		}{
			{0, []Finding{without, missing}, []Finding{missing}},
			{lostAfter - time.Second, []Finding{without}, nil},
			{time.Second, []Finding{without}, []Finding{without}},
			{time.Second, nil, nil},
			{time.Second, []Finding{without}, nil}, // again
		} {
			<-time.After(step.after)
			if got := lasting(step.found, since); !slices.Equal(got, step.want) {
				t.Errorf("step %d: got %q, want %q", i, got, step.want)
			}
		}
	})
}

func TestStreamIsLeaderless(t *testing.T) {
	t.Parallel()
	for want, of := range map[bool][]*jetstream.ClusterInfo{
		true:  {{Name: "c"}},
		false: {nil, {}, {Leader: "n1"}, {Name: "c", Leader: "n1"}},
	} {
		for _, c := range of {
			if got := isLeaderless(c); got != want {
				t.Errorf("%+v: got %t, want %t", c, got, want)
			}
		}
	}
}
