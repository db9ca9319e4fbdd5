package e2e_test

// A run that is followed with only a client's rights: publish requests, request
// views, and subscribe on core NATS.

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
)

// followScript speaks and calls a tool, then speaks again.
const followScript = `
rules:
  - shown: {last: tool}
    say: There are two.
  - say: I look.
    calls:
      - {tool: look, arguments: {at: it}}
      - {tool: nothing, arguments: {}}
`

// violations are what the server says of users that did what they may not.
type violations struct {
	mu  sync.Mutex
	all []string
}

func (v *violations) Errorf(format string, args ...any) {
	if line := fmt.Sprintf(format, args...); strings.Contains(line, "Violation") {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.all = append(v.all, line)
	}
}
func (v *violations) Noticef(string, ...any) {}
func (v *violations) Warnf(string, ...any)   {}
func (v *violations) Fatalf(string, ...any)  {}
func (v *violations) Debugf(string, ...any)  {}
func (v *violations) Tracef(string, ...any)  {}

const joined = "joined by its submission"

var refusedCall = regexp.MustCompile(`refused nothing r\dt1c1: tool_unknown`)

// TestAClientFollowsItsRun: refold run shows text, tools and end of a run, once
// each, with a client's rights: of an undisturbed run, of one whose
// session-actor is killed, of a queued one, and of one that is joined by its
// submission. The server refuses nothing.
func TestAClientFollowsItsRun(t *testing.T) {
	t.Parallel()
	guarded := startGuarded(t)
	s := guarded.start(object{"v": 1, "rules": 1, "tools": list{tool("look", nil)}, "config": scripted})
	s.models(followScript, "scripted")
	held := make(chan struct{})
	l := &lab{outputs: map[string]string{"look": "two\nfiles"}, hold: map[string]chan struct{}{}}
	s.tools(l)
	asks := func(sid string, more ...string) (out, told string) {
		return runOnce(t, 0, nil, guarded.as("chat", append([]string{"run", sid, "go"}, more...)...)...)
	}
	want := func(what, out, told string) {
		t.Helper()
		text, refusals := "I look.\nThere are two.\n", 1
		if what == joined { // its first turn had ended
			text, refusals = "There are two.\n", 0
		}
		if out != text {
			t.Errorf("%s: printed %q", what, out)
		}
		if strings.Count(told, "succeeded look") != 1 || !strings.Contains(told, "two files") || len(refusedCall.FindAllString(told, -1)) != refusals {
			t.Errorf("%s: told %q", what, told)
		}
	}
	out, told := asks("s1")
	want("undisturbed", out, told)

	l.mu.Lock()
	l.hold["look"] = held
	l.mu.Unlock()
	var running sync.WaitGroup
	for i, c := range []struct{ what, sid, submission string }{
		{"the session-actor is killed", "s2", "first"}, {joined, "s2", "first"}, {"queued", "s2", "second"},
	} {
		running.Go(func() {
			out, told := asks(c.sid, "--submission", c.submission)
			want(c.what, out, told)
		})
		until(t, time.Minute, c.what, func() bool {
			v := s.view("s2", "a view", func(session.View) bool { return true })
			return v.Count >= uint64(2+i) && v.Batch != nil // the request, the model's calls, and what asked since
		})
	}
	until(t, time.Minute, "the tool runs", func() bool { return len(l.did()) == 2 })
	s.actor.kill()
	s.actor.start()
	close(held)
	running.Wait()

	guarded.wantNone()
	_, told = runOnce(t, 1, nil, guarded.as("chat", "run", "s2", "go", "--submission", "first")...)
	if !strings.Contains(told, "its run has ended") || !strings.Contains(told, "may not read") {
		t.Errorf("of a submission that ended before: told %q", told)
	}
}
