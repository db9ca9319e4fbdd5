package endpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/secrets"
)

// Config names a server. BaseURL is required.
type Config struct {
	BaseURL string
	Key     string        // empty: none is sent
	Idle    time.Duration // how long a stream may be silent; 0: DefaultIdle

	// FirstByte is how long a server may take to begin an answer. 0: as Idle;
	// negative: no limit, for an answer that is requested in one piece.
	FirstByte time.Duration

	Client *http.Client                                     // nil: a new one
	Wait   func(ctx context.Context, d time.Duration) error // waits before a retry; nil: executor.Wait
}

// Validate reports every problem of the config. The error does not contain the key.
func (c Config) Validate() error {
	var problems []error
	switch u, err := url.Parse(c.BaseURL); {
	case err != nil:
		problems = append(problems, errors.New("base URL: is no URL: give it as https://host/v1"))
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		problems = append(problems, errors.New("base URL: give it as https://host/v1"))
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		problems = append(problems, errors.New("base URL: user, query and fragment are not sent: leave them out; the key has its own option"))
	}
	for _, r := range c.Key {
		if r <= ' ' || r >= 0x7f {
			problems = append(problems, errors.New("key: has a character that no key has: was it copied with its line end?"))
			break
		}
	}
	if c.Idle < 0 {
		problems = append(problems, errors.New("idle: a time such as 3m, or none"))
	}
	return errors.Join(problems...)
}

// Endpoint is one server of a provider. It is safe for concurrent use.
type Endpoint struct {
	base     string
	host     string            // for people
	key      string            // removed from texts
	redactor *secrets.Redactor // of the key
	client   *http.Client
	log      *slog.Logger
	wait     func(ctx context.Context, d time.Duration) error
	Refused  Refused // by the server; clients add what they leave out from then on
}

// New returns the endpoint of a config, or the config's problems. It does not
// connect.
func New(c Config, log *slog.Logger) (*Endpoint, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	u, err := url.Parse(c.BaseURL)
	if err != nil {
		return nil, fmt.Errorf("base URL: %w", err)
	}
	e := &Endpoint{base: c.BaseURL, host: u.Host, key: c.Key, redactor: secrets.NewRedactor(c.Key), log: log, wait: c.Wait}
	if e.wait == nil {
		e.wait = executor.Wait
	}
	var client http.Client
	if c.Client != nil {
		client = *c.Client
	}
	idle := cmp.Or(c.Idle, DefaultIdle)
	client.Transport = &transport{next: client.Transport, firstByte: max(0, cmp.Or(c.FirstByte, idle)), idle: idle}
	// A redirect would send a library's own key header to another server.
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	e.client = &client
	return e, nil
}

// BaseURL returns the address of requests.
func (e *Endpoint) BaseURL() string { return e.base }

// Host returns the server's name, for people.
func (e *Endpoint) Host() string { return e.host }

// Client returns the HTTP client for requests. It returns an error for every
// response that is not an answer; Failed knows these errors.
func (e *Endpoint) Client() *http.Client { return e.client }
