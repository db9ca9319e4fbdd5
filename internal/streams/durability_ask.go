package streams

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold/internal/natsio"
)

const (
	// monitorTimeout is how long to wait for the first answer.
	monitorTimeout = 10 * time.Second
	// monitorBytesMax bounds an answer: real ones have 1 KiB.
	monitorBytesMax = 1 << 20
	headerBytesMax  = 64 << 10
	// nextTimeout is how long to wait for the next server of a cluster, and
	// soloTimeout the same where no server reported a cluster.
	nextTimeout = 3 * time.Second
	soloTimeout = 500 * time.Millisecond
)

// systemJSZ is the subject on which every server answers the system account.
const systemJSZ = "$SYS.REQ.SERVER.PING.JSZ"

// jsz is the needed part of the body of /jsz, which servers also send to the system
// account.
type jsz struct {
	ID       string `json:"server_id"`
	Disabled bool   `json:"disabled"`
	Config   struct {
		SyncAlways   bool          `json:"sync_always"`
		SyncInterval time.Duration `json:"sync_interval"` // nanoseconds
	} `json:"config"`
	Meta *struct {
		Size int `json:"cluster_size"`
	} `json:"meta_cluster"`

	name string
}

// monitored is a server in this process that answers without a network, such as
// *server.Server. The interface spares this package from linking the server.
type monitored interface {
	HandleJsz(w http.ResponseWriter, r *http.Request)
}

// findDurability asks how the servers sync and compares it with what the operator
// requires. No answer means unknown, and is no error.
func (s *Streams) findDurability(ctx context.Context, o natsio.Options) error {
	d := &durable{wanted: o.Durability}
	switch inProcess, ok := o.InProcess.(monitored); {
	case ok:
		d.sync = syncOf(askInProcess(ctx, inProcess))
	case o.InProcess != nil:
		d.sync.how = "a server in this process, which can't be asked"
	case o.SystemCreds != "":
		answers, err := s.askSystem(ctx, o.SystemCreds)
		d.sync = syncOf(answers, "system account", err)
	case len(o.Monitor) > 0:
		d.sync = syncOf(askMonitors(ctx, o.Monitor))
	default:
		d.sync.how = "nobody"
	}
	s.durable.Store(d)
	return d.contradiction(s.conn.Where)
}

// syncOf returns how the weakest server syncs. A server without JetStream or without
// an ID doesn't count. A missing answer makes the result unknown, unless another server
// syncs at intervals, which is the weakest already.
func syncOf(answers []jsz, how string, missing error) syncing {
	s := syncing{how: how}
	seen, size := map[string]bool{}, 0
	for _, a := range answers {
		if a.Disabled || a.ID == "" || seen[a.ID] {
			continue
		}
		seen[a.ID] = true
		if a.Meta != nil {
			size = max(size, a.Meta.Size)
		}
		switch {
		case a.Config.SyncAlways:
			if s.level == natsio.DurabilityUnknown {
				s.level = natsio.DurabilityAlways
			}
		case s.level != natsio.DurabilityInterval || a.Config.SyncInterval > s.every:
			s.level, s.every, s.weakest = natsio.DurabilityInterval, a.Config.SyncInterval, a.name
		}
	}
	if len(seen) == 1 {
		s.weakest = ""
	}
	if missing == nil && len(seen) < size {
		missing = errors.New("the other servers were not asked")
	}
	switch {
	case len(seen) > 1 || size > 1:
		s.how = fmt.Sprintf("%s, %d of %d servers", how, len(seen), max(size, len(seen)))
	case len(seen) == 0 && missing == nil:
		missing = errors.New("no server there has JetStream")
	}
	if missing != nil {
		s.how += ": " + oneLine(missing)
		if s.level == natsio.DurabilityAlways {
			s.level = natsio.DurabilityUnknown
		}
	}
	return s
}

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

func askInProcess(ctx context.Context, server monitored) ([]jsz, string, error) {
	const how = "the server in this process"
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "/jsz", http.NoBody)
	if err != nil {
		return nil, how, err
	}
	answer := page{header: http.Header{}}
	server.HandleJsz(&answer, r)
	one, err := readJSZ(answer.body.Bytes(), how)
	return []jsz{one}, how, err
}

// page is an http.ResponseWriter that keeps the body.
type page struct {
	header http.Header
	body   bytes.Buffer
}

func (p *page) Header() http.Header            { return p.header }
func (p *page) WriteHeader(int)                {}
func (p *page) Write(data []byte) (int, error) { return p.body.Write(data) }

func readJSZ(data []byte, name string) (jsz, error) {
	one := jsz{name: name}
	if err := json.Unmarshal(data, &one); err != nil {
		return jsz{}, fmt.Errorf("%s: the answer is not the /jsz of a NATS server: %w", name, err)
	}
	if one.ID == "" {
		return jsz{}, fmt.Errorf("%s: the answer is not the /jsz of a NATS server", name)
	}
	return one, nil
}

func askMonitors(ctx context.Context, urls []string) ([]jsz, string, error) {
	ctx, cancel := context.WithTimeout(ctx, monitorTimeout)
	defer cancel()
	answers, errs := make([]jsz, len(urls)), make([]error, len(urls))
	var asking sync.WaitGroup
	for i, at := range urls {
		asking.Go(func() { answers[i], errs[i] = askMonitor(ctx, at) })
	}
	asking.Wait()
	return answers, "monitoring", errors.Join(errs...)
}

func askMonitor(ctx context.Context, at string) (one jsz, err error) {
	u, err := url.Parse(at)
	if err != nil {
		return one, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.JoinPath("jsz").String(), http.NoBody)
	if err != nil {
		return one, err
	}
	client := http.Client{
		Transport: &http.Transport{DisableKeepAlives: true, MaxResponseHeaderBytes: headerBytesMax, Proxy: http.ProxyFromEnvironment},
		// A server's monitor never redirects.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	res, err := client.Do(r)
	if err != nil {
		return one, err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(io.LimitReader(res.Body, monitorBytesMax))
	if err != nil {
		return one, fmt.Errorf("%s: %w", u.Redacted(), err)
	}
	if res.StatusCode != http.StatusOK {
		return one, fmt.Errorf("%s: %s", u.Redacted(), res.Status)
	}
	return readJSZ(data, u.Redacted())
}

// ParseMonitors parses monitoring addresses, separated by commas: each is an http or
// https URL, or HOST:PORT.
func ParseMonitors(text string) (urls []string, err error) {
	for one := range strings.SplitSeq(text, ",") {
		if one = strings.TrimSpace(one); one == "" {
			continue
		}
		if !strings.Contains(one, "://") {
			one = "http://" + one
		}
		u, err := url.Parse(one)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, fmt.Errorf("monitoring address %q: use the server's http port, such as http://127.0.0.1:8222", one)
		}
		urls = append(urls, one)
	}
	return urls, nil
}

// askSystem asks all servers over a connection of the system account. Each server of
// a cluster reports how many there are.
func (s *Streams) askSystem(ctx context.Context, creds string) ([]jsz, error) {
	nc, err := s.conn.ConnectSystem(creds)
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	inbox, err := nc.SubscribeSync(nc.NewInbox())
	if err != nil {
		return nil, err
	}
	if err := nc.PublishRequest(systemJSZ, inbox.Subject, nil); err != nil {
		return nil, err
	}
	var answers []jsz
	for size := 0; size == 0 || len(answers) < size; {
		timeout := nextTimeout
		switch {
		case len(answers) == 0:
			timeout = monitorTimeout
		case size == 0:
			timeout = soloTimeout
		}
		wait, done := context.WithTimeout(ctx, timeout)
		msg, err := inbox.NextMsgWithContext(wait)
		done()
		silent := errors.Is(err, context.DeadlineExceeded)
		switch {
		case silent && len(answers) > 0 && size == 0:
			return answers, nil // no server reported a cluster
		case silent && len(answers) > 0:
			return answers, fmt.Errorf("no answer of the other servers within %v", nextTimeout)
		case silent, errors.Is(err, nats.ErrNoResponders):
			return answers, errors.New("no server answers on " + systemJSZ + ": are these the credentials of a user of the system account?")
		case err != nil:
			return answers, err
		}
		one, err := readSystem(msg.Data)
		if err != nil {
			return answers, err
		}
		if !one.Disabled {
			answers = append(answers, one)
			if one.Meta != nil {
				size = max(size, one.Meta.Size)
			}
		}
	}
	return answers, nil
}

func readSystem(data []byte) (jsz, error) {
	var answer struct {
		Server struct {
			Name string `json:"name"`
		} `json:"server"`
		Data  json.RawMessage `json:"data"`
		Error *struct {
			Description string `json:"description"`
		} `json:"error"`
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		return jsz{}, fmt.Errorf("answer on %s: %w", systemJSZ, err)
	}
	if answer.Error != nil {
		return jsz{}, fmt.Errorf("answer on %s: %s", systemJSZ, answer.Error.Description)
	}
	return readJSZ(answer.Data, cmp.Or(answer.Server.Name, "a server"))
}
