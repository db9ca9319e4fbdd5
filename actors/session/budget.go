package session

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/refold/refold/actors/sentence"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

func (s *State) addUsage(u *Usage) {
	if u == nil {
		return
	}
	cost := s.turnPrice().cost(u)
	s.Run.Cost, s.Cost = min(s.Run.Cost+cost, CostMax), min(s.Cost+cost, CostMax)
	s.Run.Usage.add(u)
	s.Usage.add(u)
}

func (t *UsageTotal) add(u *Usage) {
	t.CacheWriteTokens += u.CacheWriteTokens
	t.CachedTokens += u.CachedTokens
	t.InputTokens += u.InputTokens
	t.OutputTokens += u.OutputTokens
	t.ReasoningTokens += u.ReasoningTokens
}

// whole returns a total as one usage, each count at most TokensMax.
func (t *UsageTotal) whole() *Usage {
	if *t == (UsageTotal{}) {
		return nil
	}
	most := func(n int64) int64 { return min(n, TokensMax) }
	return &Usage{
		CacheWriteTokens: most(t.CacheWriteTokens), CachedTokens: most(t.CachedTokens), InputTokens: most(t.InputTokens),
		OutputTokens: most(t.OutputTokens), ReasoningTokens: most(t.ReasoningTokens),
	}
}

// turnPrice returns the price of the model of the active run's latest turn, which a
// step may have chosen; nil: nothing costs anything.
func (s *State) turnPrice() *ModelPrice {
	p := s.Run.Config.Prices
	if p != nil && s.isCompacting() {
		if price := p.of(s.summary().Model); price != nil {
			return price
		}
	}
	switch f, choice := s.Run.fallback(), s.choice(); {
	case p == nil:
	case f != nil:
		if price := p.of(f.Model); price != nil {
			return price
		}
	case choice != nil:
		if price := p.of(choice.Model); price != nil {
			return price
		}
	}
	return p.own()
}

// own returns the price of the config's model.
func (p *Prices) own() *ModelPrice {
	if p == nil {
		return nil
	}
	return &ModelPrice{CacheRead: p.CacheRead, CacheWrite: p.CacheWrite, Input: p.Input, Output: p.Output}
}

// of returns the first price of a model, nil if `models` has none.
func (p *Prices) of(model string) *ModelPrice {
	if i := slices.IndexFunc(p.Models, func(m ModelPrice) bool { return m.Model == model }); i >= 0 {
		return &p.Models[i]
	}
	return nil
}

// cost returns the cost of a usage in micro-units, rounded down. Cached and
// cache-written tokens are part of the input tokens, reasoning tokens part of the
// output tokens. A cache price that is absent is the input price.
func (p *ModelPrice) cost(u *Usage) int64 {
	if p == nil {
		return 0
	}
	read := min(u.CachedTokens, u.InputTokens)
	written := min(u.CacheWriteTokens, u.InputTokens-read)
	return min(CostMax, costOf(u.InputTokens-read-written, p.Input)+costOf(read, cmp.Or(p.CacheRead, p.Input))+
		costOf(written, cmp.Or(p.CacheWrite, p.Input))+costOf(u.OutputTokens, p.Output))
}

// million is the number of tokens that a price is for.
const million = 1_000_000

func costOf(tokens, price int64) int64 {
	high, low := bits.Mul64(uint64(tokens), uint64(price))
	if high >= million {
		return CostMax
	}
	cost, _ := bits.Div64(high, low, million)
	return int64(min(cost, CostMax))
}

// limit is one budget of the active run and its use.
type limit struct {
	budget    string
	most      int64 // 0: no limit
	used      int64
	estimate  int64 // of the next input: tokens, or their cost
	perOutput int64 // use of the budget by a million tokens of output; 0: none
}

// limits returns the budgets of the active run in the order in which they are
// checked, for a next turn that shows the model inputBytes bytes at a price.
func (s *State) limits(inputBytes int64, p *ModelPrice) [4]limit {
	b := s.Run.Config.Budget
	if b == nil {
		return [4]limit{}
	}
	run, all := &s.Run.Usage, &s.Usage
	held, heldAll := s.reserved()
	tokens := (inputBytes + BytesPerToken - 1) / BytesPerToken
	cost, perOutput := int64(0), int64(0)
	if p != nil {
		// Worst case: all of the input is written to a cache.
		cost, perOutput = costOf(tokens, max(p.Input, p.CacheWrite)), p.Output
	}
	return [4]limit{
		{"tokens", b.Tokens, run.InputTokens + run.OutputTokens + held.tokens, tokens, million},
		{"cost", b.Cost, s.Run.Cost + held.cost, cost, perOutput},
		{"session_tokens", b.SessionTokens, all.InputTokens + all.OutputTokens + heldAll.tokens, tokens, million},
		{"session_cost", b.SessionCost, s.Cost + heldAll.cost, cost, perOutput},
	}
}

// breached returns the first budget of the active run that is too small for a turn
// that shows the model inputBytes bytes. The model of a step is known once its
// generation is to be opened.
func (s *State) breached(what Held, inputBytes int64) (limit, bool) {
	price := s.Run.Config.Prices.own()
	if what == HeldGeneration {
		price = s.turnPrice()
	}
	for _, l := range s.limits(inputBytes, price) {
		if l.most > 0 && l.used+l.estimate >= l.most {
			return l, true
		}
	}
	return limit{}, false
}

// overBudget returns by how much the active run exceeds a budget, nil if it exceeds
// none.
func (s *State) overBudget() *OverBudget {
	for _, l := range s.limits(0, nil) {
		if l.most > 0 && l.used > l.most {
			return &OverBudget{Budget: l.budget, Limit: l.most, Used: l.used}
		}
	}
	return nil
}

// outputTokensMax returns how many output tokens the budgets leave for the latest
// turn's generation, before it is opened: 0 if no budget bounds it, else at least
// 1.
func (s *State) outputTokensMax() int32 {
	if s.Run.Config.Budget == nil {
		return 0
	}
	least := int64(0)
	for _, l := range s.limits(s.turnInputBytes(int64(s.WindowBytes), s.shown(&s.Turn.Toolset)), s.turnPrice()) {
		if l.most == 0 || l.perOutput == 0 {
			continue
		}
		left := max(1, tokensFor(l.most-l.used-l.estimate, l.perOutput))
		if least == 0 || left < least {
			least = left
		}
	}
	return int32(least)
}

// tokensFor returns how many tokens an amount buys at a price per million.
func tokensFor(amount, price int64) int64 {
	if amount <= 0 {
		return 0
	}
	high, low := bits.Mul64(uint64(amount), million)
	if high >= uint64(price) {
		return OutputTokensMax
	}
	tokens, _ := bits.Div64(high, low, uint64(price))
	return int64(min(tokens, OutputTokensMax))
}

// budgetSpent stops the active run if a budget is too small for its next turn,
// which shows the model at least inputBytes bytes. The run fails, or it is paused
// until the budget is raised; then `what` is held back.
func (s *State) budgetSpent(what Held, inputBytes int64) bool {
	spent, is := s.breached(what, inputBytes)
	if !is {
		return false
	}
	if s.Run.Config.Budget.OnBreach == BreachFail {
		s.endRun(Ended{Lifecycle: Failed, Code: CodeBudget, Detail: sentence.Say(sentence.BudgetSpent, spent.budget, number(spent.used), number(spent.estimate), number(spent.most))}, nil)
		return true
	}
	notify(s, NoticeBudgetExceeded, BudgetExceeded{
		Run: s.Run.Number, Budget: spent.budget, Limit: spent.most, Used: spent.used, Estimate: spent.estimate,
	})
	s.pause()
	s.Run.Held, s.Run.Spent = what, true
	return true
}

// String reports how much of a budget is used and needed.
func number(n int64) string { return strconv.FormatInt(n, 10) }

func (l limit) String() string {
	return number(l.used) + " used, about " + number(l.estimate) + " for the next input, of " + number(l.most)
}

// budgetResumeFault checks whether a paused run can be resumed under budget; nil:
// under its own.
func (s *State) budgetResumeFault(door Door, budget *Budget) *refusal {
	run := s.Run
	switch {
	case budget == nil && run.Spent:
		return refuse(RejectIllegalTransition, "the run's budget is spent: resume it through ctl with a larger one")
	case budget == nil:
		return nil
	case door != DoorCtl:
		return refuse(RejectNotPermitted, "budget: can only be raised through the door ctl")
	}
	with := run.Config
	with.Budget = budget
	if bad := with.fallbackFault(); bad != nil {
		return bad
	}
	bytes := s.nextInputBytes()
	if run.Held == HeldGeneration {
		set := planner.Select(s.turnRegistry, s.toolRequest(), s.offerFacts())
		bytes = s.turnInputBytes(bytes, s.shown(&set))
	}
	before := run.Config.Budget
	run.Config.Budget = budget
	spent, is := s.breached(run.Held, bytes)
	run.Config.Budget = before
	if is {
		return refuse(RejectInvalidData, "budget."+spent.budget+": is too small: "+spent.String())
	}
	return nil
}

// A budget estimates the input of a turn before the turn is opened. Only the
// provider knows its tokenizer, so the fold counts the bytes that bridges show a
// model. docs/semantics.md states the rule under Budgets.

// IsShownAsText reports whether bridges show a blob of this media type as text.
func IsShownAsText(mediaType string) bool {
	kind, _, _ := strings.Cut(mediaType, ";")
	return kind == "" || strings.HasPrefix(kind, "text/") || kind == "application/json"
}

// mediaPDF is the media type of the documents that bridges show as such.
const mediaPDF = "application/pdf"

// shownBytes returns how many bytes of c a model is shown.
func (c *Content) shownBytes() int64 {
	if c == nil {
		return 0
	}
	n := int64(len(c.Text))
	switch {
	case c.Blob == nil:
	case IsShownAsText(c.MediaType):
		n += min(c.Size, ShownBytesMax)
	case strings.HasPrefix(c.MediaType, "image/"):
		n += ImageBytes
	case c.MediaType == mediaPDF:
		n += ImageBytes * (1 + min(c.Size, ShownBytesMax)/pageBytes)
	default:
		n += fileBytes
	}
	n += int64(len(c.Name))
	for i := range c.Parts {
		n += c.Parts[i].shownBytes()
	}
	return n
}

// shownResultBytes is shownBytes for the output of a call. A model is shown a
// preview of a long text.
func (c *Content) shownResultBytes() int64 {
	if c == nil {
		return 0
	}
	if c.Blob != nil && c.Size > TextBytesMax && IsShownAsText(c.MediaType) {
		return PreviewBytesMax + int64(len(c.Name))
	}
	if len(c.Parts) == 0 {
		return c.shownBytes()
	}
	n := int64(0)
	for i := range c.Parts {
		n += c.Parts[i].shownResultBytes()
	}
	return n
}

// shownBytes returns how many bytes of a turn with calls a model is shown: its
// text, and the names and arguments of the calls.
func (b *ToolCallsObserved) shownBytes() int64 {
	n := b.Text.shownBytes()
	for i := range b.Calls {
		n += int64(len(b.Calls[i].ToolName) + len(b.Calls[i].Arguments))
	}
	return n
}

// shownBytes returns how many bytes of a call's result a model is shown.
func (b *ToolCallSettled) shownBytes() int64 {
	n := b.Output.shownResultBytes()
	if b.Error != nil {
		n += int64(len(b.Error.Code) + len(b.Error.Detail))
	}
	return n
}

// addToWindow counts bytes that later turns show a model.
func (s *State) addToWindow(bytes int64) {
	s.WindowBytes = uint32(min(int64(s.WindowBytes)+bytes, math.MaxUint32))
}

// nextInputBytes returns how many bytes of the transcript the active run's next
// turn shows, including waiting steers, but without system text and tools. That is
// all that is known before the turn's step.
func (s *State) nextInputBytes() int64 {
	n := int64(s.WindowBytes)
	for i := range s.Run.Steers {
		n += s.Run.Steers[i].Bytes
	}
	return n
}

// turnInputBytes returns how many bytes the latest turn's generation shows:
// transcript bytes of the transcript, the system text, and the definitions of
// tools.
func (s *State) turnInputBytes(transcript int64, defined []planner.Offer) int64 {
	set := planner.Toolset{Offers: defined}
	return transcript + int64(len(s.system())+len(s.Run.Config.ResponseFormat)+set.DescriptorBytes(s.turnRegistry)) + s.promptBytes()
}

// contentFault checks c, which may be nil. Empty content is refused unless
// mayBeEmpty.
func contentFault(path string, c *Content, mayBeEmpty bool) *refusal {
	switch {
	case c == nil:
		return nil
	case c.partsCount() > PartsMax:
		return tooManyParts(path)
	}
	return contentFaultAt(path, c, mayBeEmpty)
}

// inputFault checks an input, of which a model is shown all text.
func inputFault(c *Content) *refusal {
	if bad := contentFault("input", c, false); bad != nil {
		return bad
	}
	if n := c.textBytes(); n > ShownBytesMax {
		return refuse(RejectLimitExceeded, "input: "+strconv.FormatInt(n, 10)+" bytes of text, at most "+
			strconv.Itoa(ShownBytesMax)+": shorten it, or let a tool read it")
	}
	return nil
}

// textBytes returns how many bytes of text c and its parts have, by the sizes that
// c states.
func (c *Content) textBytes() int64 {
	n := int64(len(c.Text))
	if c.Blob != nil && IsShownAsText(c.MediaType) {
		n += c.Size
	}
	for i := range c.Parts {
		n += c.Parts[i].textBytes()
	}
	return n
}

func contentFaultAt(path string, c *Content, mayBeEmpty bool) *refusal {
	given := 0
	for _, is := range []bool{c.Text != "", c.Blob != nil, len(c.Parts) > 0} {
		if is {
			given++
		}
	}
	switch {
	case given > 1:
		return refuse(RejectInvalidData, path+": must have only one of text, blob and parts")
	case given == 0 && !mayBeEmpty:
		return refuse(RejectInvalidData, path+": is empty: give text, a blob or parts")
	case c.Blob == nil && (c.Size != 0 || c.MediaType != ""):
		return refuse(RejectInvalidData, path+": size and media_type belong to a blob")
	case c.Blob == nil && c.Name != "":
		return refuse(RejectInvalidData, path+": a name belongs to a blob")
	}
	for i := range c.Parts {
		if bad := contentFaultAt(path+".parts["+strconv.Itoa(i)+"]", &c.Parts[i], false); bad != nil {
			return bad
		}
	}
	return nil
}

func (c *Content) partsCount() int {
	n := len(c.Parts)
	for i := range c.Parts {
		n += c.Parts[i].partsCount()
	}
	return n
}

func tooManyParts(path string) *refusal {
	return refuse(RejectLimitExceeded, path+".parts: at most "+strconv.Itoa(PartsMax)+" in all, nested ones included")
}

// partsUncounted is the size up to which data is decoded without counting its
// parts: it can't hold enough of them to cost much.
const partsUncounted = 8 << 10

// decodeContent is decodeBody for a body with a Content field. An event has room
// for 780,000 parts of a byte, each a hundred bytes in memory, so the parts of a
// large event are counted before it is decoded.
func decodeContent(data codec.Raw, field string, b any) *refusal {
	if len(data) > partsUncounted {
		content, _ := fieldOf(data, field) // decodeBody reports data that is no map
		if parts := 0; !countParts(&token{rest: content}, &parts) {
			return tooManyParts(field)
		}
	}
	return decodeBody(data, b)
}

// resultsPartsFault counts the parts in the results of a large ToolBatchSettled,
// for the same reason.
func resultsPartsFault(data codec.Raw) *refusal {
	if len(data) <= partsUncounted {
		return nil
	}
	results, _ := fieldOf(data, "results")
	t := token{rest: results}
	switch t.next(); {
	case t.Kind != codec.Array:
		return nil
	case t.Len > CallsMax:
		return tooManyResults()
	}
	for range t.Len {
		if !countResultParts(&t) {
			return tooManyParts("output")
		}
	}
	return nil
}

func countResultParts(t *token) bool {
	t.next()
	if t.Kind != codec.Map {
		skip(t)
		return true
	}
	for range t.Len {
		t.next()
		parts := 0
		if string(t.Bytes) != "output" {
			t.next()
			skip(t)
		} else if !countParts(t, &parts) {
			return false
		}
	}
	return true
}

// rulesCountFault counts the step rules of a large object, for the same reason: a
// rule of one byte takes two hundred in memory. path is the object's.
func rulesCountFault(path string, object codec.Raw) *refusal {
	if len(object) <= partsUncounted {
		return nil
	}
	steps, _ := fieldOf(object, "steps")
	t := token{rest: steps}
	if t.next(); t.Kind == codec.Array && t.Len > planner.StepRulesMax {
		return refuse(RejectLimitExceeded, path+"steps: "+strconv.Itoa(t.Len)+" step rules, at most "+strconv.Itoa(planner.StepRulesMax))
	}
	return nil
}

// configRulesFault is rulesCountFault for the config of a RunRequested.
func configRulesFault(data codec.Raw) *refusal {
	if len(data) <= partsUncounted {
		return nil
	}
	config, _ := fieldOf(data, "config")
	return rulesCountFault("config.", config)
}

// profileRulesFault is rulesCountFault for each profile of a ToolRegistrySet.
func profileRulesFault(data codec.Raw) *refusal {
	if len(data) <= partsUncounted {
		return nil
	}
	profiles, _ := fieldOf(data, "profiles")
	t := token{rest: profiles}
	if t.next(); t.Kind != codec.Array {
		return nil
	}
	for i := range t.Len {
		profile := t.rest
		t.next()
		skip(&t)
		if bad := rulesCountFault("profiles["+strconv.Itoa(i)+"].", codec.Raw(profile[:len(profile)-len(t.rest)])); bad != nil {
			return bad
		}
	}
	return nil
}

// token reads canonical bytes that are already validated.
type token struct {
	codec.Token
	rest []byte
}

func (t *token) next() { t.Token, t.rest, _ = codec.Next(t.rest) }

// countParts reads a value in the place of a Content, and adds its parts to n. It
// returns false once there are too many.
func countParts(t *token, n *int) bool {
	t.next()
	if t.Kind != codec.Map {
		skip(t)
		return true
	}
	for range t.Len {
		t.next()
		isParts := string(t.Bytes) == "parts"
		t.next()
		if !isParts || t.Kind != codec.Array {
			skip(t)
			continue
		}
		if *n += t.Len; *n > PartsMax {
			return false
		}
		for range t.Len {
			if !countParts(t, n) {
				return false
			}
		}
	}
	return true
}

// skip reads the values inside the value that t has just read.
func skip(t *token) {
	values := t.Len
	if t.Kind == codec.Map {
		values *= 2
	}
	for range values {
		t.next()
		skip(t)
	}
}
