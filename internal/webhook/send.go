package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/refold/refold/internal/journal"
)

// Limits of a try.
const (
	tryTimeout      = 15 * time.Second // until the answer has ended
	dialTimeout     = 5 * time.Second
	answerBytesMax  = 64 << 10 // of a body that is read and dropped, so that its connection is used again
	headersBytesMax = 64 << 10
)

// newClient returns a client for a webhook's receiver.
func newClient(private bool) *http.Client {
	dialer := &net.Dialer{Timeout: dialTimeout}
	if !private {
		dialer.Control = refusePrivate
	}
	return &http.Client{
		Timeout:       tryTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{ // no proxy: it would dial in place of dialer
			DialContext: dialer.DialContext, TLSHandshakeTimeout: dialTimeout, ForceAttemptHTTP2: true, DisableCompression: true,
			MaxIdleConnsPerHost: sendsMax, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: headersBytesMax,
		},
	}
}

// errPrivate refuses an address. A name was resolved to it a moment ago, so what was
// checked is what is dialled.
var errPrivate = errors.New("is an address of a private network: allow_private: true permits it")

// private are the networks that netip does not know as private and that are no part of
// the internet, or stand for addresses that may be private.
var private = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("2001::/32"), netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("fec0::/10"),
}

// refusePrivate is called before a connection is made, with the address.
func refusePrivate(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	ip := at.Addr().Unmap().WithZone("")
	refused := !ip.IsGlobalUnicast() || ip.IsPrivate() // loopback, link-local, multicast and unspecified ones are not global unicast
	for _, p := range private {
		refused = refused || p.Contains(ip)
	}
	if refused {
		return fmt.Errorf("%s %w", ip, errPrivate)
	}
	return nil
}

// send tries to deliver a notice once: nil if the receiver has answered 2xx.
func (h *Hook) send(ctx context.Context, client *http.Client, n notice, now time.Time) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL, bytes.NewReader(n.body))
	if err != nil {
		return err
	}
	var signatures []string
	for _, key := range h.keys {
		signature, err := key.Sign(n.id, now, n.body)
		if err != nil {
			return err
		}
		signatures = append(signatures, signature)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "Refold")
	r.Header.Set(standardwebhooks.HeaderWebhookID, n.id)
	r.Header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	r.Header.Set(standardwebhooks.HeaderWebhookSignature, strings.Join(signatures, " "))
	answer, err := client.Do(r)
	if err != nil {
		var of *url.Error
		if errors.As(err, &of) {
			err = of.Err // without the address, which may have a secret
		}
		return err
	}
	defer answer.Body.Close()
	_, _ = io.CopyN(io.Discard, answer.Body, answerBytesMax) // the status is the answer
	switch {
	case answer.StatusCode >= 200 && answer.StatusCode < 300:
		return nil
	case answer.StatusCode >= 300 && answer.StatusCode < 400:
		return fmt.Errorf("the receiver answered %d: redirects are not followed: give the webhook the address that it leads to", answer.StatusCode)
	}
	return fmt.Errorf("the receiver answered %d", answer.StatusCode)
}

// Again sends a dead letter once more. A nil webhook is one that the file lacks.
func Again(ctx context.Context, h *Hook, d journal.DeadLetter) error {
	if h == nil {
		return fmt.Errorf("the file has no webhook %s", d.Webhook)
	}
	client := newClient(h.AllowPrivate)
	defer client.CloseIdleConnections()
	return h.send(ctx, client, notice{id: d.ID, body: d.Body}, time.Now())
}
