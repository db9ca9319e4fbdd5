package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/refold/refold/actors/session"
)

// troubleLine describes a trouble: its bridge, cause, beginning and next try.
func troubleLine(who string, t *session.Trouble, now time.Time) string {
	word := t.Code
	switch t.Code {
	case session.TroubleLacks, session.TroubleExecutor:
	case session.TroubleSilent:
		word = "bridge gone"
	case session.TroubleStalled:
		word = "stalled"
	default:
		word = "retrying"
		if t.Next == 0 {
			word = "failing"
		}
	}
	text := word + ": " + strings.TrimSpace(who+" "+t.Target)
	if len(t.Effects) > 0 {
		text += " (" + strings.Join(t.Effects, " ") + ")"
	}
	if word == "retrying" || word == "failing" {
		text += ": " + t.Code
	}
	if t.Detail != "" {
		text += ": " + t.Detail
	}
	if t.Since != 0 {
		text += "; since " + clock(t.Since)
	}
	switch {
	case t.Next > now.UnixMilli():
		text += ", next try in " + seconds(time.UnixMilli(t.Next).Sub(now))
	case t.Next != 0:
		text += ", the next try has started"
	}
	return text
}

// troubleOver describes the end of a trouble.
func troubleOver(sid string, t *session.Trouble, now time.Time) string {
	text := fmt.Sprintf("over: %s of %s (%s)", t.Target, sid, t.Code)
	if since := time.UnixMilli(t.Since); t.Since != 0 && now.After(since) {
		text += ", after " + seconds(now.Sub(since))
	}
	return text
}
