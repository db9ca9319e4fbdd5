package host

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/refold/refold/actors/session"
)

// Stop is what the snapshots' bucket holds about a quarantined session.
type Stop struct {
	Seq    uint64 `json:"seq"` // of the first event that is not done
	Reason string `json:"reason"`
}

// stopped reports whether a session is quarantined from seq on, or before it.
func (h *Host) stopped(ctx context.Context, sid string, seq uint64) (bool, error) {
	body, found, err := h.world.GetQuarantine(ctx, sid)
	if err != nil || !found {
		return false, err
	}
	var stop Stop
	if err := json.Unmarshal(body, &stop); err != nil {
		return false, fmt.Errorf("quarantine of %s: %w", sid, err)
	}
	return stop.Seq <= seq, nil
}

// quarantine stops one session, and never its lane: from d on its events count
// as stored. They stay in the log; nothing of them is lost.
func (l *laneActor) quarantine(ctx context.Context, d arrival, cause error) error {
	sid, seq := d.event.Session, d.event.Seq
	l.log.Error("session quarantined", "session", sid, "seq", seq, "error", cause)
	body, err := json.Marshal(Stop{Seq: seq, Reason: cause.Error()})
	if err != nil {
		return err
	}
	if err := l.host.world.PutQuarantine(ctx, sid, body); err != nil {
		return err
	}
	notice := session.Notice{
		Type: session.NoticeSessionQuarantined, Seq: seq, At: time.Now().UnixMilli(), Session: sid,
		Data: session.SessionQuarantined{Reason: cause.Error()},
	}
	if err := l.host.world.Notify(ctx, sid, 0, notice.JSON()); err != nil {
		return err
	}
	l.sessions[sid] = &actor{stopped: true, proven: true}
	known := false
	for i := range l.pending {
		o := &l.pending[i]
		if o.arrival.event.Session == sid && o.arrival.event.Seq >= seq {
			known = known || o.arrival.event.Seq == seq
			*o = outputs{arrival: o.arrival}
		}
	}
	if !known {
		l.pending = append(l.pending, outputs{arrival: d})
	}
	return nil
}
