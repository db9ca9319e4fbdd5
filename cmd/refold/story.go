package main

import (
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

// story tells what happens in a session, line by line: each event as it is
// folded, with the time since the first one.
type story struct {
	out   io.Writer
	began int64             // timestamp of the first event told, Unix ms
	since map[string]int64  // when each effect was asked
	calls map[string]string // tool that each call names
	name  string            // of the session, in front of each line; empty: none
	quiet bool              // without the words of users and models
}

func newStory(out io.Writer) *story {
	return &story{out: out, since: map[string]int64{}, calls: map[string]string{}}
}

// tell tells one event; after is the state that it left.
func (s *story) tell(e session.Event, after *session.State) {
	if s.began == 0 {
		s.began = e.Time
	}
	canonical, err := codec.Canonicalize(e.Payload)
	if err != nil {
		s.line(e, "%d bytes through %s that are no event: %v", len(e.Payload), e.Door, err)
		return
	}
	var env session.Envelope
	if err := codec.Decode(canonical, &env); err != nil {
		s.line(e, "no event through %s: %v", e.Door, err)
		return
	}
	switch env.Type {
	case session.TypeRunRequested:
		var b session.RunRequested
		if codec.Decode(env.Data, &b) == nil {
			s.line(e, "run requested: %s", s.words(&b.Input))
		}
	case session.TypeToolCallsObserved:
		var b session.ToolCallsObserved
		if codec.Decode(env.Data, &b) == nil {
			s.turn(e, &b, after)
		}
	case session.TypeGenerationSettled:
		var b session.GenerationSettled
		if codec.Decode(env.Data, &b) == nil {
			s.answer(e, &b)
		}
	case session.TypeToolCallSettled:
		var b session.ToolCallSettled
		if codec.Decode(env.Data, &b) == nil {
			s.result(e, &b)
		}
	case session.TypeSteerRequested:
		var b session.SteerRequested
		if codec.Decode(env.Data, &b) == nil {
			s.line(e, "steered: %s", s.words(&b.Input))
		}
	case session.TypeRunEdited:
		var b session.RunEdited
		if codec.Decode(env.Data, &b) == nil {
			s.line(e, "run %d edited: %s", b.Run, s.words(&b.Input))
		}
	case session.TypeApprovalDecided:
		var b session.ApprovalDecided
		if codec.Decode(env.Data, &b) == nil {
			s.decision(e, &b)
		}
	default:
		text, err := codec.ToJSON(env.Data)
		if err != nil {
			text = nil
		}
		s.line(e, "%s %s", env.Type, text)
	}
	for _, effect := range after.OpenExcept(func(name string) bool { return s.since[name] != 0 }) {
		s.since[effect.Name] = e.Time
	}
}

// line writes one line.
func (s *story) line(e session.Event, format string, args ...any) {
	seconds := float64(e.Time-s.began) / 1000
	name := s.name
	if name != "" {
		name += "  "
	}
	fmt.Fprintf(s.out, "%8.3fs  %s%s\n", seconds, name, fmt.Sprintf(format, args...))
}

// took tells how long an effect was open.
func (s *story) took(e session.Event, effect string) string {
	if since := s.since[effect]; since != 0 {
		return fmt.Sprintf(" (%d ms)", e.Time-since)
	}
	return ""
}

// turn tells a turn that made calls, group by group.
func (s *story) turn(e session.Event, b *session.ToolCallsObserved, after *session.State) {
	s.line(e, "turn %s%s: %s", b.Effect, s.took(e, b.Effect), s.words(b.Text))
	batch := after.View().Batch
	if batch == nil || batch.Batch != b.Effect {
		return // all calls were refused, and the next turn is asked
	}
	for g, calls := range batch.Groups {
		for _, i := range calls {
			s.calls[batch.Calls[i].Effect] = batch.Calls[i].ToolName
			s.line(e, "  group %d of %d  %s %s", g+1, len(batch.Groups), batch.Calls[i].ToolName, shorten(b.Calls[i].Arguments))
		}
	}
	for _, c := range batch.Calls {
		switch c.Status {
		case session.CallIgnored, session.CallFailed:
			s.line(e, "  refused  %s: %s: %s", c.ToolName, c.Code, c.Detail)
		case session.CallAwaiting:
			s.line(e, "  waits for approval  %s %s", c.ToolName, c.Effect)
		}
	}
}

// decision tells what a person decided over a call.
func (s *story) decision(e session.Event, b *session.ApprovalDecided) {
	text := strings.TrimSpace(s.calls[b.Call] + " " + b.Call)
	if b.Decision == session.DecisionApprove {
		text = "approved " + text
	} else {
		text = "denied " + text
	}
	if b.Arguments != "" && !s.quiet {
		text += " with " + shorten(b.Arguments)
	}
	if b.Reason != "" {
		text += ": " + shorten(b.Reason)
	}
	s.line(e, "  %s", text)
}

// answer tells the end of a turn without calls.
func (s *story) answer(e session.Event, b *session.GenerationSettled) {
	if b.Error != nil {
		s.line(e, "turn %s failed: %s: %s", b.Effect, b.Error.Code, b.Error.Detail)
		return
	}
	s.line(e, "turn %s%s: %s", b.Effect, s.took(e, b.Effect), s.words(b.Text))
}

// result tells how a call ended.
func (s *story) result(e session.Event, b *session.ToolCallSettled) {
	name := strings.TrimSpace(s.calls[b.Effect] + " " + b.Effect)
	if b.Error != nil {
		s.line(e, "  %s %s%s: %s: %s", b.Status, name, s.took(e, b.Effect), b.Error.Code, shorten(b.Error.Detail))
		return
	}
	s.line(e, "  %s %s%s: %s", b.Status, name, s.took(e, b.Effect), s.words(b.Output))
}

// words returns content on one line.
func (s *story) words(c *session.Content) string {
	switch {
	case c == nil, s.quiet:
		return ""
	case c.Blob != nil:
		return fmt.Sprintf("[%d bytes, %s]", c.Size, c.Blob)
	case len(c.Parts) > 0:
		return fmt.Sprintf("[%d parts]", len(c.Parts))
	}
	return shorten(c.Text)
}

// lineMax is how much of a text one line shows, in characters.
const lineMax = 100

// shorten puts text on one line of at most lineMax characters, without what
// would move a terminal's cursor.
func shorten(text string) string {
	text = strings.Map(printable, strings.Join(strings.Fields(text), " "))
	if runes := []rune(text); len(runes) > lineMax {
		return string(runes[:lineMax]) + "…"
	}
	return text
}

// printable returns a character, or what stands for one that moves a terminal's
// cursor or turns its text around.
func printable(r rune) rune {
	if unicode.IsControl(r) && !unicode.IsSpace(r) || unicode.Is(unicode.Bidi_Control, r) {
		return unicode.ReplacementChar
	}
	return r
}
