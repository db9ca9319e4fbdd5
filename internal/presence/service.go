package presence

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
)

// versionUnknown replaces a version that is not semantic.
const versionUnknown = "0.0.0"

// metadataLog is the key of the log's identity in the metadata of a registration.
const metadataLog = "log"

// Service is how a daemon shows in `nats micro ls`.
type Service struct {
	Kind        string // session-actor, bridge
	Version     string // semantic version; anything else is shown as 0.0.0 with the text in the metadata
	Description string
	Metadata    map[string]string
	// Stats, if given, returns what `nats micro stats` shows, as JSON, besides the
	// counts of each endpoint.
	Stats func() any
}

// ActorStats are the stats of a session-actor, beside what its heartbeat says.
type ActorStats struct {
	Lanes     []int  `json:"lanes"`          // that it runs, including those that it hands over
	Owned     []int  `json:"owned"`          // of these, those that it owns
	Takeovers uint64 `json:"takeovers"`      // times that it became the owner of a lane, since its start
	Events    uint64 `json:"events"`         // that it folded and whose outputs it stored, since its start
	Sessions  int64  `json:"sessions"`       // in memory
	Bytes     int64  `json:"sessions_bytes"` // memory that these take, about
}

// Endpoint is a subject that a service answers.
type Endpoint struct {
	Name    string
	Subject string
	// Everyone: every process gets each request; else one of them does.
	Everyone bool
	// Answer returns the answer; nil without an error sends none.
	Answer func(subject string, request []byte) ([]byte, error)
}

// Register announces this process as a micro service with these endpoints until
// stop is called. The server has the subscriptions when Register returns.
func (p *Presence) Register(ctx context.Context, s Service, endpoints ...Endpoint) (stop func() error, err error) {
	cfg := micro.Config{
		Name: p.names.ServiceName(s.Kind), Version: s.Version,
		Description: s.Description, Metadata: s.Metadata,
	}
	if s.Stats != nil {
		cfg.StatsHandler = func(*micro.Endpoint) any { return s.Stats() }
	}
	if id := p.conn.LogID(); id != "" {
		cfg.Metadata = maps.Clone(cfg.Metadata)
		if cfg.Metadata == nil {
			cfg.Metadata = map[string]string{}
		}
		cfg.Metadata[metadataLog] = id
	}
	service, err := micro.AddService(p.conn.NC, cfg)
	if errors.Is(err, micro.ErrConfigValidation) && cfg.Version != versionUnknown {
		// The version of a development build is not semantic.
		cfg.Version = versionUnknown
		metadata := cfg.Metadata
		cfg.Metadata = map[string]string{}
		maps.Copy(cfg.Metadata, metadata)
		cfg.Metadata["version"] = s.Version
		service, err = micro.AddService(p.conn.NC, cfg)
	}
	if err != nil {
		return nil, fmt.Errorf("register service %s: %w", cfg.Name, err)
	}
	for _, e := range endpoints {
		opts := []micro.EndpointOpt{micro.WithEndpointSubject(e.Subject)}
		if e.Everyone {
			opts = append(opts, micro.WithEndpointQueueGroupDisabled())
		}
		err := service.AddEndpoint(e.Name, micro.HandlerFunc(func(r micro.Request) { p.answer(e, r) }), opts...)
		if err != nil {
			service.Stop()
			return nil, fmt.Errorf("register endpoint %s of %s: %w", e.Name, cfg.Name, err)
		}
	}
	if err := p.conn.Flush(ctx); err != nil {
		service.Stop()
		return nil, fmt.Errorf("register service %s: %w", cfg.Name, err)
	}
	return service.Stop, nil
}

func (p *Presence) answer(e Endpoint, r micro.Request) {
	of := &nats.Msg{Subject: r.Subject(), Header: nats.Header(r.Headers())}
	if p.conn.Ignores(of) {
		return // a process of its own system answers
	}
	own := micro.WithHeaders(micro.Headers(p.conn.Stamp(nil)))
	data, err := e.Answer(r.Subject(), r.Data())
	switch {
	case err != nil:
		err = r.Error("500", err.Error(), nil, own)
	case data != nil:
		err = r.Respond(data, own)
	}
	if err != nil {
		p.conn.Log.Warn("answer_not_sent", "endpoint", e.Name, "error", err.Error())
	}
}
