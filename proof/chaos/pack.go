package chaos

import (
	"context"
	"errors"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/spaces"
	"github.com/refold/refold/bridge"
	"github.com/refold/refold/bridge/function"
	"github.com/refold/refold/internal/llm/recorded"
	"github.com/refold/refold/internal/llm/scripted"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/space"
)

// The conversation in which the model enables a pack during a run: its session
// and its model. The pack has the same name.
const (
	packSession = "pack"
	packModel   = "pack"
	packName    = "seats"
)

// packScript is the model: its second turn has the tool of the enabled pack.
const packScript = `
model: pack
turns:
  - shown: {last: user, tools: {include: [extensions_enable], exclude: [seats_free]}}
    say: I enable the pack that knows of seats.
    calls: [{tool: extensions_enable, arguments: {extension: seats}}]
  - shown:
      tools: {include: [seats_free]}
      results: [{tool: extensions_enable, error: false, text: seats.free}]
    calls: [{tool: seats_free, arguments: {room: Blue}}]
  - shown: {results: [{tool: seats_free, error: false, text: "8"}]}
    say: Eight seats are free.
`

// packMarks is the length of End.Spaces if nothing is wrong: a pack that is
// staged and applied, with its registry.
const packMarks = 4

func packConversation() Conversation {
	return Conversation{
		ID: packSession, Session: packSession, Says: []string{"How many seats are free in Blue?"}, Ends: completes, Marks: packMarks,
		Config: []byte(`{"provider":"` + packModel + `","model":"` + packModel + `"}`),
	}
}

// allowPack lets models of a record enable the pack without approval.
func allowPack(record *session.InstallRecord) error {
	hash, err := seats(nil).Hash()
	if err != nil {
		return err
	}
	record.Spaces = []spaces.Grant{{
		Space: packName, Kind: space.Pack, Digests: []string{hash}, Attach: []string{spaces.AttachModel}, RunMS: syncRunMS,
	}}
	record.Policy.Approval = append(record.Policy.Approval, planner.ApprovalRule{Decision: planner.Allow, Tools: []string{"refold.extensions.enable"}})
	return nil
}

// seats is the pack. Its executions are in the ledger.
func seats(ledger *recorded.Ledger) bridge.Pack {
	type question struct {
		Room string `json:"room"`
	}
	free := func(ctx context.Context, _ question) (int, error) {
		call, _ := function.CallOf(ctx)
		return 8, ledger.Note(call)
	}
	return bridge.Pack{Name: packName, Version: "1.0.0", Tools: []*function.Function{
		function.New(packName+".free", free, function.Description("Tells how many seats are free in a room.")),
	}}
}

// servePack registers the model and the pack with a bridge.
func servePack(b *bridge.Bridge, ledger *recorded.Ledger) error {
	script, err := scripted.Parse(packModel, []byte(packScript))
	if err != nil {
		return err
	}
	return errors.Join(b.Model(packModel, scripted.NewModel(script)), b.Pack(seats(ledger)))
}
