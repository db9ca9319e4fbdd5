package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/natsio"
)

// wordsMax is how many characters of the latest text a row has.
const wordsMax = 200

// noticeFacts holds the facts that notices give about a session; others are empty.
type noticeFacts struct {
	session    string
	first, seq uint64 // in the stream: the oldest notice read, and the latest
	at         int64  // of the latest, Unix ms

	state, waitsFor string
	run             uint32
	provider, model string
	words           string
	wordsSeq        uint64 // in the log: the event with the words, if words is empty
}

// apply adds the next notices of the session.
func (f *noticeFacts) apply(raw journal.Notice) {
	f.seq, f.at = raw.Seq, raw.Time
	for _, n := range noticesIn(raw.Session, raw.Payload) {
		f.applyOne(&n)
	}
}

func (f *noticeFacts) applyOne(n *Notice) {
	switch d := n.Body().(type) {
	case session.RunPlaced:
		if n.Type == session.NoticeRunStarted {
			f.state, f.waitsFor, f.run = string(session.Running), "model", d.Run
			f.provider, f.model, f.words, f.wordsSeq = d.Provider, d.Model, "", d.Seq
		}
	case session.RunFinished:
		f.state, f.waitsFor, f.run = string(d.Lifecycle), "nobody", d.Run
		f.words, f.wordsSeq = beginningOf(d.Output), d.OutputSeq
		if f.words == "" && f.wordsSeq == 0 {
			f.words = oneLine(strings.Trim(d.Code+": "+d.Detail, ": "))
		}
	case session.ApprovalRequested:
		f.state, f.waitsFor = string(session.Running), "approval"
	case session.BudgetExceeded:
		f.state, f.waitsFor, f.run = string(session.Paused), "resume", d.Run
	case session.CallsPlanned:
		f.state, f.waitsFor = string(session.Running), "host_loop"
	case session.SessionQuarantined:
		f.state, f.waitsFor, f.words, f.wordsSeq = StateQuarantined, "operator", oneLine(d.Reason), 0
	}
}

// addOlder adds the facts of an older notice that no newer one has.
func (f *noticeFacts) addOlder(old *noticeFacts) {
	f.first = old.seq
	if f.state == "" {
		f.state, f.waitsFor = old.state, old.waitsFor
	}
	f.run = cmp.Or(f.run, old.run)
	if f.model == "" {
		f.provider, f.model = old.provider, old.model
	}
	if f.words == "" && f.wordsSeq == 0 {
		f.words, f.wordsSeq = old.words, old.wordsSeq
	}
}

// isWhole reports whether older notices have nothing to add.
func (f *noticeFacts) isWhole() bool {
	return f.state != "" && f.model != "" && f.run != 0 && (f.words != "" || f.wordsSeq != 0)
}

// row returns the row of a session: it reads older notices for missing facts, and
// the view of a run that has not ended.
func (x *indexing) row(f *noticeFacts) (IndexRow, error) {
	for step := 0; step < indexSteps && f.first > 1 && !f.isWhole(); step++ {
		var old *noticeFacts
		for raw, err := range x.c.bus.LastNotices(x.ctx, []string{f.session}, f.first-1) {
			if err != nil {
				return IndexRow{}, err
			}
			old = &noticeFacts{}
			old.apply(raw)
		}
		if old == nil {
			break
		}
		f.addOlder(old)
	}
	if f.state == "" {
		f.state, f.waitsFor = StateOpen, "nobody"
	}
	row := IndexRow{
		Session: f.session, State: f.state, WaitsFor: f.waitsFor, Run: f.run, Provider: f.provider, Model: f.model,
		Words: f.words, At: f.at, Cursor: fmt.Sprintf("n%d", f.seq),
	}
	if isLiveState(row.State) {
		f.wordsSeq = x.live(&row, f.wordsSeq)
	}
	if row.Words == "" && f.wordsSeq != 0 {
		row.Words = x.wordsAt(f.wordsSeq)
	}
	return row, x.ctx.Err()
}

// live completes the row of a run that has not ended from a session-actor's view,
// and returns the sequence of the event with the latest text.
func (x *indexing) live(row *IndexRow, wordsSeq uint64) uint64 {
	x.mu.Lock()
	noViews := x.noViews
	x.mu.Unlock()
	row.Noticed = true
	if noViews {
		return wordsSeq
	}
	ctx, cancel := context.WithTimeout(x.ctx, viewTry)
	defer cancel()
	v, err := x.c.View(ctx, row.Session)
	if err != nil {
		var denied *natsio.PermissionError
		x.mu.Lock()
		x.noViews = x.noViews || errors.Is(err, natsio.ErrNoView) || errors.As(err, &denied)
		x.mu.Unlock()
		return wordsSeq
	}
	row.Noticed, row.WaitsFor = false, v.WaitsFor
	if v.Lifecycle != "" {
		row.State = string(v.Lifecycle)
	}
	if v.Run != nil {
		row.Run, row.Provider, row.Model = v.Run.Number, v.Run.Provider, v.Run.Model
	}
	for _, it := range v.Transcript {
		if it.Role != session.RoleTool && it.Seq > wordsSeq {
			wordsSeq, row.Words = it.Seq, ""
		}
	}
	return wordsSeq
}

// wordsAt returns the beginning of an event's text; empty if it can't be read.
func (x *indexing) wordsAt(seq uint64) string {
	e, err := x.c.bus.EventAt(x.ctx, seq)
	if err != nil {
		return ""
	}
	if content, err := inputIn(e); err == nil {
		return beginningOf(content)
	}
	text, _, _ := answerIn(e)
	if text == nil {
		return callsIn(e)
	}
	return beginningOf(text)
}

func callsIn(e session.Event) string {
	env, err := envelopeOf(e)
	var b session.ToolCallsObserved
	if err != nil || env.Type != session.TypeToolCallsObserved || codec.Decode(env.Data, &b) != nil {
		return ""
	}
	var names []string
	for i := range b.Calls {
		names = append(names, b.Calls[i].ToolName)
	}
	return oneLine("calls " + strings.Join(names, ", "))
}

func beginningOf(content *session.Content) string {
	switch {
	case content == nil:
		return ""
	case content.Blob != nil:
		return fmt.Sprintf("[%d bytes, %s]", content.Size, content.Blob)
	case len(content.Parts) > 0:
		return fmt.Sprintf("[%d parts]", len(content.Parts))
	}
	return oneLine(content.Text)
}

// oneLine returns at most wordsMax characters of a text, on one line.
func oneLine(text string) string {
	if len(text) > 4*wordsMax {
		text = strings.ToValidUTF8(text[:4*wordsMax], "")
	}
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > wordsMax {
		return string(runes[:wordsMax]) + "…"
	}
	return text
}
