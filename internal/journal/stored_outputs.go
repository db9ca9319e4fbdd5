package journal

import (
	"context"
	"encoding/json"
	"fmt"
)

// StoredOutputs is what is stored of a session that its events led to, besides its
// snapshot.
type StoredOutputs struct {
	Effects []StoredEffect // as ListEffects returns them
	Notice  LastSaid
}

// LastSaid is the notice of a session that was stored last. It is zero if none
// is kept, or if the last one is none that a fold says.
type LastSaid struct {
	N   uint64 `json:"n"`
	Seq uint64 `json:"seq"` // of the event that it is about
	At  int64  `json:"at"`  // the session's clock at that event
}

// StoredOutputs reads what else than events is stored of a session, from the leaders:
// the events that it comes from are in the log when it returns.
func (j *Journal) StoredOutputs(ctx context.Context, sid string) (w StoredOutputs, err error) {
	if w.Effects, err = j.ListEffects(ctx, sid); err != nil {
		return w, err
	}
	subject, err := j.names.Out(sid)
	if err != nil {
		return w, err
	}
	m, err := j.lastOn(ctx, j.names.NoticesStream(), subject)
	if err != nil {
		return w, fmt.Errorf("read the last notice of %s: %w", sid, err)
	}
	var said LastSaid
	if json.Unmarshal(m.data, &said) == nil && said.N > 0 {
		w.Notice = said // what somebody else wrote says nothing
	}
	return w, nil
}
