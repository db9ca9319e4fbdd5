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

// discoverQuiet is how long after the last answer no other one is expected.
const discoverQuiet = 300 * time.Millisecond

// Running is a daemon that answered when it was asked who is there.
type Running struct {
	ID string // of its registration: another one after each start
	Service
}

// Discover asks the daemons of a kind, as Register announced them, who is
// there, and returns those that answer, by ID, when nothing has come for 300
// ms. A daemon that is too busy to answer is not among them: ask again to find it.
// None at all is no error.
func (p *Presence) Discover(ctx context.Context, kind string) (all []Running, err error) {
	infos, err := p.whoIsThere(ctx, p.names.ServiceName(kind))
	if err != nil {
		return nil, fmt.Errorf("ask who is a %s: %w", kind, err)
	}
	for _, info := range infos {
		all = append(all, Running{info.ID, Service{Kind: kind, Version: info.Version, Description: info.Description, Metadata: info.Metadata}})
	}
	slices.SortFunc(all, func(a, b Running) int { return cmp.Compare(a.ID, b.ID) })
	return all, nil
}

// whoIsThere asks the services of a name, or all, who they are.
func (p *Presence) whoIsThere(ctx context.Context, name string) (all []micro.Info, err error) {
	subject, err := micro.ControlSubject(micro.InfoVerb, name, "")
	if err != nil {
		return nil, err
	}
	err = p.conn.Repeat(ctx, subject, func(ctx context.Context) error {
		all = nil
		return p.everyAnswer(ctx, subject, func(answer []byte) {
			var info micro.Info
			if json.Unmarshal(answer, &info) == nil && info.ID != "" { // else somebody else answers on that subject
				all = append(all, info)
			}
		})
	})
	return all, err
}

// Stated returns what the daemons of a kind say in their stats, by the ID of
// their registration, as Discover has it. One that is too busy is not among
// them.
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
		for _, e := range stats.Endpoints { // all say the same
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

// everyAnswer asks on a subject, and gives every answer to take.
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
