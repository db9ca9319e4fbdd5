package mcp

import (
	"context"
	"net/http"
	"sync"
)

// methodCall is the method of a call.
const methodCall = "tools/call"

// mark is what is known of how far one call got on its way to a server. It
// travels in the call's context, since that is what the SDK hands on. A nil
// mark takes everything and keeps nothing.
type mark struct {
	mu     sync.Mutex
	sent   bool // it may have arrived
	status int  // of the HTTP answer; 0: none came
}

type markKey struct{}

func markOf(ctx context.Context) *mark {
	m, _ := ctx.Value(markKey{}).(*mark)
	return m
}

// goes says whether the call may have been sent.
func (m *mark) goes(sent bool) {
	if m != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.sent = sent
	}
}

// answers says what the status is.
func (m *mark) answers(status int) {
	if m != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.status = status
	}
}

// known returns what is known.
func (m *mark) known() (sent bool, status int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sent, m.status
}

// refused reports that an HTTP status says that nothing took effect.
func refused(status int) bool {
	return status >= 400 && status < 500 && status != http.StatusRequestTimeout || status == http.StatusServiceUnavailable
}
