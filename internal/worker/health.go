package worker

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/presence"
	"github.com/refold/refold/internal/secrets"
)

// Troubles returns the current troubles that an executor reports.
func (s *Target) Troubles() []string {
	if of, ok := s.Executor.(interface{ Troubles() []string }); ok {
		return of.Troubles()
	}
	return nil
}

// trouble returns the current trouble of a target, nil if there is none.
func (s *Target) trouble(began, now time.Time, redactor *secrets.Redactor) *session.Trouble {
	var t *session.Trouble
	if s.Pace != nil {
		t = s.Pace.trouble(now)
	}
	if t == nil {
		if all := s.Troubles(); len(all) > 0 {
			t = &session.Trouble{Code: session.TroubleExecutor, Detail: all[0]}
			if more := len(all) - 1; more > 0 {
				t.Detail = fmt.Sprintf("%s (and %d more)", redactor.Clip(all[0], session.TroubleDetailMax-20), more)
			}
		}
	}
	if s.Lacks != "" && (t == nil || t.Code == codeAuth) {
		t = &session.Trouble{Code: session.TroubleLacks, Detail: s.Lacks, Since: began.UnixMilli()}
	}
	if t != nil {
		t.Target = s.String()
	}
	return t
}

// tools returns the tool_ids that an executor reports; ok is false if it reports
// none, since it may carry out any.
func (s *Target) tools() (ids []string, ok bool) {
	of, ok := s.Executor.(interface{ ToolIDs() []string })
	if ok {
		ids = of.ToolIDs()
	}
	return ids, ok
}

// toolsOf returns the tool_ids of targets. A target that does not fit is left out, as
// one whose tools are not known.
func toolsOf(all []Target) map[string][]string {
	tools, room := map[string][]string{}, session.HeartbeatToolsMax
	for i := range all {
		ids, ok := all[i].tools()
		if ok && len(ids) <= room {
			tools[all[i].String()], room = append([]string{}, ids...), room-len(ids)
		}
	}
	return tools
}

// Heartbeats returns a function that builds the heartbeats of a bridge that serves
// these targets. aheadMS is how far this machine's clock is ahead of the server's,
// 0 if it is right.
func (w *Worker) Heartbeats(targets []string, all []Target, aheadMS func() int64) func() []byte {
	began := w.now()
	return func() []byte {
		redactor := w.vault.given.Redactor()
		beat := presence.Heartbeat{Targets: targets, Tools: toolsOf(all), Rules: session.RulesVersion, AheadMS: aheadMS()}
		for i := range all {
			t := all[i].trouble(began, w.now(), redactor)
			if t == nil {
				t = w.newer.trouble(all[i].String(), w.now())
			}
			if t != nil && len(beat.Troubles) < session.TroublesMax {
				t.Code = redactor.Clip(t.Code, session.CodeBytesMax)
				t.Detail = redactor.Clip(t.Detail, session.TroubleDetailMax)
				beat.Troubles = append(beat.Troubles, *t)
			}
		}
		body, err := json.Marshal(beat)
		if err != nil {
			panic("bridge: a heartbeat does not encode: " + err.Error()) // it has only texts and numbers
		}
		return body
	}
}
