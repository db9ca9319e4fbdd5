package service

// Calls that were sent to an instance that dies, in virtual time.

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/presence"
)

// instanceOf is an instance of the service orders.
func instanceOf(id string, safe bool) presence.FoundService {
	s := offering("orders", "1", with(fmt.Sprintf(`"retry_safe": %v`, safe)))
	s.ID = id
	return s
}

// unanswered is an answer that does not come.
func unanswered(ctx context.Context, _ int) (presence.ServiceReply, error) {
	<-ctx.Done()
	return presence.ServiceReply{}, ctx.Err()
}

// TestCallEndsWhenItsInstancesAreGone: a call does not wait for the end of its run
// time if every instance that may have received it is gone.
func TestCallEndsWhenItsInstancesAreGone(t *testing.T) {
	t.Parallel()
	nobody := func(ctx context.Context, n int) (presence.ServiceReply, error) {
		if n == 1 {
			return unanswered(ctx, n)
		}
		return presence.ServiceReply{}, fmt.Errorf("x: %w", presence.ErrNobodyServes)
	}
	another := func(ctx context.Context, n int) (presence.ServiceReply, error) {
		if n == 1 {
			return unanswered(ctx, n)
		}
		return presence.ServiceReply{Data: []byte("done")}, nil
	}
	for _, c := range []struct {
		name         string
		answer       func(context.Context, int) (presence.ServiceReply, error)
		before       []string       // the instances when the call is sent
		later        map[int]string // those after so many seconds, in one text
		unsafe, safe string         // status, code
	}{
		{"all are gone", nobody, []string{"a"}, map[int]string{1: ""}, "outcome_unknown outcome_unknown", "failed service_missing"},
		{"two are gone, one after the other", nobody, []string{"a", "b"}, map[int]string{1: "a", 3: ""}, "outcome_unknown outcome_unknown", "failed service_missing"},
		{"another takes its place", another, []string{"a"}, map[int]string{1: "b"}, "outcome_unknown outcome_unknown", "succeeded "},
		{"it comes back as another", another, []string{"a"}, map[int]string{1: "", 15: "b"}, "outcome_unknown outcome_unknown", "succeeded "},
	} {
		for _, safe := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/retry_safe=%v", c.name, safe), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					w := &world{answer: c.answer}
					w.offer(all(c.before, safe)...)
					tools, _ := start(t, w)
					for seconds, ids := range c.later {
						time.AfterFunc(time.Duration(seconds)*time.Second, func() { w.offer(all(letters(ids), safe)...) })
					}
					began := time.Now()
					r := bridge.Rehearse(t.Context(), tools, callOf("orders.do", "{}", safe), bridge.Rehearsal{RunTime: 5 * time.Minute})
					want := c.unsafe
					if safe {
						want = c.safe
					}
					if got := r.Status + " " + r.Code; got != want {
						t.Errorf("got %q (%s), want %q", got, r.Detail, want)
					}
					if took := time.Since(began); took > patienceDefault+time.Second {
						t.Errorf("it took %v, want at most %v", took, patienceDefault)
					}
				})
			})
		}
	}
}

// TestCallWaitsForALiveInstance: a call goes on while an instance that may have it
// answers queries, even if that one started shortly before and another is gone.
func TestCallWaitsForALiveInstance(t *testing.T) {
	t.Parallel()
	for name, later := range map[string]map[time.Duration]string{
		"the other one dies":                         {time.Second: "b"},
		"it started shortly before, and was unknown": {0: "ab", time.Second: "b"},
		"its answers are late now and then":          {5 * time.Second: "a", 15 * time.Second: "ab", 25 * time.Second: "a", 35 * time.Second: "ab", 65 * time.Second: "b"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &world{answer: func(ctx context.Context, _ int) (presence.ServiceReply, error) {
					select {
					case <-ctx.Done():
						return presence.ServiceReply{}, ctx.Err()
					case <-time.After(2 * time.Minute):
						return presence.ServiceReply{Data: []byte("done")}, nil
					}
				}}
				first := []string{"a", "b"}
				if later[0] != "" {
					first = []string{"a"}
				}
				w.offer(all(first, false)...)
				tools, _ := start(t, w)
				for at, ids := range later {
					if at == 0 {
						w.offer(all(letters(ids), false)...)
						continue
					}
					time.AfterFunc(at, func() { w.offer(all(letters(ids), false)...) })
				}
				r := bridge.Rehearse(t.Context(), tools, callOf("orders.do", "{}", false), bridge.Rehearsal{RunTime: 5 * time.Minute})
				if r.Status != "succeeded" {
					t.Errorf("got %s %s: %s", r.Status, r.Code, r.Detail)
				}
			})
		})
	}
}

// TestStoppingBridgeEndsTheWaitForAService: what only waits for a service ends as
// soon as the bridge begins to stop.
func TestStoppingBridgeEndsTheWaitForAService(t *testing.T) {
	t.Parallel()
	for name, w := range map[string]*world{
		"nobody listens":  {answer: fails(presence.ErrNobodyServes), services: []presence.FoundService{instanceOf("a", true)}},
		"it is busy":      {answer: reply("503", "later", ""), services: []presence.FoundService{instanceOf("a", true)}},
		"nobody knows it": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				tools, _ := start(t, w)
				stopping, stop := context.WithCancel(t.Context())
				time.AfterFunc(time.Millisecond, stop)
				began := time.Now()
				r, err := tools.Execute(executor.WithStopping(t.Context(), stopping), callOf("orders.do", "{}", true))
				if !errors.Is(err, executor.ErrStopping) || r.Error == nil || time.Since(began) != time.Millisecond {
					t.Errorf("after %v: got %+v, %v", time.Since(began), r, err)
				}
			})
		})
	}
}

func letters(text string) (ids []string) {
	for _, r := range text {
		ids = append(ids, string(r))
	}
	return ids
}

func all(ids []string, safe bool) (services []presence.FoundService) {
	for _, id := range ids {
		services = append(services, instanceOf(id, safe))
	}
	return services
}
