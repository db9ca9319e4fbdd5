package mcp

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// methodCall is the method of a call.
const methodCall = "tools/call"

// mark is what is known of how far one call got on its way to a server. It
// travels in the call's context, since that is what the SDK hands on. A nil
// mark takes everything and keeps nothing.
type mark struct {
	mu     sync.Mutex
	sent   bool // it may have arrived
	status int  // of the latest HTTP answer; 0: none came
	asked  int  // HTTP requests and answers of it that are under way
	lost   func()
	timer  *time.Timer // runs when none is under way
}

type markKey struct{}

func markOf(ctx context.Context) *mark {
	m, _ := ctx.Value(markKey{}).(*mark)
	return m
}

// sends says that the call is about to be sent.
func (m *mark) sends() {
	if m != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.sent = true
	}
}

// unsent takes that back.
func (m *mark) unsent() {
	if m != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.sent = false
	}
}

// begins says that a request of the call's is under way, or its answer.
func (m *mark) begins() {
	if m != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.asked++
		if m.timer != nil {
			m.timer.Stop()
		}
	}
}

// answers says what the latest status is.
func (m *mark) answers(status int) {
	if m != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.status = status
	}
}

// ends says that an answer was read to its end, or broke off. If no other
// follows, and the call does not end, its answer is lost: the SDK waits on.
func (m *mark) ends() {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.asked--; m.asked == 0 && m.lost != nil {
		m.timer = time.AfterFunc(lostAfter, m.lost)
	}
}

// over says that the call ended, and returns what is known.
func (m *mark) over() (sent bool, status int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lost = nil
	if m.timer != nil {
		m.timer.Stop()
	}
	return m.sent, m.status
}

// refused reports that an HTTP status says that nothing took effect.
func refused(status int) bool {
	return status >= 400 && status < 500 && status != http.StatusRequestTimeout || status == http.StatusServiceUnavailable
}
