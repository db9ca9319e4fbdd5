package session

import (
	"encoding/json"
	"slices"

	"github.com/refold/refold/codec"
)

// View is what people see: a projection of one state, as JSON. Adding a field
// to it changes no state.
type View struct {
	Session     string     `json:"session"`
	Status      string     `json:"status"`    // open, closed
	Lifecycle   Lifecycle  `json:"lifecycle"` // of the active run, else of the last one; empty: none yet
	WaitsFor    string     `json:"waits_for"` // model, tools, step, host_loop, approval, space, input, resume, retry, nobody
	Seq         uint64     `json:"seq"`       // of the latest event folded
	Events      uint64     `json:"events"`
	Hash        string     `json:"hash"`  // BLAKE2b-256 of the state's canonical bytes
	Chain       string     `json:"chain"` // BLAKE2b-256 over all events
	Clock       int64      `json:"clock"` // Unix ms
	Rules       int        `json:"rules"`
	Install     string     `json:"install"`
	Registry    string     `json:"registry"` // SHA-256 of the registry that the next turn is offered from
	Profile     string     `json:"profile,omitempty"`
	Overrides   *ViewLists `json:"overrides,omitempty"` // of the session
	HostSession *ViewHost  `json:"host_session,omitempty"`
	Facts       []ViewFact `json:"facts,omitempty"`
	ViewSpaces
	Run   *ViewRun     `json:"run,omitempty"`
	Last  *ViewEnded   `json:"last,omitempty"`
	Queue []ViewRun    `json:"queue,omitempty"`
	Turn  *ViewTurn    `json:"turn,omitempty"` // the latest
	Batch *ViewBatch   `json:"batch,omitempty"`
	Tools []ViewTool   `json:"tools,omitempty"` // of the latest turn: every tool of the registry, and why
	Open  []ViewEffect `json:"open,omitempty"`
	// Unserved are the targets of what is open, as llm/openai, for which no
	// bridge was heard of late. The state does not have them: the session-actor
	// that answers fills them in.
	Unserved []string `json:"unserved,omitempty"`
	// Troubles are what keeps what is open from being settled. The session-actor
	// fills them in too.
	Troubles   []Trouble  `json:"troubles,omitempty"`
	Items      int        `json:"items"` // length of the transcript
	Transcript []ViewItem `json:"transcript,omitempty"`
	Usage      UsageTotal `json:"usage"`
	Cost       int64      `json:"cost,omitempty"` // of all runs, micro-units
}

// ViewHost is the host session.
type ViewHost struct {
	ID     string `json:"id,omitempty"`
	Status string `json:"status"`
	Root   string `json:"root,omitempty"`
	Route  string `json:"route,omitempty"`
}

// ViewLists are the lists of one scope.
type ViewLists struct {
	Enable  []string `json:"enable,omitempty"`
	Disable []string `json:"disable,omitempty"`
	Force   []string `json:"force,omitempty"`
}

// ViewFact is one fact.
type ViewFact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// ViewRun is a queued or active run.
type ViewRun struct {
	Number     uint32     `json:"number"`
	Seq        uint64     `json:"seq"`
	Submission string     `json:"submission,omitempty"`
	Provider   string     `json:"provider"`
	Model      string     `json:"model"`
	Roles      []string   `json:"roles,omitempty"`
	Overrides  *ViewLists `json:"overrides,omitempty"` // the run's own, from its config or set since
	Turns      uint32     `json:"turns"`
	TurnsMax   int        `json:"turns_max"`
	Usage      UsageTotal `json:"usage"`
	Cost       int64      `json:"cost,omitempty"` // micro-units
	// Context is what step rules and hooks have set, an object.
	Context  json.RawMessage `json:"context,omitempty"`
	Used     []string        `json:"used,omitempty"`     // tool_ids that were carried out in earlier turns
	Steers   []uint64        `json:"steers,omitempty"`   // sequences of steers that no turn has taken yet
	Deadline int64           `json:"deadline,omitempty"` // Unix ms; stands still while paused
	Budget   *Budget         `json:"budget,omitempty"`
	Spent    bool            `json:"spent,omitempty"`    // paused by its budget
	RetryAt  int64           `json:"retry_at,omitempty"` // Unix ms: the generation is asked again then
	Attempt  uint32          `json:"attempt,omitempty"`  // of the latest turn's generation, from 1
	// Workspace is the manifest that the run is under instead of the applied one:
	// hex, or none.
	Workspace string `json:"workspace,omitempty"`
}

// ViewEnded is the run that ended last.
type ViewEnded struct {
	Number     uint32      `json:"number"`
	Lifecycle  Lifecycle   `json:"lifecycle"`
	Code       string      `json:"code,omitempty"`
	Detail     string      `json:"detail,omitempty"`
	OverBudget *OverBudget `json:"over_budget,omitempty"` // absent: it ended within its budget
}

// ViewEffect is an open effect.
type ViewEffect struct {
	Effect   string `json:"effect"`
	Class    Class  `json:"class"`
	Target   string `json:"target"`
	Deadline int64  `json:"deadline"` // Unix ms
}

// Trouble is what keeps a session that waits, or will: a provider that fails, a
// bridge that is gone. Bridges say it of their targets in heartbeats, and views
// of what is open.
type Trouble struct {
	Target  string   `json:"target"`            // llm/openai
	Code    string   `json:"code"`              // of the latest failure, or one of those below
	Detail  string   `json:"detail,omitempty"`  // for people, at most TroubleDetailMax bytes
	Since   int64    `json:"since,omitempty"`   // Unix ms
	Next    int64    `json:"next,omitempty"`    // Unix ms: the next try; it may be under way
	Effects []string `json:"effects,omitempty"` // of a view: what waits for it
}

// Codes of troubles that are no failure of a try.
const (
	TroubleLacks    = "lacks"         // the target is served without what it needs, such as a key
	TroubleExecutor = "executor"      // what carries out calls says that something is wrong
	TroubleSilent   = "bridge_silent" // the bridge that holds the effect is not heard
)

// ViewItem is one item of the transcript: where its text stands in the log.
type ViewItem struct {
	Role Role   `json:"role"`
	Seq  uint64 `json:"seq"`
	Call int    `json:"call,omitempty"`
	Code string `json:"code,omitempty"`
	Edit uint64 `json:"edit,omitempty"` // of the approval that changed the arguments
}

// viewItemsMax is how many items, the latest ones, a view lists.
const viewItemsMax = 100

// View returns the projection of the state as it is.
func (s *State) View() View {
	v := View{
		Session: s.Session, Status: "open", WaitsFor: s.waitsFor(), Seq: s.Seq, Events: s.Count,
		Hash: s.Hash().String(), Chain: s.Chain.String(), Clock: s.Clock, Rules: int(s.Rules), Install: s.Install.String(),
		Registry: s.NextRegistry().Hash().String(), Profile: s.Profile, Items: len(s.Items), Usage: s.Usage, Cost: s.Cost,
		ViewSpaces: s.viewSpaces(), Turn: s.viewTurn(), Batch: s.viewBatch(), Tools: s.viewTools(),
	}
	if s.Closed {
		v.Status = "closed"
	}
	if o := s.Overrides; o != nil {
		v.Overrides = viewLists(o.Enable, o.Disable, o.Force)
	}
	if s.Host != nil {
		v.HostSession = &ViewHost{ID: s.Host.ID, Status: s.Host.Status, Root: s.Host.Root, Route: s.Host.Route}
	}
	for _, f := range s.Facts {
		v.Facts = append(v.Facts, ViewFact{Name: f.Name, Value: f.Value})
	}
	if s.Last != nil {
		v.Lifecycle = s.Last.Lifecycle
		v.Last = &ViewEnded{Number: s.Last.Number, Lifecycle: s.Last.Lifecycle, Code: s.Last.Code, Detail: s.Last.Detail, OverBudget: s.Last.OverBudget}
	}
	if s.Run != nil {
		run := viewRun(s.Run)
		if t := s.Turn; s.turnIsRuns() {
			run.RetryAt, run.Attempt = t.RetryAt, uint32(t.Attempt)+1
		}
		v.Lifecycle, v.Run = s.Run.Lifecycle, &run
	}
	for i := range s.Queue {
		v.Queue = append(v.Queue, viewRun(&s.Queue[i]))
	}
	for _, e := range s.Open() {
		v.Open = append(v.Open, ViewEffect{Effect: e.Name, Class: e.Class, Target: e.Target, Deadline: e.Deadline})
	}
	for _, it := range s.Items[max(0, len(s.Items)-viewItemsMax):] {
		v.Transcript = append(v.Transcript, ViewItem{Role: it.Role, Seq: it.Seq, Call: it.Call, Code: it.Code, Edit: it.Edit})
	}
	return v
}

// waitsFor says for whom the session waits: for what it has asked, and when
// nothing but wakes is open, for a person or the time.
func (s *State) waitsFor() string {
	run, t := s.Run, s.Turn
	switch {
	case run == nil:
		return "nobody"
	case !s.turnIsRuns():
		return s.waitsIdle()
	case t.stepOpen():
		return "step"
	case t.Open:
		return "model"
	}
	waits := s.waitsIdle()
	if t.Batch == nil {
		return waits
	}
	for i := range t.Batch.Calls {
		switch c := &t.Batch.Calls[i]; {
		case c.Status == CallOpen && c.Sync > 0:
			waits = "space"
		case c.Status == CallOpen && !s.isHostLoop(c):
			return "tools"
		case c.Status == CallOpen:
			waits = "host_loop"
		case c.Status == CallAwaiting && waits != "host_loop":
			waits = "approval"
		}
	}
	return waits
}

// waitsIdle says for whom a run waits that has asked nothing.
func (s *State) waitsIdle() string {
	switch {
	case s.Run.Lifecycle == Paused:
		return "resume"
	case s.Run.Lifecycle == WaitingInput:
		return "input"
	case s.turnIsRuns() && s.Turn.RetryAt > 0:
		return "retry"
	}
	return "nobody"
}

func viewRun(r *Run) ViewRun {
	var context json.RawMessage
	if len(r.Context) > 0 {
		context, _ = codec.ToJSON(r.Context) // which was canonical when it was set
	}
	return ViewRun{
		Context: context, Used: slices.Clone(r.Used),
		Number: r.Number, Seq: r.Seq, Submission: r.Submission, Provider: r.Config.Provider, Model: r.Config.Model,
		Roles: r.Roles, Overrides: viewLists(r.Config.Enable, r.Config.Disable, r.Config.Force),
		Turns: r.Turns, TurnsMax: r.Config.turnsMax(), Usage: r.Usage, Cost: r.Cost,
		Steers: seqsOf(r.Steers), Deadline: r.Deadline, Budget: r.Config.Budget, Spent: r.Breach, Workspace: r.Config.Workspace,
	}
}

// viewLists returns lists as people see them, nil if all are empty.
func viewLists(enable, disable, force []string) *ViewLists {
	if len(enable)+len(disable)+len(force) == 0 {
		return nil
	}
	return &ViewLists{Enable: enable, Disable: disable, Force: force}
}
