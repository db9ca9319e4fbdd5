package mcp

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// remote returns the transport to a server over HTTP.
func remote(s *Server, header *atomic.Pointer[map[string]string]) (sdk.Transport, func(), error) {
	origin, err := url.Parse(s.URL)
	if err != nil {
		return nil, nil, err
	}
	base := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // it always is one
	base.MaxResponseHeaderBytes = headerBytesMax
	client := &http.Client{Transport: &messenger{base: base, origin: origin, header: header}}
	return &sdk.StreamableClientTransport{Endpoint: s.URL, HTTPClient: client, MaxEventSize: messageBytesMax}, base.CloseIdleConnections, nil
}

// messenger sends requests to a server with its headers, and records how far
// calls get. It follows no redirect to another origin.
type messenger struct {
	base   http.RoundTripper
	origin *url.URL
	header *atomic.Pointer[map[string]string] // with secrets
}

func (m *messenger) RoundTrip(r *http.Request) (*http.Response, error) {
	if from, to := originOf(m.origin), originOf(r.URL); from != to {
		return nil, fmt.Errorf("%s redirects to %s, and requests go to no other origin: give the url that it has now", from, to)
	}
	ctx := r.Context()
	progress := callProgressOf(ctx)
	if progress != nil {
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { progress.setSent(true) }})
	}
	r = r.Clone(ctx)
	for key, value := range *m.header.Load() {
		r.Header.Set(key, value)
	}
	response, err := m.base.RoundTrip(r)
	if err == nil {
		makeReadable(r, response, progress)
	}
	if err == nil && r.Method == http.MethodPost { // requests that resume a broken answer say nothing about the call
		progress.setStatus(response.StatusCode)
	}
	return response, err
}

// originOf returns scheme, host and port of an address.
func originOf(u *url.URL) string {
	port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}
