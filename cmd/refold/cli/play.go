package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/llm"
	"github.com/refold/refold/internal/llm/recorded"
)

// playing is how many conversations of a recording run at once.
const playing = 8

// playAll runs one conversation of a recording, or all of them.
func (d demoCommand) playAll(ctx context.Context, s streams, c *client.Client, m *model) error {
	if d.All {
		return playMany(ctx, s.out, c, m, m.recording.Conversations())
	}
	conversation := m.recording.Conversations()[0]
	if d.Conversation != "" {
		var found bool
		if conversation, found = m.recording.Conversation(d.Conversation); !found {
			return fmt.Errorf("the recording has no conversation %q", d.Conversation)
		}
	}
	return playOne(ctx, s.out, c, m, conversation)
}

// playOne runs a conversation and prints its events.
func playOne(ctx context.Context, out io.Writer, c *client.Client, m *model, conversation *recorded.Conversation) error {
	fmt.Fprintf(out, "Conversation %s: %d user messages, %d calls\n\n", conversation.ID, len(conversation.Users()), conversation.Calls())
	t := printEvents(ctx, out, c, conversation.Session())
	defer t.stop()
	last, err := play(ctx, c, conversation)
	if err != nil {
		return err
	}
	if err := t.until(last); err != nil {
		return err
	}
	account, err := tally(m, []*recorded.Conversation{conversation})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\nledger: %d of %d calls, each once\n", len(account.Executed), conversation.Calls())
	return foldAgain(ctx, out, c, conversation.Session())
}

// play runs a conversation: each user message is a run, and each must end as in the
// recording. It returns the sequence of the last run's last event.
func play(ctx context.Context, c *client.Client, conversation *recorded.Conversation) (last uint64, err error) {
	sid := conversation.Session()
	from, err := c.LastNotice(ctx)
	if err != nil {
		return 0, err
	}
	for i, text := range conversation.Users() {
		seq, err := c.Run(ctx, sid, text, client.RunOptions{})
		if err != nil {
			return 0, fmt.Errorf("%s: run %d: %w", conversation.ID, i+1, err)
		}
		end, err := c.End(ctx, sid, seq, from+1, func(n client.Notice) { last, from = n.Seq, n.StreamSeq })
		if err != nil {
			return 0, fmt.Errorf("%s: run %d: %w", conversation.ID, i+1, err)
		}
		want := conversation.Runs[i].Ends()
		if string(end.Lifecycle) != want.Lifecycle || end.Code != want.Code {
			return 0, fmt.Errorf("%s: run %d ended %s %s (%s), the recording's ends %s %s",
				conversation.ID, i+1, end.Lifecycle, end.Code, end.Detail, want.Lifecycle, want.Code)
		}
	}
	return last, nil
}

// playMany runs conversations concurrently and prints a summary.
func playMany(ctx context.Context, out io.Writer, c *client.Client, m *model, conversations []*recorded.Conversation) error {
	failures := make([]error, len(conversations))
	room := make(chan struct{}, playing)
	var running sync.WaitGroup
	for i, conversation := range conversations {
		room <- struct{}{}
		running.Go(func() {
			defer func() { <-room }()
			_, failures[i] = play(ctx, c, conversation)
			if failures[i] == nil {
				end := conversation.Ends()
				how := end.Lifecycle
				if end.Code == llm.CodeRecordingEnded {
					how = "where the recording ends"
				}
				fmt.Fprintf(out, "%s: %d runs, %d calls, ended %s\n", conversation.ID, len(conversation.Runs), conversation.Calls(), how)
			}
		})
	}
	running.Wait()
	failed := errors.Join(failures...)
	account, err := tally(m, conversations)
	replays, events, differ := 0, uint64(0), []string(nil)
	_, replayErr := c.Verify(ctx, client.VerifyOptions{Each: func(r *client.Replayed) error {
		replays++
		events += r.Events
		if !r.Identical() {
			differ = append(differ, verdictLine(r))
		}
		return nil
	}})
	calls, ended := 0, 0
	for i, conversation := range conversations {
		calls += conversation.Calls()
		if failures[i] == nil {
			ended++
		}
	}
	verdict := "identical"
	if len(differ) > 0 {
		verdict = fmt.Sprintf("DIFFERENT in %d sessions", len(differ))
	}
	fmt.Fprintf(out, "ended %d of %d conversations as recorded; ledger %d of %d calls, each once; replay: %s (%d sessions, %d events)\n",
		ended, len(conversations), len(account.Executed), calls, verdict, replays, events)
	for _, d := range differ {
		fmt.Fprintln(out, d)
	}
	if len(differ) > 0 {
		failed = errors.Join(failed, errors.New("a replay differs"))
	}
	return errors.Join(failed, err, replayErr)
}

// tally compares the ledger with the entries that the conversations should leave.
func tally(m *model, conversations []*recorded.Conversation) (recorded.Account, error) {
	entries, err := recorded.ReadLedger(m.ledger)
	if err != nil {
		return recorded.Account{}, err
	}
	var want []recorded.Entry
	for _, conversation := range conversations {
		want = append(want, conversation.Ledger(conversation.Session())...)
	}
	account := recorded.Tally(want, entries)
	if err := account.Err(); err != nil {
		return account, fmt.Errorf("ledger: %w", err)
	}
	return account, nil
}
