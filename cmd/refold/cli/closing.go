package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/transcript"
)

// tallied counts what a run did, for the last line of `refold run`.
type tallied struct {
	turns      uint32
	calls      int
	began, end int64 // by the session's clock, Unix ms; 0: no notice received
}

// at notes the turn of an effect.
func (t *tallied) at(effect string) {
	var run, turn uint32
	if _, err := fmt.Sscanf(effect, "r%dt%d", &run, &turn); err == nil {
		t.turns = max(t.turns, turn)
	}
}

// last notes the latest turn of a run that has ended: no notice reports a failed
// turn that ended the run. It ignores an error, and a view with the next run's
// turn.
func (t *tallied) last(ctx context.Context, c *client.Client, sid string, run uint32) {
	ctx, cancel := context.WithTimeout(ctx, lookEach)
	defer cancel()
	v, err := c.View(ctx, sid)
	if err == nil && v.Turn != nil && isEffectOf(v.Turn.Effect, run) {
		t.at(v.Turn.Effect)
	}
}

// isEffectOf reports whether an effect belongs to a run.
func isEffectOf(effect string, run uint32) bool {
	return strings.HasPrefix(effect, fmt.Sprintf("r%dt", run))
}

// line formats the run's figures on one line, without unknown ones.
func (t *tallied) line(end client.RunEnd) string {
	var parts []string
	if t.turns > 0 {
		parts = append(parts, transcript.Count(int(t.turns), "turn"))
	}
	if t.began != 0 && t.turns > 0 { // else calls before this program subscribed are missing
		parts = append(parts, transcript.Count(t.calls, "call"))
	}
	if u := &end.Usage; u.InputTokens != 0 || u.OutputTokens != 0 {
		in := fmt.Sprintf("%d tokens in", u.InputTokens)
		if u.CachedTokens > 0 || u.CacheWriteTokens > 0 {
			in += fmt.Sprintf(" (%d%% from the cache)", u.CachedTokens*100/max(1, u.InputTokens))
		}
		parts = append(parts, in, fmt.Sprintf("%d out", u.OutputTokens))
	}
	if end.Cost > 0 {
		parts = append(parts, fmt.Sprintf("cost %d micro-units", end.Cost))
	}
	if t.began != 0 && t.end >= t.began {
		parts = append(parts, fmt.Sprintf("%.1f s", (time.Duration(t.end-t.began)*time.Millisecond).Seconds()))
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("run %d: %s", end.Run, strings.Join(parts, ", "))
}
