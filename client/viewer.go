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

// Viewer shows what the models of a session say: word by word while they say
// it, and in the end exactly what the log has.
//
//   - It may join at any moment, and lose its connection, or any delta: what it
//     can't show as it came it shows when the log has it. It leaves nothing out,
//     and shows nothing twice.
//   - What it has shown of a turn is the beginning of the turn's text, at any
//     moment, unless the turn begins again: on another bridge, after an answer
//     that broke off, or in a further attempt. Then there is a ShownAgain, and
//     the text begins clean.
//   - It only reads: to stop it, or to read it slowly, does nothing to a run, a
//     bridge, or another viewer.
//
// It hears deltas from the moment it is made, and shows them in Shown. Call
// Close when done.
type Viewer struct {
	c    *Client
	sid  string
	stop context.CancelFunc
	live inbox[Delta]

	joined bool
	state  *session.State // as far as the log was followed; nil: the log has no event of the session yet
	words  showing
	steps  []step // of an event that was folded, and not told to words yet
}

// step passes the result of an event to words. If it fails it is taken again.
type step func(ctx context.Context) error

// Viewer returns a viewer of a session, which may be new. ctx is for this call.
func (c *Client) Viewer(ctx context.Context, sid string) (*Viewer, error) {
	return c.viewerOf(ctx, sid, c.Live)
}

// viewerOf returns a viewer that hears deltas by live.
func (c *Client) viewerOf(ctx context.Context, sid string, live func(context.Context, string, func(Delta)) error) (*Viewer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	own, stop := context.WithCancel(context.WithoutCancel(ctx))
	v := &Viewer{c: c, sid: sid, stop: stop, live: newInbox[Delta]()}
	if err := live(own, sid, func(d Delta) { v.live.put(d, &d) }); err != nil {
		stop()
		return nil, err
	}
	return v, nil
}

// Close ends the listening. Shown must have returned.
func (v *Viewer) Close() { v.stop() }

// Shown yields what is to be shown from an event of the log on, then as it
// comes, until ctx ends or the reader stops; the last thing yielded when ctx
// ends is its error. from is the event's sequence, such as Run returns: 0 is
// from now on, and a turn that is open now is shown from its first word on, at
// its end if not before. If from is past, the turns since then arrive whole.
//
// After it has returned it may be called again and continues where it was; from
// is for the first call only. It fails if the session can't be folded on this
// side, because a newer release began it.
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

// followed is an event as it comes.
type followed struct {
	event session.Event
	err   error
}

// handle takes the next deltas or the next event.
func (v *Viewer) handle(ctx context.Context, events <-chan followed) error {
	select {
	case <-v.live.came:
		for _, d := range v.live.take() {
			v.words.delta(d)
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
		v.words.asked(a)
	}
	return nil
}

// openIn returns the generation that a session waits for.
func openIn(s *session.State) (a asking, open bool) {
	if s == nil || s.Run == nil || s.Turn == nil || !s.Turn.Open {
		return a, false
	}
	return asking{s.Turn.Run, s.Turn.Number, uint32(s.Turn.Attempt) + 1}, true
}

// fold folds an event and updates the text that is shown.
func (v *Viewer) fold(ctx context.Context, e session.Event) error {
	if v.state == nil {
		var err error
		if v.state, err = v.c.begin(ctx, e); err != nil {
			return err
		}
	}
	was, wasOpen := openIn(v.state)
	t := foldedEvent{Event: e, after: v.state}
	if err := t.fold(); err != nil {
		return err
	}
	is, isOpen := openIn(v.state)
	if wasOpen && (!isOpen || is != was) {
		v.steps = append(v.steps, v.ended(&t))
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
			v.words.asked(is)
			return nil
		})
	}
	return nil
}

// ended returns the step of an event that ended the open attempt: its answer is
// in the transcript then, if it has words or calls.
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
	code, seq := session.CodeDeadlineExceeded, t.Seq // nothing else ends an attempt alone
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

// itemsOfEvent is how many items one event may add to a transcript: a turn's,
// and the results that the session gives to its calls.
const itemsOfEvent = session.CallsSeenMax + 2

// isFailing reports whether the turn that ended last failed.
func (v *Viewer) isFailing() bool {
	return v.state.Turn.RetryAt > 0 || v.state.Last != nil && v.state.Last.Number == v.state.Turn.Run && v.state.Last.Lifecycle == session.Failed
}

// answerIn returns what an event says a model answered, or why it failed.
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

// Text returns the text of content, wherever it is kept. Parts are joined as
// they are; nil has none.
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
