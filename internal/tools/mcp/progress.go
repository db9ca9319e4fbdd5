package mcp

import (
	"context"
	"net/http"
	"sync"
)

// methodCall is the method of a call.
const methodCall = "tools/call"

// callProgress is how far one call got on its way to a server. It is in the call's
// context, which the SDK passes on. The setters of a nil callProgress do nothing.
type callProgress struct {
	mu     sync.Mutex
	sent   bool // it may have arrived
	status int  // of the HTTP answer; 0: none
	unread bool // the HTTP answer is no message
}

type callProgressKey struct{}

func callProgressOf(ctx context.Context) *callProgress {
	m, _ := ctx.Value(callProgressKey{}).(*callProgress)
	return m
}

// setSent records whether the call may have been sent.
func (m *callProgress) setSent(sent bool) {
	if m != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.sent = sent
	}
}

func (m *callProgress) setStatus(status int) {
	if m != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.status = status
	}
}

// setUnread records that the HTTP answer is no message, or broke off.
func (m *callProgress) setUnread() {
	if m != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.unread = true
	}
}

func (m *callProgress) known() (sent bool, status int, unread bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sent, m.status, m.unread
}

// refused reports whether an HTTP status means that nothing took effect.
func refused(status int) bool {
	return status >= 400 && status < 500 && status != http.StatusRequestTimeout || status == http.StatusServiceUnavailable
}
