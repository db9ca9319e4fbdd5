package chaos

import (
	"fmt"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/llm/scripted"
	"github.com/refold/refold/planner"
)

// The conversation with a tree of sessions: three levels, of which each session has two
// children. Its session, its model, and the tool that a child carries out.
const (
	treeSession = "tree"
	treeModel   = "tree"
	treeTool    = "delegate"
)

// What the tree uses if nothing is wrong: of seven sessions, three have two turns and four
// have one, and each turn uses eleven tokens.
const (
	treeChildren = 6
	treeTokens   = (3*2 + 4) * 11
)

// treeScript is the model of all levels.
const treeScript = `
model: tree
rules:
  - shown: {asked: '^level 1', last: user}
    calls: [{tool: delegate, arguments: {input: level 2}}, {tool: delegate, arguments: {input: level 2}}]
    usage: {input_tokens: 10, output_tokens: 1}
  - shown: {asked: '^level 2', last: user}
    calls: [{tool: delegate, arguments: {input: level 3}}, {tool: delegate, arguments: {input: level 3}}]
    usage: {input_tokens: 10, output_tokens: 1}
  - say: That was ${user}.
    usage: {input_tokens: 10, output_tokens: 1}
`

// treeConfig is that of the runs of all levels.
const treeConfig = `{"provider":"` + treeModel + `","model":"` + treeModel + `","active_tools":["` + treeTool + `"]}`

func treeConversation() Conversation {
	return Conversation{
		ID: treeSession, Session: treeSession, Says: []string{"level 1"}, Ends: completes, Children: treeChildren, Tokens: treeTokens,
		Config: []byte(treeConfig),
	}
}

// allowTree adds the tool to a record.
func allowTree(record *session.InstallRecord) error {
	agent, err := codec.FromJSON([]byte(treeConfig))
	if err != nil {
		return err
	}
	schema, err := codec.FromJSON([]byte(`{"type":"object","properties":{"input":{"type":"string"}},"required":["input"]}`))
	record.Tools = append(record.Tools, planner.ToolSpec{
		ToolID: treeTool, ToolName: treeTool, ArgsSchema: schema, Access: planner.AccessRead, ParallelSafe: true,
		Availability: []planner.Rule{{Kind: "always"}}, Executor: planner.Executor{Kind: planner.ExecutorSession, Agent: agent},
	})
	return err
}

// serveTree registers the model with a bridge.
func serveTree(b *bridge.Bridge) error {
	script, err := scripted.Parse(treeModel, []byte(treeScript))
	if err != nil {
		return err
	}
	return b.Model(treeModel, scripted.NewModel(script))
}

// childEnd describes the end of a child. Its name differs between trials.
func childEnd(s *session.State) string {
	p := s.Tree.Parent
	end := session.Ended{}
	if s.Last != nil {
		end = *s.Last
	}
	return fmt.Sprintf("depth %d, call %s: %s %s, closed: %v", p.Depth, p.Call, end.Lifecycle, end.Code, s.Closed)
}
