package presence

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
)

// discoverQuiet is how long after an answer a further one is awaited.
const discoverQuiet = 300 * time.Millisecond

// Running is a daemon that answered Discover.
type Running struct {
	ID string // of its registration: another one after each start
	Service
}

// Discover finds the daemons of a kind that Register announced. It returns those
// that answer, by ID, after 300 ms without a further answer. A daemon that is too
// busy to answer is missing until a later call. None at all is no error.
func (p *Presence) Discover(ctx context.Context, kind string) (all []Running, err error) {
	infos, err := p.serviceInfos(ctx, p.names.ServiceName(kind))
	if err != nil {
		return nil, fmt.Errorf("ask who is a %s: %w", kind, err)
	}
	for _, info := range infos {
		if log := info.Metadata[metadataLog]; log != "" && p.conn.LogID() != "" && log != p.conn.LogID() {
			continue // of another system
		}
		all = append(all, Running{info.ID, Service{Kind: kind, Version: info.Version, Description: info.Description, Metadata: info.Metadata}})
	}
	slices.SortFunc(all, func(a, b Running) int { return cmp.Compare(a.ID, b.ID) })
	return all, nil
}

// serviceInfos requests the info of all services of a name; empty: of any name.
func (p *Presence) serviceInfos(ctx context.Context, name string) (all []micro.Info, err error) {
	subject, err := micro.ControlSubject(micro.InfoVerb, name, "")
	if err != nil {
		return nil, err
	}
	err = p.conn.Repeat(ctx, subject, func(ctx context.Context) error {
		all = nil
		return p.everyAnswer(ctx, subject, func(answer []byte) {
			var info micro.Info
			if json.Unmarshal(answer, &info) == nil && info.ID != "" { // else it is no micro service
				all = append(all, info)
			}
		})
	})
	return all, err
}

// Stated returns the stats of the daemons of a kind, by the ID of their
// registration, as in Discover. A daemon that is too busy to answer is missing.
func (p *Presence) Stated(ctx context.Context, kind string) (map[string]json.RawMessage, error) {
	subject, err := micro.ControlSubject(micro.StatsVerb, p.names.ServiceName(kind), "")
	if err != nil {
		return nil, err
	}
	all := map[string]json.RawMessage{}
	err = p.everyAnswer(ctx, subject, func(answer []byte) {
		var stats micro.Stats
		if json.Unmarshal(answer, &stats) != nil || stats.ID == "" {
			return
		}
		for _, e := range stats.Endpoints { // all have the same data
			if len(e.Data) > 0 {
				all[stats.ID] = e.Data
			}
		}
	})
	if err != nil {
		return nil, fmt.Errorf("ask each %s for its stats: %w", kind, err)
	}
	return all, nil
}

// everyAnswer sends a request on a subject and calls take for every answer.
func (p *Presence) everyAnswer(ctx context.Context, subject string, take func(answer []byte)) error {
	inbox := p.conn.NC.NewInbox()
	sub, err := p.conn.NC.SubscribeSync(inbox)
	if err != nil {
		return err
	}
	defer sub.Unsubscribe()
	if err := p.conn.NC.PublishRequest(subject, inbox, nil); err != nil {
		return err
	}
	for {
		quiet, cancel := context.WithTimeout(ctx, discoverQuiet)
		answer, err := sub.NextMsgWithContext(quiet)
		cancel()
		switch {
		case errors.Is(err, nats.ErrNoResponders), err == nil && answer.Header.Get(subjects.HeaderStatus) == natsio.StatusNoResponders:
			return nil
		case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
			return nil
		case err != nil:
			return err
		}
		take(answer.Data)
	}
}
