package session

// Summary is what a list shows of a session. The last notice about an event has it, so a
// list reads the last message of each session and nothing else.
//
// It is as of that event. Between notices, usage, cost and what a running session waits
// for may go on; the view is always current.
type Summary struct {
	// State of the active run, else of the run that ended last. Absent: there was none.
	Lifecycle Lifecycle `json:"lifecycle,omitempty" lim:"enum=running|waiting_input|paused|interrupting|completed|failed|cancelled|interrupted"`
	// What the session waits for, as in the view.
	WaitsFor string `json:"waits_for,omitempty" lim:"enum=nobody|model|tools|step|host_loop|approval|reply|session|clock|input|resume|retry|space"`
	// The session whose call this one carries out. Absent: it is no child.
	Parent string `json:"parent,omitempty" lim:"@session"`
	// Of a child: the session at the top of the tree.
	Root string `json:"root,omitempty" lim:"@session"`
	// The session accepts no more runs; false if absent.
	Closed bool `json:"closed,omitempty"`
	// The session was erased; false if absent. It is closed, too.
	Erased bool `json:"erased,omitempty"`
	// The session is stopped; false if absent. The rest is as of the notice before.
	Quarantined bool `json:"quarantined,omitempty"`
	// Number of the active run, else of the run that ended last.
	Run uint32 `json:"run,omitempty" lim:"1.."`
	// Number of queued runs; 0 if absent.
	Queued int `json:"queued,omitempty" lim:"1.."`
	// Provider of the active run, or of the run that this event ended; else of the config
	// that the next run has if it brings none.
	Provider string `json:"provider,omitempty" lim:"@token"`
	// The model, from the same config.
	Model string `json:"model,omitempty" lim:"1..NameBytesMax"`
	// Whether the active run is paused because its budget is spent; false if absent.
	Spent bool `json:"spent,omitempty"`
	// Deadline of the active run, Unix milliseconds. While it is paused it stands still.
	Deadline int64 `json:"deadline,omitempty"`
	// When a schedule requests a run next, Unix milliseconds. Absent: none does.
	NextFiring int64 `json:"next_firing,omitempty" lim:"1.."`
	// Input and output tokens of all runs so far; 0 if absent.
	Tokens int64 `json:"tokens,omitempty" lim:"1.."`
	// Cost of all runs so far, in micro-units by their prices; 0 if absent.
	Cost int64 `json:"cost,omitempty" lim:"1.."`
	// Why the last run ended. Absent while a run is active.
	Code string `json:"code,omitempty" lim:"1..CodeBytesMax"`
	// Detail of the code, for people.
	Detail string `json:"detail,omitempty" lim:"..DetailBytesMax"`
	// The beginning of the transcript's latest input or answer, if this event has it: at
	// most 200 characters, with … at the end if there is more.
	Text string `json:"text,omitempty" lim:"1..SummaryTextBytesMax"`
	// In place of the text of an answer without one: names of the tools that it calls, the
	// first four.
	Calls []string `json:"calls,omitempty" lim:"1..SummaryCallsMax,item=..NameBytesMax"`
	// In place of text and calls: sequence of the event that has them.
	TextSeq uint64 `json:"text_seq,omitempty" lim:"1.."`
}

// Summary returns the summary as of the latest event. While the state keeps it, until
// Evolve returns, it has what only that event says: its text, and the model of a run that
// it ended.
func (s *State) Summary() Summary {
	v := Summary{
		Lifecycle: s.lifecycle(), WaitsFor: s.waitsFor(), Closed: s.Closed, Erased: s.IsErased(), Queued: len(s.Queue), NextFiring: s.nextFiring(),
		Tokens: s.Usage.InputTokens + s.Usage.OutputTokens, Cost: s.Cost,
	}
	if p := s.parent(); p != nil {
		v.Parent, v.Root = p.Parent, p.Root
	}
	config := s.configFor()
	switch {
	case s.Run != nil:
		config = s.Run.Config
		v.Run, v.Spent, v.Deadline = s.Run.Number, s.Run.Spent, s.Run.Deadline
	case s.Last != nil:
		v.Run, v.Code, v.Detail = s.Last.Number, s.Last.Code, s.Last.Detail.String()
		if s.scratch != nil && s.ended != nil {
			config = s.ended.Config
		}
	}
	v.Provider, v.Model = config.Provider, config.Model
	s.summarizeText(&v)
	return v
}

// summarizeText adds the latest text of the transcript, or what there is of it.
func (s *State) summarizeText(v *Summary) {
	at := len(s.Items) - 1
	for at >= 0 && s.Items[at].Role == RoleTool {
		at--
	}
	if at < 0 {
		return
	}
	v.TextSeq = s.Items[at].Seq
	if v.TextSeq != s.Seq || s.scratch == nil {
		return
	}
	if v.Text = s.text.firstCharacters(SummaryTextMax); v.Text == "" && s.turnIsRuns() && s.Turn.Batch != nil {
		calls := s.Turn.Batch.Calls
		for i := range calls[:min(len(calls), SummaryCallsMax)] {
			v.Calls = append(v.Calls, calls[i].ToolName)
		}
	}
	if v.Text != "" || v.Calls != nil {
		v.TextSeq = 0
	}
}

// firstCharacters returns at most n characters of a content's text. The last one is … if
// the content has more.
func (c *Content) firstCharacters(n int) string {
	text, more := c.beginning(4 * n)
	count, last := 0, 0 // last: where the nth character begins
	for at := range text {
		if count++; count == n {
			last = at
		}
	}
	if text == "" || more == 0 && count <= n {
		return text
	}
	if count >= n {
		text = text[:last]
	}
	return text + "…"
}

// standing is what a list selects sessions by. A change of it always has a notice.
type standing struct {
	lifecycle Lifecycle
	closed    bool
	erased    bool
	waits     string // what the session waits for, if only people or the time end that
	firing    int64  // when a schedule requests a run next
}

func (s *State) standing() standing {
	now := standing{lifecycle: s.lifecycle(), closed: s.Closed, erased: s.IsErased(), firing: s.nextFiring()}
	switch waits := s.waitsFor(); waits {
	case "approval", "reply", "clock", "input", "resume":
		now.waits = waits
	}
	return now
}

// lifecycle returns the lifecycle of the active run, else of the run that ended last.
func (s *State) lifecycle() Lifecycle {
	switch {
	case s.Run != nil:
		return s.Run.Lifecycle
	case s.Last != nil:
		return s.Last.Lifecycle
	}
	return ""
}
