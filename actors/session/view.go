package session

// View is what people see: a projection of one state, as JSON. Adding a field
// to it changes no state.
type View struct {
	Session     string       `json:"session"`
	Status      string       `json:"status"`    // open
	Lifecycle   Lifecycle    `json:"lifecycle"` // of the active run, else of the last one; empty: none yet
	WaitsFor    string       `json:"waits_for"` // model, tools, step, host_loop, nobody
	Seq         uint64       `json:"seq"`       // of the latest event folded
	Events      uint64       `json:"events"`
	Hash        string       `json:"hash"` // of the state's canonical bytes
	Chain       string       `json:"chain"`
	Clock       int64        `json:"clock"` // Unix ms
	Rules       int          `json:"rules"`
	Install     string       `json:"install"`
	Registry    string       `json:"registry"` // hash of the registry that the next turn is offered from
	Profile     string       `json:"profile,omitempty"`
	Overrides   *ViewLists   `json:"overrides,omitempty"` // of the session
	HostSession *ViewHost    `json:"host_session,omitempty"`
	Facts       []ViewFact   `json:"facts,omitempty"`
	Run         *ViewRun     `json:"run,omitempty"`
	Last        *ViewEnded   `json:"last,omitempty"`
	Queue       []ViewRun    `json:"queue,omitempty"`
	Turn        *ViewTurn    `json:"turn,omitempty"` // the latest
	Batch       *ViewBatch   `json:"batch,omitempty"`
	Tools       []ViewTool   `json:"tools,omitempty"` // of the latest turn: every tool of the registry, and why
	Open        []ViewEffect `json:"open,omitempty"`
	Items       int          `json:"items"` // length of the transcript
	Transcript  []ViewItem   `json:"transcript,omitempty"`
	Usage       UsageTotal   `json:"usage"`
}

// ViewHost is the host session.
type ViewHost struct {
	ID     string `json:"id,omitempty"`
	Status string `json:"status"`
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
}

// ViewEnded is the run that ended last.
type ViewEnded struct {
	Number    uint32    `json:"number"`
	Lifecycle Lifecycle `json:"lifecycle"`
	Code      string    `json:"code,omitempty"`
	Detail    string    `json:"detail,omitempty"`
}

// ViewEffect is an open effect.
type ViewEffect struct {
	Effect   string `json:"effect"`
	Class    Class  `json:"class"`
	Target   string `json:"target"`
	Deadline int64  `json:"deadline"` // Unix ms
}

// ViewItem is one item of the transcript: where its text stands in the log.
type ViewItem struct {
	Role Role   `json:"role"`
	Seq  uint64 `json:"seq"`
	Call int    `json:"call,omitempty"`
	Code string `json:"code,omitempty"`
}

// viewItemsMax is how many items, the latest ones, a view lists.
const viewItemsMax = 100

// View returns the projection of the state as it is.
func (s *State) View() View {
	v := View{
		Session: s.Session, Status: "open", WaitsFor: s.waitsFor(), Seq: s.Seq, Events: s.Count,
		Hash: s.Hash().String(), Chain: s.Chain.String(), Clock: s.Clock, Rules: s.Rules, Install: s.Install.String(),
		Registry: s.registry.Hash().String(), Profile: s.Profile, Items: len(s.Items), Usage: s.Usage,
		Turn: s.viewTurn(), Batch: s.viewBatch(), Tools: s.viewTools(),
	}
	if o := s.Overrides; o != nil {
		v.Overrides = viewLists(o.Enable, o.Disable, o.Force)
	}
	if s.Host != nil {
		v.HostSession = &ViewHost{ID: s.Host.ID, Status: s.Host.Status, Route: s.Host.Route}
	}
	for _, f := range s.Facts {
		v.Facts = append(v.Facts, ViewFact{Name: f.Name, Value: f.Value})
	}
	if s.Last != nil {
		v.Lifecycle = s.Last.Lifecycle
		v.Last = &ViewEnded{Number: s.Last.Number, Lifecycle: s.Last.Lifecycle, Code: s.Last.Code, Detail: s.Last.Detail}
	}
	if s.Run != nil {
		run := viewRun(s.Run)
		v.Lifecycle, v.Run = Running, &run
	}
	for i := range s.Queue {
		v.Queue = append(v.Queue, viewRun(&s.Queue[i]))
	}
	for _, e := range s.Open() {
		v.Open = append(v.Open, ViewEffect{Effect: e.Name, Class: e.Class, Target: e.Target, Deadline: e.Deadline})
	}
	for _, it := range s.Items[max(0, len(s.Items)-viewItemsMax):] {
		v.Transcript = append(v.Transcript, ViewItem{Role: it.Role, Seq: it.Seq, Call: it.Call, Code: it.Code})
	}
	return v
}

// waitsFor says for whom the session waits.
func (s *State) waitsFor() string {
	t := s.Turn
	switch {
	case s.Run == nil:
		return "nobody"
	case t.Step != nil && t.Step.Open:
		return "step"
	case t.Open:
		return "model"
	}
	for i := range t.Batch.Calls {
		if c := &t.Batch.Calls[i]; c.Status == CallOpen && !s.isHostLoop(c) {
			return "tools"
		}
	}
	return "host_loop"
}

func viewRun(r *Run) ViewRun {
	return ViewRun{
		Number: r.Number, Seq: r.Seq, Submission: r.Submission, Provider: r.Config.Provider, Model: r.Config.Model,
		Roles: r.Roles, Overrides: viewLists(r.Config.Enable, r.Config.Disable, r.Config.Force),
		Turns: r.Turns, TurnsMax: r.Config.turnsMax(), Usage: r.Usage,
	}
}

// viewLists returns lists as people see them, nil if all are empty.
func viewLists(enable, disable, force []string) *ViewLists {
	if len(enable)+len(disable)+len(force) == 0 {
		return nil
	}
	return &ViewLists{Enable: enable, Disable: disable, Force: force}
}
