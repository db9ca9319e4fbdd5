package chaos

import (
	"strings"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/internal/llm/scripted"
)

// The conversation that becomes too long for its model twice: its session and its model.
const (
	longSession = "long"
	longModel   = "long"
)

// longCompactions is how many summaries are written if nothing is wrong: before the first
// turns of the second and the third run.
const longCompactions = 2

// longScript is the model. It says how many tokens it was shown, as providers do: too many
// for the context of the runs.
var longScript = `
model: long
rules:
  - shown: {asked: '^Count', last: user}
    say: ` + strings.Repeat("one two three four ", 20) + `
    usage: {input_tokens: 500, output_tokens: 80}
`

func longConversation() Conversation {
	return Conversation{
		ID: longSession, Session: longSession, Says: []string{"Count to four.", "Count on.", "Count again."},
		Ends: []RunEnd{completes[0], completes[0], completes[0]}, Compactions: longCompactions,
		Config: []byte(`{"provider":"` + longModel + `","model":"` + longModel + `","context":{"tokens":600,"keep_turns":1,"summary":{"tokens_max":100}}}`),
	}
}

// serveLong registers the model with a bridge.
func serveLong(b *bridge.Bridge) error {
	script, err := scripted.Parse(longModel, []byte(longScript))
	if err != nil {
		return err
	}
	return b.Model(longModel, scripted.NewModel(script))
}
