package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
)

// Pace is the speed of folding.
type Pace struct {
	Sessions, Events int
	FoldPerS         float64 // events, from memory, on one core
	ReplayPerS       float64 // events, from the log, compared with what is stored
	BytesEach        float64 // of an event's payload
}

// foldFor is for how long histories are folded repeatedly.
const foldFor = time.Second

// Fold makes Refold carry out o.Runs runs. Then it folds their events from memory,
// and has a client replay the log. It fails if the replay is not identical.
func Fold(ctx context.Context, o Options) (pace Pace, err error) {
	err = onStage(ctx, o, func(ctx context.Context, g *stage) error {
		if err := g.runAll(ctx, 100, o.Runs); err != nil {
			return err
		}
		record, err := session.ParseInstall([]byte(install))
		if err != nil {
			return err
		}
		histories := map[string][]session.Event{}
		bytes := 0
		_, err = g.bus.ReadAll(ctx, 1, func(e session.Event) error {
			if e.Session != "" {
				histories[e.Session] = append(histories[e.Session], e)
				pace.Events++
				bytes += len(e.Payload)
			}
			return nil
		})
		if err != nil {
			return err
		}
		pace.Sessions, pace.BytesEach = len(histories), float64(bytes)/float64(max(pace.Events, 1))
		folded, begun := 0, time.Now()
		for time.Since(begun) < foldFor && ctx.Err() == nil {
			for sid, history := range histories {
				state := session.Fold(record, sid, slices.Values(history))
				folded += int(state.Count)
			}
		}
		pace.FoldPerS = float64(folded) / time.Since(begun).Seconds()
		pace.ReplayPerS, err = g.replay(ctx, pace.Events)
		return err
	})
	return pace, err
}

// replay makes a client fold the whole log, and returns the events a second.
func (g *stage) replay(ctx context.Context, events int) (float64, error) {
	c, err := client.Connect(ctx, client.Options{InProcess: g.servers.of(0)})
	if err != nil {
		return 0, err
	}
	defer c.Close()
	var differ error
	begun, folded := time.Now(), 0
	_, err = c.Verify(ctx, client.VerifyOptions{Each: func(r *client.Replayed) error {
		folded += int(r.Events)
		if !r.Identical() && differ == nil {
			differ = fmt.Errorf("the replay of %s differs: %v", r.Session, r.Differences)
		}
		return nil
	}})
	took := time.Since(begun)
	if folded != events && differ == nil {
		differ = fmt.Errorf("the replay folded %d events, and the log has %d", folded, events)
	}
	return float64(folded) / took.Seconds(), errors.Join(err, differ)
}
