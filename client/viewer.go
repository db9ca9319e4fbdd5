package client

import (
	"context"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

// Viewer shows the text of a session's models: while it streams, and in the end
// exactly the text in the log.
//
//   - It may join at any moment, and lose its connection, or any delta: text that
//     it missed is shown when the log has it. It leaves nothing out, and shows
//     nothing twice.
//   - The text shown of a turn is always a prefix of the turn's text, unless the
//     turn begins again: on another bridge, after an answer that broke off, or in
//     a further attempt. Then there is a ShownAgain, and the text starts from its
//     beginning.
//   - It only reads: a stopped or slow reader does not affect a run, a bridge, or
//     another viewer.
//
// It receives deltas from its creation on, and shows them in Shown. The caller
// must call Close.
type Viewer struct {
	c    *Client
	sid  string
	stop context.CancelFunc
	live inbox

	joined bool
	state  *session.State // after the last event followed; nil: the log has no event of the session yet
	words  showing
	steps  []step // of a folded event, not yet passed to words

	events bool // Shown yields each event, too
}

// step passes the result of an event to words. A step that fails is run again.
type step func(ctx context.Context) error

// Viewer returns a viewer of a session, which may be new. ctx is for this call.
func (c *Client) Viewer(ctx context.Context, sid string) (*Viewer, error) {
	return c.viewerOf(ctx, sid, c.Live)
}

// EventViewer is Viewer, but for its steps: between those of the text it shows each
// event of the session, ShownEvent, in the log's order. An event that ends a turn
// comes after the turn's text, and one that begins a turn before it.
func (c *Client) EventViewer(ctx context.Context, sid string) (*Viewer, error) {
	v, err := c.Viewer(ctx, sid)
	if err == nil {
		v.events = true
	}
	return v, err
}

// viewerOf returns a viewer that receives deltas from live.
func (c *Client) viewerOf(ctx context.Context, sid string, live func(context.Context, string, func(Delta)) error) (*Viewer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	own, stop := context.WithCancel(context.WithoutCancel(ctx))
	v := &Viewer{c: c, sid: sid, stop: stop, live: newInbox()}
	if err := live(own, sid, func(d Delta) { v.live.put(received{delta: &d}) }); err != nil {
		stop()
		return nil, err
	}
	return v, nil
}

// Close ends the subscription. Shown must have returned.
func (v *Viewer) Close() { v.stop() }

// Shown yields the steps to show from an event of the log on, and then new ones
// as they arrive, until ctx ends or the reader stops; when ctx ends, it yields
// the error of ctx last. from is the event's sequence, such as Run returns. If
// from is in the past, the turns since then arrive whole. 0 is now; a turn that
// is open now is shown from its beginning, at its end if not earlier.
//
// Shown may be called again after it has returned, and continues; from applies to
// the first call only. It fails if the session can't be folded here because a
// newer release began it.
func (v *Viewer) Shown(ctx context.Context, from uint64) iter.Seq2[Shown, error] {
	return func(yield func(Shown, error) bool) {
		if err := v.join(ctx, from); err != nil {
			yield(Shown{}, err)
			return
		}
		inner, cancel := context.WithCancel(ctx)
		var following sync.WaitGroup
		defer following.Wait()
		defer cancel()
		next := max(from, 1)
		if v.state != nil {
			next = v.state.Seq + 1
		}
		events := make(chan followed)
		following.Go(func() {
			for e, err := range v.c.Events(inner, v.sid, next) {
				select {
				case events <- followed{e, err}:
				case <-inner.Done():
					return
				}
			}
		})
		for {
			for len(v.steps) > 0 {
				if err := v.steps[0](ctx); err != nil {
					yield(Shown{}, err)
					return
				}
				v.steps = v.steps[1:]
			}
			for len(v.words.out) > 0 {
				first := v.words.out[0]
				v.words.out = v.words.out[1:]
				if !yield(first, nil) {
					return
				}
			}
			if err := v.handle(ctx, events); err != nil {
				yield(Shown{}, err)
				return
			}
		}
	}
}

// followed is the next event, or the error that ends them.
type followed struct {
	event session.Event
	err   error
}

// handle processes the next deltas or the next event.
func (v *Viewer) handle(ctx context.Context, events <-chan followed) error {
	select {
	case <-v.live.came:
		for _, h := range v.live.take() {
			v.words.delta(*h.delta)
		}
		return nil
	case f := <-events:
		if f.err != nil {
			return f.err
		}
		return v.fold(ctx, f.event)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// join folds the session up to where the viewer begins.
func (v *Viewer) join(ctx context.Context, from uint64) (err error) {
	if v.joined {
		return nil
	}
	if v.state, err = v.c.snapshotBelow(ctx, v.sid, from); err == nil && from != 1 {
		to := uint64(0)
		if from > 0 {
			to = from - 1
		}
		v.state, err = v.c.refold(ctx, v.sid, v.state, to, func(*foldedEvent) bool { return true })
	}
	if err != nil {
		return err
	}
	v.joined = true
	if a, open := openIn(v.state); open {
		v.words.opened(a)
	}
	return nil
}

func openIn(s *session.State) (a turnAttempt, open bool) {
	if s == nil || s.Run == nil || s.Turn == nil || !s.Turn.Open {
		return a, false
	}
	return turnAttempt{s.Turn.Run, s.Turn.Number, uint32(s.Turn.Attempt) + 1}, true
}

// fold folds an event and updates the text that is shown.
func (v *Viewer) fold(ctx context.Context, e session.Event) error {
	was, wasOpen := openIn(v.state)
	t, err := v.c.fold(ctx, v.state, e)
	if err != nil {
		return err
	}
	v.state = t.after
	is, isOpen := openIn(v.state)
	if wasOpen && (!isOpen || is != was) {
		v.steps = append(v.steps, v.ended(&t))
	}
	if v.events {
		folded := &Folded{e, t.notices, t.after.Progress(), t.after}
		v.steps = append(v.steps, func(context.Context) error {
			v.words.out = append(v.words.out, Shown{Kind: ShownEvent, Seq: e.Seq, Event: folded})
			return nil
		})
	}
	for _, n := range t.notices {
		if d, ok := n.Data.(session.RunFinished); ok {
			end := Shown{Kind: ShownEnd, Run: d.Run, Code: string(d.Lifecycle), Seq: e.Seq}
			v.steps = append(v.steps, func(context.Context) error {
				v.words.out = append(v.words.out, end)
				return nil
			})
		}
	}
	if isOpen && (!wasOpen || is != was) {
		v.steps = append(v.steps, func(context.Context) error {
			v.words.opened(is)
			return nil
		})
	}
	return nil
}

// ended returns the step of an event that ended the open attempt. An answer with
// text or calls is in the transcript.
func (v *Viewer) ended(t *foldedEvent) step {
	text, fault, isAnswer := answerIn(t.Event)
	isItem := slices.ContainsFunc(v.state.Items[max(0, len(v.state.Items)-itemsOfEvent):], func(it session.Item) bool {
		return it.Seq == t.Seq && it.Role == session.RoleAssistant
	})
	if isItem || isAnswer && fault == nil && t.rejected() == nil && !v.isFailing() {
		seq := t.Seq
		return func(ctx context.Context) error {
			words, err := v.c.Text(ctx, text)
			if err == nil {
				v.words.done(words, seq)
			}
			return err
		}
	}
	code, seq := session.CodeDeadlineExceeded, t.Seq // only a deadline ends an attempt without a fault
	last := v.state.Last
	switch {
	case fault != nil && t.rejected() == nil:
		code = fault.Code
	case v.state.Run == nil && last != nil && last.Code != "":
		code = last.Code
	case v.state.Run == nil && last != nil:
		code = string(last.Lifecycle)
	case isAnswer && t.rejected() == nil:
		code = session.CodeBadSettlement
	}
	return func(context.Context) error {
		v.words.failed(code, seq)
		return nil
	}
}

// itemsOfEvent is how many items one event may add to a transcript: a turn, and the
// results that the session itself gives to its calls.
const itemsOfEvent = session.CallsSeenMax + 2

func (v *Viewer) isFailing() bool {
	return v.state.Turn.RetryAt > 0 || v.state.Last != nil && v.state.Last.Number == v.state.Turn.Run && v.state.Last.Lifecycle == session.Failed
}

// answerIn returns the model's answer in an event, or its fault.
func answerIn(e session.Event) (text *session.Content, fault *session.Fault, isAnswer bool) {
	if e.Door != session.DoorLLM {
		return nil, nil, false
	}
	env, err := envelopeOf(e)
	if err != nil {
		return nil, nil, false
	}
	switch env.Type {
	case session.TypeToolCallsObserved:
		var b session.ToolCallsObserved
		err = codec.Decode(env.Data, &b)
		return b.Text, nil, err == nil
	case session.TypeGenerationSettled:
		var b session.GenerationSettled
		err = codec.Decode(env.Data, &b)
		return b.Text, b.Error, err == nil
	}
	return nil, nil, false
}

// Text returns the text of content, inline or in a blob. Parts are joined without a
// separator; nil has no text.
func (c *Client) Text(ctx context.Context, content *session.Content) (string, error) {
	switch {
	case content == nil:
		return "", nil
	case content.Blob != nil:
		data, err := c.Blob(ctx, *content.Blob)
		return string(data), err
	case len(content.Parts) == 0:
		return content.Text, nil
	}
	var all strings.Builder
	for i := range content.Parts {
		text, err := c.Text(ctx, &content.Parts[i])
		if err != nil {
			return "", err
		}
		all.WriteString(text)
	}
	return all.String(), nil
}
