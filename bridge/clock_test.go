package bridge

// Machines whose clocks are wrong.

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/worker"
	"github.com/refold/refold/subjects"
)

// logText keeps what is logged.
type logText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func TestClockOfTheMachineIsWrong(t *testing.T) {
	t.Parallel()
	for name, ahead := range map[string]time.Duration{"ahead": 11 * time.Minute, "behind": -11 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, ctx := newActor(t), t.Context()
			b := a.bridge(t, "skewed")
			right, logged := natsio.NewLocalClock(), new(logText)
			b.clock = natsio.NewClock(func() (time.Time, time.Duration) {
				shown, running := right()
				return shown.Add(ahead), running
			}, a.ServerTime, slog.New(slog.NewTextHandler(logged, nil)))
			b.worker = worker.New(b.wire, b.instance, b.by, b.clock.Now, b.options.Logger)
			tool := toolFunc(func(context.Context, executor.Call) (executor.Result, error) {
				return executor.Result{Output: "done"}, nil
			})
			if err := b.Tool("host", tool); err != nil {
				t.Fatal(err)
			}
			members, err := a.TrackMembers(ctx, subjects.KindBridge)
			if err != nil {
				t.Fatal(err)
			}
			run(t, b)
			a.ask(t, session.ClassTool, "host", "r1t1c0", callAsked("r1t1c0", false))
			late := callAsked("r1t1c1", false)
			late.StartBy = time.Now().Add(-time.Second).UnixMilli()
			a.ask(t, session.ClassTool, "host", "r1t1c1", late)
			if got, want := strings.Join(a.settled(t, 2), ", "), "r1t1c0 succeeded, r1t1c1 failed deadline_exceeded"; got != want && got != "r1t1c1 failed deadline_exceeded, r1t1c0 succeeded" {
				t.Errorf("settled: got %s, want %s", got, want)
			}
			if got := logged.String(); strings.Count(got, "clock_off") != 1 {
				t.Errorf("log: got %q, want one line clock_off", got)
			}
			var beat struct {
				AheadMS int64 `json:"clock_ahead_ms"`
			}
			for deadline := time.Now().Add(testPatience); beat.AheadMS == 0 && time.Now().Before(deadline); <-members.Heartbeats() {
				for _, m := range members.Known() {
					if err := json.Unmarshal(m.Body, &beat); err != nil {
						t.Fatal(err)
					}
				}
			}
			stats := b.Stats().ClockAheadMS
			for from, ms := range map[string]int64{"heartbeat": beat.AheadMS, "stats": *stats} {
				if off := time.Duration(ms)*time.Millisecond - ahead; off.Abs() > 30*time.Second {
					t.Errorf("%s: the clock is %d ms ahead, want about %v", from, ms, ahead)
				}
			}
		})
	}
}
