package session

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/refold/refold/actors/sentence"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/space"
)

// A call of executor kind session is a run of another session, the child. No bridge
// carries it out: the owners of both sessions send each other events through the door
// child. Nothing waits for such an event: the parent repeats its request while the call
// is open, and the child answers each. So an event may be lost, and stored twice
// (docs/adr/0109-children.md).

// Message is an event for another session, an output of the event that caused it.
// Storing it twice does no harm.
type Message struct {
	Session string // the receiver
	Payload []byte // of an event of the door child
}

// Messages returns the events for other sessions that the last folded event caused, once.
// The caller must store them before the event counts as stored.
func (s *State) Messages() []Message {
	if s.scratch == nil {
		return nil
	}
	all := s.messages
	s.messages = nil
	if s.isIdle() && len(s.progress) == 0 {
		s.releaseScratch()
	}
	return all
}

// send adds an event for another session to the outputs.
func (s *State) send(sid, typ string, body any) error {
	payload, err := Envelope{By: "session:" + s.Session, Type: typ}.With(body)
	switch {
	case err != nil:
		return err
	case len(payload) > EventBytesMax:
		return fmt.Errorf("its event would have %d bytes, at most %d", len(payload), EventBytesMax)
	}
	s.messages = append(s.messages, Message{Session: sid, Payload: payload})
	return nil
}

// ChildRequested asks a session to carry out a call of its parent. As the first event of
// a session it makes that session the parent's child. A repeated one gets the same answer.
//
//wire:example {"call": "r1t1c0", "config": {"provider": "anthropic", "model": "m"}, "depth": 1, "facts": {"role": "admin"}, "input": {"text": "Find the papers."}, "keep": true, "origin": {"run": 1, "session": "p1"}, "parent": "p1", "registry": {"tools": []}, "roles": ["member"], "root": "p1"}
type ChildRequested struct {
	// The parent's call.
	Call string `msgpack:"call" lim:"@call"`
	// The config of the run, whole.
	Config RunConfig `msgpack:"config"`
	// Parents above it: 1 is a child of a session that is no child.
	Depth int `msgpack:"depth" lim:"1..ChildDepthMax"`
	// Facts of the parent that the binding hands down.
	Facts codec.Pairs `msgpack:"facts,omitempty" lim:"..FactsMax,key=1..FactNameBytesMax,value=..FactValueBytesMax"`
	// The input of the run.
	Input Content `msgpack:"input" lim:"filled"`
	// Whether the session stays open after the run, for later calls.
	Keep bool `msgpack:"keep,omitempty"`
	// The run from which all calls down to this one come.
	Origin Origin `msgpack:"origin"`
	// The session whose call it is.
	Parent string `msgpack:"parent" lim:"@session"`
	// The parent's own registry, as the data of a ToolRegistrySet. Absent: it has the
	// install record's.
	Registry codec.Raw `msgpack:"registry,omitempty" lim:"as=ToolRegistrySet"`
	// Roles of the parent's run.
	Roles []string `msgpack:"roles,omitempty" lim:"..RolesMax,item=1..RoleBytesMax"`
	// The session at the top of the tree.
	Root string `msgpack:"root" lim:"@session"`
}

// Origin is a run that carries out no call of another session.
type Origin struct {
	// Its number.
	Run uint32 `msgpack:"run" json:"run" lim:"@run"`
	// Its session.
	Session string `msgpack:"session" json:"session" lim:"@session"`
}

// ChildStopped asks a child to end the run for a call, or the whole session. A child that
// does not know the call yet refuses it when it comes.
//
//wire:example {"call": "r1t1c0", "how": "cancel", "parent": "p1", "root": "p1"}
type ChildStopped struct {
	// The parent's call.
	Call string `msgpack:"call" lim:"@call"`
	// cancel: at once. interrupt: open effects may settle. close: at once, and the session
	// is closed, whatever it does.
	How string `msgpack:"how" lim:"enum=cancel|interrupt|close"`
	// The session whose call it is.
	Parent string `msgpack:"parent" lim:"@session"`
	// The session at the top of the tree.
	Root string `msgpack:"root" lim:"@session"`
}

// How a parent stops a child.
const (
	HaltCancel    = "cancel"
	HaltInterrupt = "interrupt"
	HaltClose     = "close"
)

// ChildSettled settles a call of executor kind session: the child's run has ended.
//
//wire:rule {"if": {"properties": {"status": {"const": "succeeded"}}}, "then": {"properties": {"error": false}}}
//wire:example {"cost": 12, "effect": "r1t1c0", "error": {"code": "budget"}, "kept": true, "output": {"text": "Three papers."}, "status": "failed", "usage": {"input_tokens": 900, "output_tokens": 40}}
type ChildSettled struct {
	// Cost of the run and of its children, in micro-units by its prices.
	Cost int64 `msgpack:"cost,omitempty" lim:"0..NumberMax"`
	// The call that this settles.
	Effect string `msgpack:"effect" lim:"@call"`
	// Never with status succeeded.
	Error *Fault `msgpack:"error,omitempty"`
	// Whether the child is still open: a later call may continue it, and the model is told how.
	Kept bool `msgpack:"kept,omitempty"`
	// The child's answer.
	Output *Content `msgpack:"output,omitempty"`
	// How the run ended.
	Status string `msgpack:"status" lim:"enum=succeeded|failed|cancelled"`
	// Tokens of the run and of its children.
	Usage *Usage `msgpack:"usage,omitempty"`
}

// Settled returns the result that a child gives its call.
func (b *ChildSettled) Settled() ToolCallSettled {
	return ToolCallSettled{Effect: b.Effect, Error: b.Error, Output: b.Output, Status: b.Status}
}

// CodeChildTaken is the code of a call whose child's name another session has.
const CodeChildTaken = "child_taken"

// ChildCall is what a call of executor kind session waits for.
type ChildCall struct {
	Cost    int64  `msgpack:"cost,omitempty"`   // reserved for it of the run's budget
	Repeat  int64  `msgpack:"repeat"`           // Unix ms: when the request is repeated
	Session string `msgpack:"session"`          // the child
	Tokens  int64  `msgpack:"tokens,omitempty"` // reserved for it of the run's budget
}

// Tree is what a session knows of those above and below it.
type Tree struct {
	Kept   []KeptChild `msgpack:"kept,omitempty"`   // children that later calls may continue, oldest first
	Owed   []OwedChild `msgpack:"owed,omitempty"`   // children whose calls were ended
	Parent *Parent     `msgpack:"parent,omitempty"` // absent: it is no child
}

// parent returns whose child the session is, nil if it is none.
func (s *State) parent() *Parent {
	if s.Tree == nil {
		return nil
	}
	return s.Tree.Parent
}

// tree returns what the session knows of others, to be changed.
func (s *State) tree() *Tree {
	if s.Tree == nil {
		s.Tree = &Tree{}
	}
	return s.Tree
}

// forgetTree removes what the session knows of others if that is nothing.
func (s *State) forgetTree() {
	if t := s.Tree; t != nil && len(t.Kept) == 0 && len(t.Owed) == 0 && t.Parent == nil {
		s.Tree = nil
	}
}

// OwedChild is a child whose call was ended by its parent, until the child settles:
// what it used counts, and its share stays reserved.
type OwedChild struct {
	Call string `msgpack:"call"`
	ChildCall
}

// Parent says whose call a session carries out.
type Parent struct {
	Answer codec.Raw `msgpack:"answer,omitempty"` // the settlement of Call, once its run has ended: sent as soon as no child is owed
	Call   string    `msgpack:"call"`
	Depth  int       `msgpack:"depth"`
	Keep   bool      `msgpack:"keep,omitempty"`
	Origin *Origin   `msgpack:"origin,omitempty"` // of the run for Call, nil before the first
	Root   string    `msgpack:"root"`
	Run    uint32    `msgpack:"run,omitempty"` // the run for Call
	Parent string    `msgpack:"session"`
}

// invariant checks what a session knows of its children.
func (t *Tree) invariant() error {
	if len(t.Owed) > ChildrenMax || len(t.Kept) > ChildrenKeptMax || len(t.Owed)+len(t.Kept) == 0 && t.Parent == nil {
		return fmt.Errorf("%d children are owed, %d kept, and it is a child: %v", len(t.Owed), len(t.Kept), t.Parent != nil)
	}
	for _, k := range t.Kept {
		if p, ok := parseName(k.Call); !ok || p.kind != kindTool || !planner.IsName(k.Session) {
			return fmt.Errorf("the child %q is kept of the call %q", k.Session, k.Call)
		}
	}
	for i := range t.Owed {
		o := &t.Owed[i]
		if p, ok := parseName(o.Call); !ok || p.kind != kindTool {
			return fmt.Errorf("a child is owed of the call %q", o.Call)
		}
		if err := o.invariant(); err != nil {
			return err
		}
	}
	return nil
}

// invariant checks what a call waits for.
func (c *ChildCall) invariant() error {
	if !planner.IsName(c.Session) || c.Tokens < 0 || c.Cost < 0 || c.Repeat <= 0 {
		return fmt.Errorf("the child %q is asked again at %d, with %d tokens and a cost of %d", c.Session, c.Repeat, c.Tokens, c.Cost)
	}
	return nil
}

// invariant checks whose child a session is.
func (p *Parent) invariant(s *State) error {
	switch {
	case p.Parent == "" || p.Root == "" || len(p.Parent) > IDBytesMax || len(p.Root) > IDBytesMax || p.Parent == s.Session:
		return fmt.Errorf("it is a child of %q, under %q", p.Parent, p.Root)
	case p.Depth < 1 || p.Depth > ChildDepthMax || p.Run > s.Runs:
		return fmt.Errorf("it is a child in depth %d, for run %d", p.Depth, p.Run)
	case s.familyFault(p.Call, p.Parent, p.Root) != nil || len(p.Answer) == 0 && p.Run == 0 && !p.Keep:
		return fmt.Errorf("it carries out %q of %q, by no run", p.Call, p.Parent)
	case (p.Run > 0) != (p.Origin != nil), p.Origin != nil && (p.Origin.Run == 0 || !planner.IsName(p.Origin.Session)):
		return fmt.Errorf("its run %d comes from the run %v", p.Run, p.Origin)
	case len(p.Answer) > EventBytesMax:
		return fmt.Errorf("its answer has %d bytes", len(p.Answer))
	}
	return nil
}

// isChild reports whether a call is a run of another session.
func (s *State) isChild(c *Call) bool {
	return s.tool(c.ToolID).Executor.Kind == planner.ExecutorSession
}

// root returns the session at the top of this one's tree.
func (s *State) root() string {
	if p := s.parent(); p != nil {
		return p.Root
	}
	return s.Session
}

// Origin returns the run from which all calls down to a run come, nil if the run carries
// out no call of another session.
func (s *State) Origin(run uint32) *Origin {
	if p := s.parent(); p != nil && p.Run == run {
		return p.Origin
	}
	return nil
}

func (s *State) depth() int {
	if p := s.parent(); p != nil {
		return p.Depth
	}
	return 0
}

// childEncoding has the characters of names.
var childEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// childName returns the name of a call's child. It depends on the parent's chain at the
// opening, so nobody can guess it and open the session first.
func (s *State) childName(call string) string {
	h := sha256.New()
	for _, part := range [][]byte{[]byte(s.Session), []byte(call), s.Chain[:]} {
		h.Write(part)
		h.Write([]byte{0})
	}
	root := s.root()
	return root[:min(len(root), childRootBytes)] + "-c" + childEncoding.EncodeToString(h.Sum(nil))[:childHashChars]
}

// openChild requests the child of call i, which is open. It ends the call if there can be
// none.
func (s *State) openChild(i int) bool {
	t, c := s.Turn, &s.Turn.Batch.Calls[i]
	name := callName(t.Run, t.Number, i)
	refused := ""
	switch {
	case s.depth() >= ChildDepthMax:
		refused = "a child may not have children in this depth: at most " + strconv.Itoa(ChildDepthMax) + " sessions lie below one another"
	case s.openChildren() >= ChildrenOpenMax:
		refused = "the run has " + strconv.Itoa(ChildrenOpenMax) + " open children, which is the limit"
	case int(s.Run.Children) >= ChildrenMax:
		refused = "the run has had " + strconv.Itoa(ChildrenMax) + " children, which is the limit"
	}
	if refused != "" {
		s.endCall(i, CallFailed, CodeLimitExceeded, sentence.Own(refused))
		return false
	}
	child := &ChildCall{Session: s.childName(name), Repeat: s.Clock + childRepeatFirstMS}
	if kept, is := s.keptChild(c); is {
		child.Session = kept
	}
	if !s.reserveShare(child) {
		s.endCall(i, CallFailed, CodeBudget, sentence.Own("the run's budget leaves nothing for a child"))
		return false
	}
	c.Child = child
	if err := s.requestChild(i); err != nil {
		c.Child = nil
		s.endCall(i, CallFailed, CodeLimitExceeded, sentence.Own("the child can't be requested: "+err.Error()))
		return false
	}
	s.Run.Children++
	return true
}

// keptChild returns the child that the arguments of a call continue: that of an earlier
// call, whose name its argument `continue` has.
func (s *State) keptChild(c *Call) (sid string, is bool) {
	if !s.tool(c.ToolID).Executor.Keep {
		return "", false
	}
	var args struct {
		Continue string `json:"continue"`
	}
	if json.Unmarshal([]byte(c.Arguments), &args) != nil {
		return "", false
	}
	if s.Tree == nil {
		return "", false
	}
	at := slices.IndexFunc(s.Tree.Kept, func(k KeptChild) bool { return k.Call == args.Continue })
	if at < 0 {
		return "", false
	}
	return s.Tree.Kept[at].Session, true
}

// KeptChild is a child that stays open after its run.
type KeptChild struct {
	Call    string `msgpack:"call"`
	Session string `msgpack:"session"`
}

// openChildren counts the children of the batch that are open.
func (s *State) openChildren() (n int) {
	for i := range s.Turn.Batch.Calls {
		if s.Turn.Batch.Calls[i].Child != nil {
			n++
		}
	}
	return n
}

// requestChild sends the request of call i's child.
func (s *State) requestChild(i int) error {
	t, c := s.Turn, &s.Turn.Batch.Calls[i]
	of := &s.tool(c.ToolID).Executor
	config, err := s.childConfig(c, of)
	if err != nil {
		return err
	}
	body := ChildRequested{
		Call: callName(t.Run, t.Number, i), Config: config, Depth: s.depth() + 1, Input: childInput(c.Arguments), Keep: of.Keep,
		Origin: Origin{Run: t.Run, Session: s.Session}, Parent: s.Session, Roles: s.Run.Roles, Root: s.root(),
	}
	if origin := s.Origin(t.Run); origin != nil {
		body.Origin = *origin
	}
	if slices.Contains(of.Inherit, planner.InheritFacts) {
		for _, f := range s.Facts {
			body.Facts = append(body.Facts, codec.Pair{Key: f.Name, Value: encode(f.Value)})
		}
	}
	if s.Registry != nil {
		body.Registry = s.baseRegistry().Bytes()
	}
	return s.send(c.Child.Session, TypeChildRequested, &body)
}

// childConfig returns the config of the run that a child is requested for: the
// binding's, with the model of the parent's run if it names none, the parent's prices,
// and what is reserved of its budget.
func (s *State) childConfig(c *Call, of *planner.Executor) (config RunConfig, err error) {
	if len(of.Agent) > 0 {
		if err := codec.Decode(of.Agent, &config); err != nil {
			return config, err
		}
	}
	own := &s.Run.Config
	if config.Provider == "" && config.Model == "" {
		config.Provider, config.Model, config.Params = own.Provider, s.TurnModel(), own.Params
		config.Retry, config.Context = own.Retry, cmp.Or(config.Context, own.Context)
	}
	config.Completion, config.Prices = "", own.Prices
	if b := own.Budget; b != nil || config.Budget != nil {
		narrowed := Budget{OnBreach: BreachFail}
		if config.Budget != nil {
			narrowed.Tokens, narrowed.Cost = config.Budget.Tokens, config.Budget.Cost
		}
		narrowed.Tokens, narrowed.Cost = smaller(narrowed.Tokens, c.Child.Tokens), smaller(narrowed.Cost, c.Child.Cost)
		config.Budget = &narrowed
	}
	return config, nil
}

// agentFault returns why no child can have the config of a tool's agent, or "". The
// config names tools of the tool's own registry. What it names in spaces is looked up when
// a child begins.
func agentFault(reg *planner.Registry, tool *planner.ToolSpec) string {
	if len(tool.Executor.Agent) == 0 {
		return ""
	}
	var c RunConfig
	bad := decodeBody(tool.Executor.Agent, &c)
	if bad == nil {
		bad = cmp.Or(configFault(reg, &c, false), spaceNamesFault(&c))
	}
	if bad != nil {
		return "executor.agent: " + bad.detail
	}
	return ""
}

// spaceNamesFault refuses what can't name a part of a space.
func spaceNamesFault(c *RunConfig) *refusal {
	for i, name := range c.Skills {
		if !space.IsSkillName(name) || slices.Contains(c.Skills[:i], name) {
			return refuse(RejectInvalidData, "config.skills["+strconv.Itoa(i)+"]: must be a skill, named once, not "+sentence.Quoted(name))
		}
	}
	for _, name := range []string{c.PromptPack, c.ToolCatalog} {
		if name != "" && !planner.IsName(name) {
			return refuse(RejectInvalidData, "config: a prompt pack or a catalog has another name than "+sentence.Quoted(name))
		}
	}
	return nil
}

// childDeadline returns how long a run of another session may take, in milliseconds.
func (c *RunConfig) childDeadline() int64 {
	if c.DeadlinesMS != nil && c.DeadlinesMS.Child > 0 {
		return c.DeadlinesMS.Child
	}
	return ChildDefaultMS
}

// childInput returns the input of the run for a call: its argument `input` if that is a
// text, else its arguments.
func childInput(arguments string) Content {
	var args struct {
		Input string `json:"input"`
	}
	if json.Unmarshal([]byte(arguments), &args) == nil && args.Input != "" && len(args.Input) <= TextBytesMax {
		return Content{Text: args.Input}
	}
	return Content{Text: arguments}
}

// reserveShare reserves a child's share of what the run's budgets leave: the children
// of a group share alike. It is false if that is nothing: a budget of 0 is no limit.
func (s *State) reserveShare(child *ChildCall) bool {
	if s.Run.Config.Budget == nil {
		return true
	}
	sharing := s.childrenToOpen()
	for n, l := range s.limits(0, nil) {
		if l.most == 0 {
			continue
		}
		share := (l.most - l.used) / sharing
		if share < 1 {
			return false
		}
		if of := []*int64{&child.Tokens, &child.Cost}[n%2]; *of == 0 || share < *of {
			*of = share
		}
	}
	return true
}

// childrenToOpen counts the calls of the open group that are children and not requested
// yet, at least 1.
func (s *State) childrenToOpen() (n int64) {
	b := s.Turn.Batch
	for _, i := range b.Plan.Groups[b.Group] {
		if c := &b.Calls[i]; !c.done() && c.Child == nil && s.isChild(c) {
			n++
		}
	}
	return max(n, 1)
}

// share is what is reserved for children.
type share struct{ tokens, cost int64 }

func (r *share) add(c *ChildCall) { r.tokens, r.cost = r.tokens+c.Tokens, r.cost+c.Cost }

// reserved returns what is reserved for children of the run, and for all of the session.
func (s *State) reserved() (run, all share) {
	if s.turnIsRuns() && s.Turn.Batch != nil {
		for i := range s.Turn.Batch.Calls {
			if child := s.Turn.Batch.Calls[i].Child; child != nil {
				run.add(child)
			}
		}
	}
	all = run
	for i := range s.owed() {
		o := &s.Tree.Owed[i]
		all.add(&o.ChildCall)
		if s.isOfRun(o.Call) {
			run.add(&o.ChildCall)
		}
	}
	return run, all
}

// owed returns the children whose calls were ended and that have not settled.
func (s *State) owed() []OwedChild {
	if s.Tree == nil {
		return nil
	}
	return s.Tree.Owed
}

// isOfRun reports whether a call is the active run's.
func (s *State) isOfRun(call string) bool {
	p, _ := parseName(call)
	return s.Run != nil && p.run == s.Run.Number
}

// repeatChildren repeats the requests of open children that are due.
func (s *State) repeatChildren() {
	if !s.turnIsRuns() || s.Turn.Batch == nil {
		return
	}
	for i := range s.Turn.Batch.Calls {
		c := &s.Turn.Batch.Calls[i]
		if c.Child == nil || c.Status != CallOpen || c.Child.Repeat > s.Clock {
			continue
		}
		_ = s.requestChild(i) // it had room when it was requested first
		c.Child.Repeat = s.Clock + childRepeatMS
	}
}

// stopChild asks the child of a call to end its run. With cancel the call waits for it no
// more, but what it uses counts.
func (s *State) stopChild(i int, how string) {
	t, c := s.Turn, &s.Turn.Batch.Calls[i]
	if c.Child == nil {
		return
	}
	name := callName(t.Run, t.Number, i)
	if how == HaltInterrupt {
		s.sendStop(c.Child.Session, name, how)
		return
	}
	if s.Closed {
		how = HaltClose
	}
	s.sendStop(c.Child.Session, name, how)
	if x := s.tree(); len(x.Owed) < ChildrenMax {
		c.Child.Repeat = s.Clock + childRepeatFirstMS
		x.Owed = append(x.Owed, OwedChild{Call: name, ChildCall: *c.Child})
	}
	c.Child = nil
}

// sendStop asks a child to stop. Its events are small.
func (s *State) sendStop(sid, call, how string) {
	_ = s.send(sid, TypeChildStopped, &ChildStopped{Call: call, How: how, Parent: s.Session, Root: s.root()})
}

// repeatStops asks the children that are owed again to end their runs, if it is time.
func (s *State) repeatStops() {
	for i := range s.owed() {
		o := &s.Tree.Owed[i]
		if o.Repeat <= s.Clock {
			o.Repeat = s.Clock + childRepeatMS
			s.sendStop(o.Session, o.Call, HaltCancel)
		}
	}
}

// stopsRepeated returns when repeatStops is due.
func (s *State) stopsRepeated() int64 {
	next := int64(noDeadline)
	for i := range s.owed() {
		next = min(next, s.Tree.Owed[i].Repeat)
	}
	return next
}

// closeKept closes the children that no later call can continue.
func (s *State) closeKept() {
	if s.Tree == nil {
		return
	}
	for _, k := range s.Tree.Kept {
		s.sendStop(k.Session, k.Call, HaltClose)
	}
	s.Tree.Kept = nil
	s.forgetTree()
}

// settleChild folds the settlement of a call by its child.
func (s *State) settleChild(i int, b *ChildSettled) {
	c := &s.Turn.Batch.Calls[i]
	s.countChild(b)
	if s.tool(c.ToolID).Executor.Keep {
		s.keepChild(b, c.Child.Session)
	}
	c.Child = nil
	result := b.Settled()
	s.takeResult(i, &result)
}

// keepChild remembers a child that later calls may continue: one that has answered. It
// closes those that none will continue.
func (s *State) keepChild(b *ChildSettled, sid string) {
	x := s.tree()
	defer s.forgetTree()
	at := slices.IndexFunc(x.Kept, func(k KeptChild) bool { return k.Session == sid })
	switch {
	case b.Status != string(CallSucceeded) && at < 0:
		s.sendStop(sid, b.Effect, HaltClose)
		return
	case b.Status != string(CallSucceeded):
		return
	case at >= 0:
		x.Kept = slices.Delete(x.Kept, at, at+1)
	case len(x.Kept) == ChildrenKeptMax:
		s.sendStop(x.Kept[0].Session, x.Kept[0].Call, HaltClose)
		x.Kept = slices.Delete(x.Kept, 0, 1)
	}
	x.Kept = append(x.Kept, KeptChild{Call: b.Effect, Session: sid})
}

// countChild adds what a child used to the session, and to the run whose call it was, if
// that is active.
func (s *State) countChild(b *ChildSettled) {
	usage := cmp.Or(b.Usage, &Usage{})
	s.Cost = min(s.Cost+b.Cost, CostMax)
	s.Usage.add(usage)
	if s.isOfRun(b.Effect) {
		s.Run.Cost = min(s.Run.Cost+b.Cost, CostMax)
		s.Run.Usage.add(usage)
	}
}

// settleOwed counts what a child used whose call its parent has ended. It is false if no
// such child is owed.
func (s *State) settleOwed(b *settlement) bool {
	settled, is := b.body.(*ChildSettled)
	if !is || b.bad != nil || s.Tree == nil {
		return false
	}
	at := slices.IndexFunc(s.Tree.Owed, func(o OwedChild) bool { return o.Call == b.effect })
	if at < 0 {
		return false
	}
	sid := s.Tree.Owed[at].Session
	s.Tree.Owed = slices.Delete(s.Tree.Owed, at, at+1)
	s.countChild(settled)
	s.addToAnswer(settled)
	if !slices.ContainsFunc(s.Tree.Kept, func(k KeptChild) bool { return k.Session == sid }) {
		s.sendStop(sid, settled.Effect, HaltClose) // it may be one that stays open
	}
	s.forgetTree()
	return true
}

// addToAnswer adds what a child used to the answer that waits for it, and sends the answer
// if it was the last one.
func (s *State) addToAnswer(b *ChildSettled) {
	p := s.parent()
	if p == nil || len(p.Answer) == 0 {
		return
	}
	if of, _ := parseName(b.Effect); of.run == p.Run {
		var answer ChildSettled
		if err := codec.Decode(p.Answer, &answer); err != nil {
			panic("session: the answer to " + p.Parent + " can't be read: " + err.Error())
		}
		var sum UsageTotal
		sum.add(cmp.Or(answer.Usage, &Usage{}))
		sum.add(cmp.Or(b.Usage, &Usage{}))
		answer.Cost, answer.Usage = min(answer.Cost+b.Cost, CostMax), sum.whole()
		p.Answer = encode(&answer)
	}
	s.answerAgain()
}

// childRequested carries out a call of another session, or answers it again.
func (s *State) childRequested(data codec.Raw) *refusal {
	if bad := configRulesFault(data); bad != nil {
		return bad
	}
	var b ChildRequested
	if bad := decodeContent(data, "input", &b); bad != nil {
		return bad
	}
	if bad := cmp.Or(s.familyFault(b.Call, b.Parent, b.Root), inputFault(&b.Input)); bad != nil {
		return bad
	}
	if !planner.IsName(b.Origin.Session) || b.Origin.Run == 0 {
		return refuse(RejectInvalidData, "origin: is a run, from 1, of a session")
	}
	p := s.parent()
	switch {
	case p == nil && s.Count > 1, p != nil && p.Parent != b.Parent:
		s.tell(b.Parent, &ChildSettled{Effect: b.Call, Status: string(CallFailed), Error: &Fault{Code: CodeChildTaken, Detail: "another session has the name"}})
		return nil
	case p != nil && p.Call == b.Call:
		s.answerAgain()
		return nil
	case p != nil && (s.Closed || s.Run != nil):
		s.tell(b.Parent, &ChildSettled{Effect: b.Call, Status: string(CallFailed), Error: &Fault{Code: string(RejectRunActive), Detail: "the child is closed, or carries out another call"}})
		return nil
	}
	if bad := s.handedDownFault(&b); bad != nil {
		s.tell(b.Parent, failedToBegin(b.Call, bad))
		return bad
	}
	s.tree().Parent = &Parent{Call: b.Call, Depth: b.Depth, Keep: b.Keep, Root: b.Root, Parent: b.Parent}
	s.text = &b.Input
	if bad := s.beginChild(&b); bad != nil {
		s.answerWith(failedToBegin(b.Call, bad))
	}
	return nil
}

// failedToBegin is the settlement of a call whose run can't begin.
func failedToBegin(call string, bad *refusal) *ChildSettled {
	return &ChildSettled{Effect: call, Status: string(CallFailed), Error: &Fault{Code: string(bad.code), Detail: sentence.Clip(bad.detail, DetailBytesMax)}}
}

// familyFault refuses what names no call and no sessions.
func (s *State) familyFault(call, parent, root string) *refusal {
	p, isName := parseName(call)
	switch {
	case !isName || p.kind != kindTool || p.run == 0:
		return refuse(RejectInvalidData, "call: is the name of a call, such as r1t2c0")
	case !planner.IsName(parent), parent == s.Session:
		return refuse(RejectInvalidData, "parent: is the name of another session")
	case !planner.IsName(root):
		return refuse(RejectInvalidData, "root: is the name of a session")
	}
	return nil
}

// handedDownFault returns why the session can't have the registry, the facts and the
// config that its parent hands down.
func (s *State) handedDownFault(b *ChildRequested) *refusal {
	st, x := s.stack(), s.spaces()
	if len(b.Registry) > 0 {
		_, registry, bad := registryOf(b.Registry)
		if bad != nil {
			return bad.in("registry")
		}
		var misfit string
		if st, misfit = x.Rebase(registry); misfit != "" {
			return refuse(RejectInvalidRegistry, misfit)
		}
	}
	if len(b.Facts) > FactsMax {
		return refuse(RejectLimitExceeded, "facts: at most "+strconv.Itoa(FactsMax))
	}
	if bad := factsFault(b.Facts); bad != nil {
		return bad
	}
	for _, pair := range b.Facts {
		var value *string
		if _ = codec.Decode(pair.Value, &value); value == nil {
			return refuse(RejectInvalidData, "facts: "+sentence.Quoted(pair.Key)+" must be text")
		}
	}
	own, bad := s.ownWorkspace(&b.Config)
	if bad != nil {
		return bad
	}
	return s.configFault(&st, &b.Config, own, true)
}

// beginChild takes over what the parent hands down, and starts the run.
func (s *State) beginChild(b *ChildRequested) *refusal {
	if len(b.Registry) > 0 {
		if bad := s.toolRegistrySet(b.Registry); bad != nil {
			return bad
		}
	}
	if len(b.Facts) > 0 {
		if bad := s.factsSet(&FactsSet{Facts: b.Facts}); bad != nil {
			return bad
		}
	}
	run := s.operatorsRun(&b.Config)
	run.Operators, run.InputBytes, run.Roles = true, b.Input.shownBytes(), b.Roles
	s.Tree.Parent.Run, s.Tree.Parent.Origin = s.Runs+1, &b.Origin
	bad := s.newRun(run, BusyReject)
	if bad != nil {
		s.Tree.Parent.Run, s.Tree.Parent.Origin = 0, nil
	}
	return bad
}

// childStopped ends the run for a call of the parent. A child that has not seen the
// request yet will refuse it.
func (s *State) childStopped(b *ChildStopped) *refusal {
	if bad := s.familyFault(b.Call, b.Parent, b.Root); bad != nil {
		return bad
	}
	p := s.parent()
	switch {
	case p == nil && s.Count > 1, p != nil && (p.Parent != b.Parent || p.Call != b.Call && b.How != HaltClose):
		return refuse(RejectStale, "it carries out no call "+b.Call+" of "+b.Parent)
	case b.How == HaltClose && p != nil:
		if !s.Closed {
			s.close(sentence.Say(sentence.ParentClosed))
		}
		s.answerAgain()
	case p == nil:
		s.tree().Parent = &Parent{Call: b.Call, Depth: 1, Root: b.Root, Parent: b.Parent}
		s.answerWith(&ChildSettled{Effect: b.Call, Status: string(CallCancelled), Error: &Fault{Code: CodeCancelled}})
		s.Closed = true
	case len(p.Answer) > 0:
		s.answerAgain()
	case s.Run == nil || s.Run.Number != p.Run:
		return refuse(RejectStale, "the run for "+b.Call+" has ended")
	case b.How == HaltInterrupt:
		s.interrupt()
	default:
		s.stopRun(Ended{Lifecycle: Cancelled, Code: CodeCancelled, Detail: sentence.Say(sentence.ParentStopped)})
	}
	return nil
}

// answerParent settles the parent's call with the end of the run that carried it out, and
// closes the session unless it is kept.
func (s *State) answerParent(run *Run, end *Ended, answer *GenerationSettled) {
	p := s.parent()
	if p == nil || p.Run != run.Number || len(p.Answer) > 0 {
		return
	}
	b := ChildSettled{Effect: p.Call, Cost: run.Cost, Status: string(CallCancelled), Usage: run.Usage.whole()}
	switch end.Lifecycle {
	case Completed:
		b.Status, b.Kept = string(CallSucceeded), p.Keep && !s.Closed
		if answer != nil {
			b.Output = answer.Text
		}
	case Failed:
		b.Status = string(CallFailed)
		b.Error = &Fault{Code: end.Code, Detail: end.Detail.String()}
	default:
		b.Error = &Fault{Code: cmp.Or(end.Code, string(end.Lifecycle)), Detail: end.Detail.String()}
	}
	s.answerWith(&b)
	if !p.Keep && !s.Closed {
		s.close(sentence.Say(sentence.CallCarriedOut))
	}
}

// answerWith keeps the settlement of the parent's call, and sends it.
func (s *State) answerWith(b *ChildSettled) {
	s.Tree.Parent.Answer = encode(b)
	s.answerAgain()
}

// answerAgain sends the settlement of the parent's call if there is one. It waits for the
// children that are owed: what they use is part of it.
func (s *State) answerAgain() {
	if p := s.parent(); len(p.Answer) > 0 && len(s.Tree.Owed) == 0 {
		s.tell(p.Parent, p.Answer)
	}
}

// answersErased answers a parent whose child was erased, and reports whether an event
// came from one: its call is cancelled.
func (s *State) answersErased(env Envelope) bool {
	var b ChildStopped
	switch env.Type {
	case TypeChildRequested:
		var of ChildRequested
		if decodeBody(env.Data, &of) != nil {
			return false
		}
		b.Parent, b.Call = of.Parent, of.Call
	case TypeChildStopped:
		if decodeBody(env.Data, &b) != nil {
			return false
		}
	default:
		return false
	}
	s.tell(b.Parent, &ChildSettled{Effect: b.Call, Status: string(CallCancelled), Error: &Fault{Code: string(RejectSessionErased)}})
	return true
}

// tell sends a settlement to a parent: a *ChildSettled, or its canonical bytes. Both have
// room: an answer came in an event.
func (s *State) tell(parent string, settled any) {
	if err := s.send(parent, TypeChildSettled, settled); err != nil {
		panic("session: a settlement is not sent: " + err.Error())
	}
}

// viewChildren returns the children of which the state knows.
func (s *State) viewChildren() (all []ViewChild) {
	if t := s.Turn; s.turnIsRuns() && t.Batch != nil {
		for i := range t.Batch.Calls {
			if child := t.Batch.Calls[i].Child; child != nil {
				all = append(all, ViewChild{Session: child.Session, Call: callName(t.Run, t.Number, i), State: "open"})
			}
		}
	}
	if s.Tree == nil {
		return all
	}
	for _, o := range s.Tree.Owed {
		all = append(all, ViewChild{Session: o.Session, Call: o.Call, State: "stopping"})
	}
	for _, k := range s.Tree.Kept {
		if !slices.ContainsFunc(all, func(c ViewChild) bool { return c.Session == k.Session }) {
			all = append(all, ViewChild{Session: k.Session, Call: k.Call, State: "kept"})
		}
	}
	return all
}

// childrenInvariant checks what is known of other sessions.
func (s *State) childrenInvariant() error {
	if p := s.parent(); p != nil {
		if err := p.invariant(s); err != nil {
			return err
		}
	}
	if x := s.Tree; x != nil {
		if err := x.invariant(); err != nil {
			return err
		}
	}
	if s.Run != nil && s.Run.Children > ChildrenMax {
		return fmt.Errorf("the run has had %d children", s.Run.Children)
	}
	if s.Turn == nil || s.Turn.Batch == nil {
		return nil
	}
	for i := range s.Turn.Batch.Calls {
		c := &s.Turn.Batch.Calls[i]
		if c.Child == nil {
			continue
		}
		if err := c.Child.invariant(); err != nil {
			return err
		}
		if c.Status != CallOpen || !s.isChild(c) {
			return errors.New("call " + strconv.Itoa(i) + " waits for the child " + c.Child.Session + " and is " + string(c.Status))
		}
	}
	return nil
}
