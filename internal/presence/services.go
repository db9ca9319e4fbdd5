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

// Errors of Request that callers tell apart with errors.Is.
var (
	// ErrNobodyServes: nobody listens on the subject, and nobody got the request.
	ErrNobodyServes = errors.New("nobody listens on that subject, the request reached nobody")
	// ErrAnswerLost: the connection was lost while the answer was awaited. The
	// request may have arrived.
	ErrAnswerLost = errors.New("the connection was lost while the answer was awaited")
)

// FoundService is one instance of any micro service of the account, as it tells
// of itself.
type FoundService struct {
	Name, ID, Version, Description string
	Endpoints                      []FoundEndpoint
}

// FoundEndpoint is a subject that a FoundService answers. Without a QueueGroup each
// instance gets each request, or the instance does not tell.
type FoundEndpoint = micro.EndpointInfo

// Services asks all micro services of the account what they are, whosever they
// are, and returns the instances that answer, by name and ID, when nothing has
// come for 300 ms. One that is too busy to answer is not among them. None at all
// is no error.
func (p *Presence) Services(ctx context.Context) (all []FoundService, err error) {
	infos, err := p.whoIsThere(ctx, "")
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
	// Patient: the answer is awaited also when the connection was lost and made
	// again meanwhile. Else that ends the request, with ErrAnswerLost.
	Patient bool
}

// ServiceReply is the answer to a ServiceRequest. One that has ErrorCode or
// Error is a service's way to say that it failed; it may have Data too.
type ServiceReply struct {
	Data             []byte
	ErrorCode, Error string
}

// Request asks an endpoint, and waits for its answer until ctx ends. An error
// that is an ErrNobodyServes, a *PermissionError or a *MaxPayloadError means that
// the request reached nobody; after any other it may have arrived.
func (p *Presence) Request(ctx context.Context, r ServiceRequest) (ServiceReply, error) {
	watched, stop := p.conn.Watch(ctx, r.Subject, r.Patient)
	defer stop()
	msg := nats.NewMsg(r.Subject)
	msg.Data = r.Data
	for key, value := range r.Header {
		msg.Header.Set(key, value)
	}
	answer, err := p.conn.NC.RequestMsgWithContext(watched, msg)
	err = natsio.Cause(watched, err)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return ServiceReply{}, fmt.Errorf("request to %s: %w", r.Subject, ErrNobodyServes)
	case errors.Is(err, natsio.ErrReconnected):
		return ServiceReply{}, fmt.Errorf("request to %s: %w", r.Subject, ErrAnswerLost)
	case errors.Is(err, nats.ErrMaxPayload):
		return ServiceReply{}, &natsio.MaxPayloadError{Subject: r.Subject, Bytes: len(r.Data), Limit: int(p.conn.NC.MaxPayload())}
	case err != nil:
		return ServiceReply{}, fmt.Errorf("request to %s: %w", r.Subject, natsio.Typed(err))
	}
	return ServiceReply{
		Data: answer.Data, ErrorCode: answer.Header.Get(subjects.HeaderServiceErrorCode), Error: answer.Header.Get(subjects.HeaderServiceError),
	}, nil
}
