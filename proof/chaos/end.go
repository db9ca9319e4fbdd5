package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/session/timeline"
	"github.com/refold/refold/client"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/llm/recorded"
)

// gather reads a session's state and outputs at the end of a trial.
type gather struct {
	client *client.Client
	view   func(context.Context) (session.View, error)
	cast   *Cast
	spans  *collector
	dir    string
	sid    string
	counts bool // the tokens

	events  map[uint64]session.Event
	opened  []Call // opened by the fold, in order
	settled map[string]string
	prompts []string

	children []string // sessions
}

// end returns the end of the trial, once everything is at rest.
func (g *gather) end(ctx context.Context) (*End, error) {
	g.events, g.settled = map[uint64]session.Event{}, map[string]string{}
	replayed, err := g.client.Replay(ctx, g.sid, 0, g.event)
	if err != nil {
		return nil, err
	}
	end := &End{}
	if end.Replay, err = g.replay(ctx, replayed, end); err != nil {
		return nil, err
	}
	if g.counts {
		end.Tokens = replayed.State.Usage.InputTokens + replayed.State.Usage.OutputTokens
	}
	if err := g.account(end); err != nil {
		return nil, err
	}
	items := replayed.State.Items
	if w := replayed.State.Window; w != nil && w.Summary > 0 {
		items = append([]session.Item{{Role: session.RoleAssistant, Seq: w.Summary}}, items...)
	}
	for _, item := range items {
		text, err := g.item(ctx, item)
		if err != nil {
			return nil, err
		}
		end.Transcript = append(end.Transcript, text)
	}
	for _, effect := range replayed.State.Open() {
		if effect.Class != session.ClassWake {
			end.Open = append(end.Open, effect.Name)
		}
	}
	logged := map[string][]*timeline.Span{}
	for _, sid := range append(g.children, g.sid) {
		if logged[sid], _, err = g.client.Spans(ctx, sid, 0); err != nil {
			return nil, err
		}
	}
	end.Spans = g.spans.differences(logged)
	for _, s := range logged[g.sid] {
		end.Traced = append(end.Traced, s.Place)
	}
	end.Notices, err = g.notices(ctx)
	end.Spaces, end.Prompts = spacesOf(replayed.State, end.Notices), g.prompts
	for _, n := range end.Notices {
		var d session.RunFinished
		if n.Type == session.NoticeRunFinished && json.Unmarshal([]byte(n.Text), &d) == nil && int(d.Run) > len(end.Runs) {
			end.Runs = append(end.Runs, RunEnd{Lifecycle: string(d.Lifecycle), Code: d.Code, Detail: d.Detail})
		}
	}
	return end, err
}

// event reads an event while it is folded again.
func (g *gather) event(e session.Event, _ []session.Notice, after *session.State) {
	g.events[e.Seq] = e
	for _, effect := range after.Open() {
		if prompt, ok := promptOf(effect.Payload); ok && effect.Class == session.ClassLLM && !slices.Contains(g.prompts, prompt) {
			g.prompts = append(g.prompts, prompt)
		}
		known := slices.ContainsFunc(g.opened, func(c Call) bool { return c.Effect == effect.Name })
		var call session.ToolCall
		if effect.Class != session.ClassTool || known || codec.Unmarshal(effect.Payload, &call) != nil {
			continue
		}
		g.opened = append(g.opened, Call{Effect: effect.Name, RetrySafe: call.RetrySafe})
	}
	var settled session.ToolCallSettled
	if typeOf(e, &settled) != session.TypeToolCallSettled {
		return
	}
	if _, again := g.settled[settled.Effect]; !again {
		g.settled[settled.Effect] = settled.Status
	}
}

// typeOf returns the type of an event and decodes its data into body. It returns
// another text if the data has not body's form; body is then unchanged.
func typeOf(e session.Event, body any) string {
	env, err := envelopeOf(e.Payload)
	if err != nil {
		return ""
	}
	if codec.Decode(env.Data, body) != nil {
		return env.Type + " of another form"
	}
	return env.Type
}

// account reads the ledger.
func (g *gather) account(end *End) error {
	entries, err := recorded.ReadLedger(ledgerIn(g.dir))
	if err != nil {
		return err
	}
	end.Calls = g.opened
	for i := range end.Calls {
		end.Calls[i].Status = g.settled[end.Calls[i].Effect]
	}
	for _, entry := range entries {
		i := slices.IndexFunc(end.Calls, func(c Call) bool { return g.sid+"."+c.Effect == entry.IdempotencyKey })
		if i < 0 {
			end.Unasked = append(end.Unasked, entry.IdempotencyKey)
			continue
		}
		end.Calls[i].Executed++
	}
	return nil
}

// replay returns the differences of a fold of all sessions from what is stored,
// and from the session-actor's state. It reads how the children ended.
func (g *gather) replay(ctx context.Context, own *client.Replayed, end *End) (differences []string, err error) {
	_, err = g.client.Verify(ctx, client.VerifyOptions{Each: func(r *client.Replayed) error {
		for _, d := range r.Differences {
			differences = append(differences, r.Session+": "+d)
		}
		if r.State != nil && r.State.Tree != nil && r.State.Tree.Parent != nil {
			g.children, end.Children = append(g.children, r.Session), append(end.Children, childEnd(r.State))
		}
		return nil
	}})
	if err != nil {
		return nil, err
	}
	slices.Sort(end.Children)
	view, err := g.view(ctx)
	if err != nil {
		return nil, err
	}
	if view.Seq > own.Seq { // a session-actor that began anew has settled a wake that was late
		if own, err = g.client.Replay(ctx, g.sid, view.Seq, nil); err != nil {
			return nil, err
		}
	}
	if view.Seq != own.Seq || view.Hash != own.Hash.String() {
		differences = append(differences, fmt.Sprintf("the session-actor has %s at %d, the log gives %s at %d", view.Hash, view.Seq, own.Hash, own.Seq))
	}
	return differences, nil
}

// notices reads the notices of the session.
func (g *gather) notices(ctx context.Context) (all []Notice, err error) {
	last, err := g.client.LastNotice(ctx)
	if err != nil || last == 0 {
		return nil, err
	}
	for n, err := range g.client.Notices(ctx, "", 1) {
		if err != nil {
			return nil, err
		}
		if n.Session == g.sid {
			all = append(all, Notice{N: n.N, Type: n.Type, Text: string(n.Data)})
		}
		if n.StreamSeq >= last {
			break
		}
	}
	return all, nil
}

// item returns the text of an item of the transcript.
func (g *gather) item(ctx context.Context, it session.Item) (Item, error) {
	item := Item{Role: it.Role, Text: it.Code, Unknown: it.Code == session.CodeOutcomeUnknown}
	e := g.events[it.Seq]
	var (
		request  session.RunRequested
		steer    session.SteerRequested
		calls    session.ToolCallsObserved
		answer   session.GenerationSettled
		result   session.ToolCallSettled
		reply    session.ReplyGiven
		schedule session.ScheduleSet
		child    session.ChildSettled
		enabled  session.WorkspaceSnapshotReady
		contents []*session.Content
	)
	switch {
	case it.Code != "":
		return item, nil
	case typeOf(e, &request) == session.TypeRunRequested:
		contents = append(contents, &request.Input)
	case typeOf(e, &steer) == session.TypeSteerRequested:
		contents = append(contents, &steer.Input)
	case typeOf(e, &calls) == session.TypeToolCallsObserved:
		contents = append(contents, calls.Text)
		for _, c := range calls.Calls {
			contents = append(contents, &session.Content{Text: c.ToolName + " " + c.Arguments})
		}
	case typeOf(e, &answer) == session.TypeGenerationSettled:
		contents = append(contents, answer.Text)
	case typeOf(e, &result) == session.TypeToolCallSettled:
		item.Unknown = result.Status == string(session.CallUnknown)
		item.Text = result.Status
		if result.Error != nil {
			item.Text += " " + result.Error.Code + ": " + result.Error.Detail
		}
		contents = append(contents, result.Output)
	case typeOf(e, &schedule) == session.TypeScheduleSet:
		contents = append(contents, &schedule.Input)
	case typeOf(e, &reply) == session.TypeReplyGiven:
		contents = append(contents, reply.Output)
	case typeOf(e, &child) == session.TypeChildSettled:
		contents = append(contents, child.Output)
	case typeOf(e, &enabled) == session.TypeWorkspaceSnapshotReady:
		contents = append(contents, enabled.Output)
	default:
		return item, fmt.Errorf("event %d of the transcript: no text", it.Seq)
	}
	for _, c := range contents {
		text, err := g.text(ctx, c)
		if err != nil {
			return item, fmt.Errorf("event %d of the transcript: %w", it.Seq, err)
		}
		item.Text += "\n" + text
	}
	item.Text = g.cast.plain(g.dir, item.Text)
	return item, nil
}

// text returns the text of a content, inline or from a blob.
func (g *gather) text(ctx context.Context, c *session.Content) (string, error) {
	switch {
	case c == nil:
		return "", nil
	case c.Blob != nil:
		data, err := g.client.Blob(ctx, *c.Blob)
		return string(data), err
	}
	text := c.Text
	for i := range c.Parts {
		part, err := g.text(ctx, &c.Parts[i])
		if err != nil {
			return "", err
		}
		text += part
	}
	return text, nil
}
