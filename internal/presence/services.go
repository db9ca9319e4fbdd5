package presence

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
)

// Errors of Request that callers distinguish with errors.Is.
var (
	// ErrNobodyServes: the subject has no subscriber, and nobody got the request.
	ErrNobodyServes = errors.New("nobody listens on that subject, the request reached nobody")
	// ErrAnswerLost: the connection was lost before the answer arrived. The request
	// may have arrived.
	ErrAnswerLost = errors.New("the connection was lost while the answer was awaited")

	errConnectionLost = errors.New("the connection was lost meanwhile")
)

// FoundService is one instance of any micro service of the account.
type FoundService struct {
	Name, ID, Version, Description string
	Endpoints                      []FoundEndpoint
}

// FoundEndpoint is a subject that a FoundService answers. Without a QueueGroup every
// instance gets each request, or the service did not report its group.
type FoundEndpoint = micro.EndpointInfo

// Services finds all micro services of the account, of any owner. It returns the
// instances that answer, by name and ID, after 300 ms without a further answer. One
// that is too busy to answer is missing. None at all is no error, but a lost
// connection is: whoever did not answer then may well be there.
func (p *Presence) Services(ctx context.Context) (all []FoundService, err error) {
	before := p.conn.Incarnation()
	infos, err := p.serviceInfos(ctx, "")
	if err == nil {
		err = p.conn.Flush(ctx)
	}
	if err == nil && p.conn.Incarnation() != before {
		err = errConnectionLost
	}
	if err != nil {
		return nil, fmt.Errorf("ask which services there are: %w", err)
	}
	for _, info := range infos {
		all = append(all, FoundService{Name: info.Name, ID: info.ID, Version: info.Version, Description: info.Description, Endpoints: info.Endpoints})
	}
	slices.SortFunc(all, func(a, b FoundService) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	return all, nil
}

// ServiceRequest is a request to an endpoint of a service.
type ServiceRequest struct {
	Subject string
	Header  map[string]string
	Data    []byte
	// Patient: the request survives a reconnect. Else a lost connection ends it with
	// ErrAnswerLost.
	Patient bool
}

// ServiceReply is the answer to a ServiceRequest. A service that failed sets
// ErrorCode or Error; Data may be set too.
type ServiceReply struct {
	Data             []byte
	ErrorCode, Error string
}

// Request sends a request to an endpoint and waits for the answer until ctx ends.
// After ErrNobodyServes, a *PermissionError or a *MaxPayloadError the request reached
// nobody; after any other error it may have arrived.
func (p *Presence) Request(ctx context.Context, r ServiceRequest) (ServiceReply, error) {
	watched, stop := p.conn.Watch(ctx, r.Subject, r.Patient)
	defer stop()
	msg := nats.NewMsg(r.Subject)
	msg.Data = r.Data
	for key, value := range r.Header {
		msg.Header.Set(key, value)
	}
	p.conn.Stamp(msg.Header)
	answer, err := p.conn.NC.RequestMsgWithContext(watched, msg)
	err = natsio.Cause(watched, err)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return ServiceReply{}, fmt.Errorf("request to %s: %w", r.Subject, ErrNobodyServes)
	case errors.Is(err, natsio.ErrReconnected):
		return ServiceReply{}, fmt.Errorf("request to %s: %w", r.Subject, ErrAnswerLost)
	case errors.Is(err, nats.ErrMaxPayload):
		return ServiceReply{}, p.conn.PayloadError(err, r.Subject, len(r.Data))
	case err != nil:
		return ServiceReply{}, fmt.Errorf("request to %s: %w", r.Subject, natsio.Typed(err))
	}
	return ServiceReply{
		Data: answer.Data, ErrorCode: answer.Header.Get(subjects.HeaderServiceErrorCode), Error: answer.Header.Get(subjects.HeaderServiceError),
	}, nil
}
