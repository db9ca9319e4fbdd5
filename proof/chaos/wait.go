package chaos

import (
	"context"
	"errors"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/llm/scripted"
)

// The conversation in which nobody carries two calls out: its session and its model.
const (
	waitSession = "wait"
	waitModel   = "wait"
)

// waitScript is the model: it asks a person, and sleeps meanwhile.
const waitScript = `
model: wait
turns:
  - shown: {last: user, tools: {include: [ask_person, sleep]}}
    say: I ask, and wait a second.
    calls:
      - {tool: ask_person, arguments: {question: Which colour?}}
      - {tool: sleep, arguments: {seconds: 1}}
  - shown: {results: [{tool: ask_person, error: false, text: Blue}, {tool: sleep, error: false}]}
    say: It is blue.
`

func waitConversation() Conversation {
	return Conversation{
		ID: waitSession, Session: waitSession, Says: []string{"Paint the door."}, Ends: completes, Reply: "Blue",
		Config: []byte(`{"provider":"` + waitModel + `","model":"` + waitModel + `","enable":["ask_person","sleep"]}`),
	}
}

// reply answers the run's question once it is asked.
func (t *trial) reply(ctx context.Context, text string) error {
	var asked []client.Question
	err := until(ctx, "no question is asked", func() bool {
		asking, cancel := context.WithTimeout(ctx, askWithin)
		defer cancel()
		var err error
		asked, err = t.client.Questions(asking, t.explorer.conversation.Session)
		return err == nil && len(asked) > 0
	})
	if err != nil {
		return err
	}
	return t.retry(ctx, func(ctx context.Context) error {
		_, err := t.client.Reply(ctx, asked[0], session.Content{Text: text}, client.ReplyOptions{ID: "reply"})
		return err
	})
}

// serveWait registers the model with a bridge.
func serveWait(b *bridge.Bridge) error {
	script, err := scripted.Parse(waitModel, []byte(waitScript))
	return errors.Join(err, b.Model(waitModel, scripted.NewModel(script)))
}
