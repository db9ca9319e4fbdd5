package engine

// What a world in memory tells of its own damage.

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/natsio"
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
		return fmt.Errorf("read event %d: %w", seq, natsio.ErrNotFound)
	})
	return e, err
}

func (m *memory) StoredOutputs(ctx context.Context, sid string) (w journal.StoredOutputs, err error) {
	err = m.do(ctx, call{op: "StoredOutputs", sid: sid}, func() error {
		for _, name := range slices.Sorted(maps.Keys(m.effects)) {
			if effect, ours := strings.CutPrefix(name, sid+" "); ours && effect[0] != 'w' { // a wake is no message of the effects' stream
				w.Effects = append(w.Effects, journal.StoredEffect{Name: subjects.EffectName{Session: sid, Effect: effect}, Payload: m.effects[name]})
			}
		}
		if all := m.notices[sid]; len(all) > 0 && all[len(all)-1].n > 0 {
			return json.Unmarshal(all[len(all)-1].data, &w.Notice)
		}
		return nil
	})
	return w, err
}

func (m *memory) LastSummary(ctx context.Context, sid string) (last session.Summary, err error) {
	err = m.do(ctx, call{op: "LastSummary", sid: sid}, func() error {
		if all := m.notices[sid]; len(all) > 0 {
			n := journal.Notice{Payload: all[len(all)-1].data}
			last, _ = n.Summary()
		}
		return nil
	})
	return last, err
}
