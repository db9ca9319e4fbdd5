package host

// What a world in memory tells of its own damage.

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus"
	"github.com/refold/refold/subjects"
)

func (m *memory) LogMissing(ctx context.Context) (missing uint64, err error) {
	err = m.do(ctx, call{op: "LogMissing"}, func() error {
		if n := len(m.log); n > 0 {
			missing = m.log[n-1].Seq - uint64(n)
		}
		return nil
	})
	return missing, err
}

func (m *memory) EventAt(ctx context.Context, seq uint64) (e session.Event, err error) {
	err = m.do(ctx, call{op: "EventAt"}, func() error {
		for _, e = range m.log {
			if e.Seq == seq {
				return nil
			}
		}
		return fmt.Errorf("read event %d: %w", seq, bus.ErrNotFound)
	})
	return e, err
}

// LaneHeads reads as of one lane.
func (m *memory) LaneHeads(ctx context.Context, _, _ int, since time.Time) iter.Seq2[bus.Head, error] {
	return func(yield func(bus.Head, error) bool) {
		var all []session.Event
		err := m.do(ctx, call{op: "LaneHeads"}, func() error {
			all = slices.Clone(m.log)
			return nil
		})
		for _, e := range all {
			if e.Session != "" && e.Time >= since.UnixMilli() && !yield(bus.Head{Session: e.Session, Seq: e.Seq}, nil) {
				return
			}
		}
		if err != nil {
			yield(bus.Head{}, err)
		}
	}
}

func (m *memory) Witness(ctx context.Context, sid string) (w bus.Witness, err error) {
	err = m.do(ctx, call{op: "Witness", sid: sid}, func() error {
		for _, name := range slices.Sorted(maps.Keys(m.effects)) {
			if effect, ours := strings.CutPrefix(name, sid+" "); ours {
				w.Effects = append(w.Effects, bus.StoredEffect{Name: subjects.EffectName{Session: sid, Effect: effect}, Payload: m.effects[name]})
			}
		}
		if all := m.notices[sid]; len(all) > 0 {
			return json.Unmarshal(all[len(all)-1].data, &w.Notice)
		}
		return nil
	})
	return w, err
}
