package client

// When a follower requests the view, which costs a session-actor a read of the log.

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refold/refold/actors/session"
)

func TestFollowerRequestsTheViewOnlyWhenNoticesMayBeMissing(t *testing.T) {
	t.Parallel()
	said := func(n uint64, typ string, data any) received {
		text, err := json.Marshal(data)
		if err != nil {
			t.Fatal(err)
		}
		return received{notice: &Notice{N: n, Type: typ, Session: "s1", Seq: 6 + n, Data: text}}
	}
	started := said(1, session.NoticeRunStarted, session.RunPlaced{Run: 1, Seq: 7})
	planned := func(n uint64) received { return said(n, session.NoticeCallsPlanned, session.CallsPlanned{}) }
	ended := func(n uint64) received {
		return said(n, session.NoticeRunFinished, session.RunFinished{Run: 1, Lifecycle: session.Completed})
	}
	running := session.View{Shown: session.Shown{Seq: 7}, Run: &session.ViewRun{ShownRun: session.ShownRun{Number: 1, Seq: 7}}}
	over := session.View{Shown: session.Shown{Seq: 9}, Last: &session.Ended{Number: 1, Lifecycle: session.Completed}}
	type at struct {
		after time.Duration
		received
	}
	for name, c := range map[string]struct {
		heard []at // the last one ends the run
		view  session.View
		fault error // of the first view
		want  int   // views
		took  time.Duration
	}{
		"nothing is missing":        {heard: []at{{0, started}, {10 * time.Second, planned(2)}, {4 * time.Second, ended(3)}}},
		"a notice is missing":       {heard: []at{{0, started}, {time.Second, planned(4)}, {10 * time.Second, ended(5)}}, view: running, want: 1},
		"the connection is lost":    {heard: []at{{0, started}, {time.Second, received{}}, {10 * time.Second, ended(2)}}, view: running, want: 1},
		"the view can't be had":     {heard: []at{{0, started}, {time.Second, received{}}, {10 * time.Second, ended(2)}}, view: running, fault: errors.New("nobody answers"), want: 2},
		"no notice places the run":  {heard: []at{{10 * time.Second, ended(1)}}, view: running, want: 1},
		"the end is missing":        {heard: []at{{0, started}, {time.Second, received{}}}, view: over, want: 2, took: 31 * time.Second},
		"nothing is heard any more": {heard: []at{{0, started}}, view: over, want: 2, took: 60 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				views := 0
				f := &Follower{sid: "s1", inbox: newInbox(), numbers: numbers{}, view: func(context.Context, string) (session.View, error) {
					if views++; views == 1 && c.fault != nil {
						return session.View{}, c.fault
					}
					return c.view, nil
				}}
				go func() {
					for _, h := range c.heard {
						<-time.After(h.after)
						f.inbox.put(h.received)
					}
				}()
				begun := time.Now()
				end, err := f.End(t.Context(), 7, "", Watch{})
				if err != nil || end.Run != 1 || end.Lifecycle != session.Completed {
					t.Errorf("the end is %+v (%v)", end, err)
				}
				if took := time.Since(begun).Round(time.Second); c.took != 0 && took != c.took {
					t.Errorf("it took %v, want %v", took, c.took)
				}
				if views != c.want {
					t.Errorf("%d views were requested, want %d", views, c.want)
				}
			})
		})
	}
}
