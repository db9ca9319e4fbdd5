package session

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"

	"github.com/refold/refold/actors/sentence"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/space"
)

// SummaryConfig is who writes the summary of what leaves the window, and how.
//
//wire:rule {"dependentRequired": {"provider": ["model"]}}
type SummaryConfig struct {
	// The provider's name of the model that writes it; the run's if absent.
	Model string `msgpack:"model,omitempty" lim:"..NameBytesMax"`
	// There is no summary: what leaves the window is lost from the model's view.
	Off bool `msgpack:"off,omitempty"`
	// What the model is asked, in place of the built-in text.
	Prompt string `msgpack:"prompt,omitempty" lim:"..SummaryPromptBytesMax"`
	// The provider that writes it; the run's if absent. Only with a model.
	Provider string `msgpack:"provider,omitempty" lim:"@token"`
	// About how many tokens the summary may have. Absent: 4,000, at most an eighth of
	// `tokens`.
	TokensMax int64 `msgpack:"tokens_max,omitempty" lim:"32..SummaryTokensMax"`
}

// CompactRequested asks for a summary of the earlier part of the conversation, which
// takes its place in the window. The next turn begins with it: of the active run, else of
// the next one. It needs no context in the run's config. A later request replaces one that
// waits.
//
//wire:example {"instructions": "keep the table names", "keep_turns": 2}
type CompactRequested struct {
	// What the summary is to have, beside what the prompt asks for.
	Instructions string `json:"instructions,omitempty" msgpack:"instructions,omitempty" lim:"..InstructionsBytesMax"`
	// The latest turns that stay as they are; none if absent.
	KeepTurns *int `json:"keep_turns,omitempty" msgpack:"keep_turns,omitempty" lim:"0..TurnsMax"`
}

// Limits of summaries.
const (
	SummaryTokensMax      = 32_000
	SummaryPromptBytesMax = 8 << 10
	InstructionsBytesMax  = 4 << 10
	// CompactBytesMax exceeds the last message of a compaction.
	CompactBytesMax = SummaryPromptBytesMax + InstructionsBytesMax + 256

	summaryTokensDefault = 4_000
	// summaryThoughts times the tokens of a summary is what its generation may take: models
	// that think need more than they say.
	summaryThoughts = 4
	// summarySlack times the tokens of a summary is what it may have: models do not count.
	summarySlack = 2
)

// codeBadSummary is the code of a compaction whose answer is no summary.
const codeBadSummary = "bad_summary"

// summaryPrompt asks for a summary. It is part of the rules: another text is another
// version of them.
const summaryPrompt = `The conversation above has become too long to be shown to you again. Write a summary that takes the place of all of it. You will go on from the summary alone, so keep what the work depends on:
- what the user wants, in the user's own words where they matter, with all constraints and preferences;
- what was done and found out so far: decisions and their reasons, results, names, paths, numbers and code that are still needed;
- what failed and why, so that it is not tried again;
- what is open, and the next step.
Leave out what is settled and of no use any more. Do not call tools and do not answer the user: write the summary only.`

// Compaction is a generation that writes the summary of what leaves the window, before
// the generation of a turn.
type Compaction struct {
	Again        bool       `msgpack:"again,omitempty"`        // the turn's generation was opened before it, and refused
	Asked        bool       `msgpack:"asked,omitempty"`        // it was requested: if it fails, nothing leaves
	Failed       uint8      `msgpack:"failed,omitempty"`       // failed attempts
	Instructions string     `msgpack:"instructions,omitempty"` // of the request
	Number       uint32     `msgpack:"number"`                 // of the attempt, in its turn, from 1
	Settled      codec.Hash `msgpack:"settled"`                // hash of its settlement; zero: none, or the session settled it
	To           int32      `msgpack:"to,omitempty"`           // the summary covers the items before this one; 0: it has ended
}

func (c *Compaction) invariant(s *State) error {
	switch {
	case c == nil:
		return nil
	case c.Number == 0 || len(c.Instructions) > InstructionsBytesMax || c.To < 0 || int(c.To) > len(s.Items):
		return fmt.Errorf("its compaction %d is of %d items of %d", c.Number, c.To, len(s.Items))
	case int(c.Failed) >= AttemptsMax:
		return fmt.Errorf("its compaction failed %d times", c.Failed)
	case c.To > 0 && !s.turnIsRuns():
		return errors.New("its compaction is open, and no turn waits for it")
	}
	return nil
}

func (w *Window) weight() int {
	if w == nil {
		return 0
	}
	n := windowWeight
	if c := w.Compaction; c != nil {
		n += compactionWeight + space.TextWeight(c.Instructions)
	}
	if w.Asked != nil {
		n += compactionWeight + space.TextWeight(w.Asked.Instructions)
	}
	return n
}

// isCompacting reports whether a compaction is open before the latest turn's generation,
// or waits for its next attempt.
func (s *State) isCompacting() bool {
	return s.Window != nil && s.Window.Compaction != nil && s.Window.Compaction.To > 0
}

// OpenCompaction returns the number of the compaction that is open before the latest
// turn's generation; ok is false if there is none.
func (s *State) OpenCompaction() (number uint32, ok bool) {
	if !s.isCompacting() {
		return 0, false
	}
	return s.Window.Compaction.Number, s.Turn.Open
}

// listed returns how many items the latest turn's generation or compaction lists.
func (s *State) listed() int32 {
	if s.isCompacting() {
		return s.Window.Compaction.To
	}
	return s.Turn.Items
}

func (w *Window) compactionStatus(t *Turn, n uint32) (codec.Hash, effectStatus) {
	switch {
	case w == nil || w.Compaction == nil || n > w.Compaction.Number:
		return codec.Hash{}, effectUnknown
	case n < w.Compaction.Number:
		return codec.Hash{}, effectOver
	case w.Compaction.To > 0 && t.Open:
		return codec.Hash{}, effectOpen
	default:
		return w.Compaction.Settled, effectSettled
	}
}

// fault returns what is wrong with a context besides its limits, as it follows the field's
// name; "" if nothing is.
func (c *ContextConfig) fault() string {
	switch {
	case c == nil || c.Summary == nil || c.Summary.Provider == "":
		return ""
	case c.Summary.Model == "":
		return "summary.provider: needs a model: give summary.model too"
	case !planner.IsName(c.Summary.Provider):
		return "summary.provider: must be a subject token: 1 to 64 of A-Za-z0-9_-"
	}
	return ""
}

// summary returns the config of the active run's summaries.
func (s *State) summary() SummaryConfig {
	if c := s.context(); c != nil && c.Summary != nil {
		return *c.Summary
	}
	return SummaryConfig{}
}

// summaryTokens returns how many tokens a summary of the active run may have.
func (s *State) summaryTokens() int64 {
	n := int64(summaryTokensDefault)
	if c := s.context(); c != nil && c.Tokens > 0 {
		n = min(n, c.Tokens/8)
	}
	return cmp.Or(s.summary().TokensMax, n)
}

// compactRequested has the next generation begin with a summary.
func (s *State) compactRequested(door Door, data codec.Raw) *refusal {
	var b CompactRequested
	if bad := decodeBody(data, &b); bad != nil {
		return bad
	}
	if door == DoorIn && !s.install.allows(ingressCompact) {
		return refuse(RejectNotPermitted, "the install policy allows CompactRequested only through the door ctl")
	}
	if len(s.Items) == 0 {
		return refuse(RejectIllegalTransition, "the session has no conversation yet, so there is nothing to summarize")
	}
	s.openWindow()
	s.Window.Asked = &b
	return nil
}

// requestedCompaction returns the compaction that was requested. If nothing would leave
// the window, it returns nil and forgets the request.
func (s *State) requestedCompaction() *Compaction {
	asked, keep := s.Window.Asked, 0
	if asked.KeepTurns != nil {
		keep = *asked.KeepTurns
	}
	c := s.compactionOf(s.firstKept(latest(maxWindowBytes, keep)))
	if c == nil {
		s.Window.Asked = nil
		return nil
	}
	c.Asked, c.Instructions = true, asked.Instructions
	return c
}

// compactionOf returns a compaction of the items before an index, nil if none of them
// leaves the window.
func (s *State) compactionOf(from int) *Compaction {
	task := s.task()
	for i := range s.Items[:from] {
		if s.Items[i].leaves(i, task) {
			return &Compaction{To: int32(from)}
		}
	}
	return nil
}

// compaction is compactionOf if the run's context allows one, and the window has grown
// enough since the last.
func (s *State) compaction(from int) *Compaction {
	c, w := s.context(), s.Window
	if s.summary().Off || w.Compacted > 0 && int64(s.WindowBytes)-w.Compacted < c.Tokens*BytesPerToken/10 {
		return nil
	}
	return s.compactionOf(from)
}

// openCompaction opens a compaction before the generation of the latest turn.
func (s *State) openCompaction(c *Compaction) {
	t := s.Turn
	c.Number, c.Again, t.Items = 1, s.wasOpened(), 0
	if last := s.Window.Compaction; last != nil {
		c.Number = last.Number + 1
	}
	if c.Asked {
		s.Window.Asked = nil
	}
	s.Window.Compaction = c
	s.fixPrompt()
	s.openGeneration()
}

// endCompaction closes the compaction before the turn's generation.
func (s *State) endCompaction() {
	if !s.isCompacting() {
		return
	}
	t, c := s.Turn, s.Window.Compaction
	c.To, c.Instructions, t.Open, t.RetryAt = 0, "", false, 0
	if !c.Again {
		t.RunMS, t.Toolset = 0, planner.Toolset{}
	}
	t.Defined = nil // what follows has another prefix
}

// compactionSettled folds the settlement of a compaction.
func (s *State) compactionSettled(b *settlement) {
	s.Window.Compaction.Settled = settlementHash(b.typ, b.data)
	text, usage, fault := s.summaryOf(b)
	s.addUsage(usage)
	if fault == nil {
		s.compacted(text, usage)
		return
	}
	d := TurnSettled{Effect: s.generationName(), Code: fault.Code, Detail: fault.Detail}
	s.turnSettled(nil, usage, d)
	s.compactionFailed(*fault)
}

// summaryOf returns the summary in a settlement, or why it has none.
func (s *State) summaryOf(b *settlement) (text *Content, usage *Usage, fault *Fault) {
	bad := b.bad
	var answer *GenerationSettled
	switch body := b.body.(type) {
	case *ToolCallsObserved:
		usage, bad = body.Usage, cmp.Or(bad, observedFault(body))
	case *GenerationSettled:
		answer, usage, bad = body, body.Usage, cmp.Or(bad, generationFault(body))
	}
	most := s.summaryTokens() * BytesPerToken * summarySlack
	switch {
	case bad != nil:
		return nil, nil, &Fault{Code: CodeBadSettlement, Detail: sentence.Clip(bad.detail, DetailBytesMax)}
	case answer == nil:
		return nil, usage, &Fault{Code: codeBadSummary, Detail: "the model called tools", Retryable: true}
	case answer.Status == "failed":
		fault = &Fault{Code: answer.Error.Code, Detail: sentence.Clip(answer.Error.Detail, DetailBytesMax), Retryable: answer.Error.Retryable}
		return nil, usage, fault
	case answer.isSilent():
		return nil, usage, &Fault{Code: codeBadSummary, Detail: "the model wrote nothing", Retryable: true}
	case answer.FinishReason == FinishLength:
		return nil, usage, &Fault{Code: codeBadSummary, Detail: "the model was cut off", Retryable: true}
	case answer.Text.shownBytes() > most:
		return nil, usage, &Fault{Code: codeBadSummary, Detail: "the summary has more than " + strconv.FormatInt(most, 10) + " bytes", Retryable: true}
	}
	return answer.Text, usage, nil
}

// compacted puts the summary in the place of the items that it covers, and goes on to the
// turn's generation.
func (s *State) compacted(text *Content, usage *Usage) {
	w := s.Window
	to, effect, before := int(w.Compaction.To), s.generationName(), s.windowTokens(0)
	s.endCompaction()
	w.Summary, w.SummaryBytes = s.Seq, uint32(min(text.shownBytes(), maxWindowBytes))
	gone := s.leave(to)
	w.Compacted = int64(s.WindowBytes)
	notify(s, NoticeContextCompacted, ContextCompacted{
		Run: s.Run.Number, Effect: effect, Items: gone, SummarySeq: s.Seq, TokensBefore: before, Tokens: s.windowTokens(0), Usage: UsageTotal(*cmp.Or(usage, &Usage{})),
	})
	s.startGeneration(nil)
}

// compactionFailed schedules another attempt if the run's config allows it. Else the items
// leave the window without a summary, unless a person asked for it.
func (s *State) compactionFailed(f Fault) {
	c := s.Window.Compaction
	if s.Run.Lifecycle == Interrupting {
		s.endInterrupted()
		return
	}
	if s.summary().Model == "" && s.fallsBack(f) {
		s.Turn.RetryAt = s.Clock
		return
	}
	if s.retries(f, c.Failed) {
		c.Failed++
		return
	}
	to, asked := int(c.To), c.Asked
	s.endCompaction()
	if !asked {
		s.cut(to, 0)
	}
	s.startGeneration(nil)
}

// CompactionModel returns the provider and the model of a compaction of the active run.
func (s *State) CompactionModel() (provider, model string) {
	c := s.summary()
	if c.Model == "" {
		return s.TurnProvider(), s.TurnModel()
	}
	return cmp.Or(c.Provider, s.TurnProvider()), c.Model
}

// generationProvider returns the provider of the latest turn's generation, or of the
// compaction before it.
func (s *State) generationProvider() string {
	if !s.isCompacting() {
		return s.TurnProvider()
	}
	provider, _ := s.CompactionModel()
	return provider
}

// showWindow adds to a generation what is in the place of earlier items.
func (s *State) showWindow(g *Generation) {
	shortened := g.Compact != ""
	if w := s.Window; w != nil {
		g.Cut, g.Summary = w.Cut, w.Summary
		shortened = shortened || w.Cut > 0 || w.Summary > 0
	}
	for i := range s.Items[:s.listed()] {
		shortened = shortened || s.Items[i].Shown != ShownWhole
	}
	if shortened {
		g.V = WindowVersion
	}
}

// showCompaction makes a generation a compaction: the same beginning, so that the
// provider's cache has it, and a request for a summary at the end. Another model gets no
// params of the run's.
func (s *State) showCompaction(g *Generation) {
	c := s.summary()
	g.Compact = cmp.Or(c.Prompt, summaryPrompt) + "\n\nWrite at most about " + strconv.FormatInt(s.summaryTokens()*3/4, 10) + " words."
	if asked := s.Window.Compaction.Instructions; asked != "" {
		g.Compact += "\n\n" + asked
	}
	g.ResponseFormat = nil
	if len(g.Tools) > 0 {
		g.ToolChoice = "none"
	}
	if g.Provider, g.Model = s.CompactionModel(); c.Model != "" {
		g.Params = nil
	}
}

// windowSummary returns the sequence of the event with the window's summary, 0 if there is
// none.
func (s *State) windowSummary() uint64 {
	if s.Window == nil {
		return 0
	}
	return s.Window.Summary
}
