package session

// Warning says how much of a limit a session has used.
//
// At such a limit every later run fails, and only the config or a new session helps.
// Limits that a later event makes room under, as those of facts, queue and spaces, have
// no warning.
type Warning struct {
	// What is limited. `items`: those of the transcript. `item_bytes`: what a generation
	// takes to list them.
	Limit string `json:"limit" lim:"enum=Limit"`
	// How many there may be. The run that has more fails with `transcript_full`.
	Max int64 `json:"max" lim:"1.."`
	// How many there are: at least nine tenths of them.
	Used int64 `json:"used" lim:"1.."`
}

// The values of Warning.Limit.
const (
	LimitItems     = "items"
	LimitItemBytes = "item_bytes"
)

// LimitNear says that a session has used nine tenths of a limit at which every later run
// fails.
//
// The view has it as a warning for as long as it is so.
type LimitNear struct {
	// The run of the event, if one is active or was ended by it.
	Run uint32 `json:"run,omitempty" lim:"1.."`
	Warning
}

// isNear reports whether nine tenths of the limit are used.
func (w *Warning) isNear() bool { return w.Max > 0 && w.Used*10 >= w.Max*9 }

// lastingLimits returns the limits at which every later run would fail, each with a maximum of 0
// if the session has none: if it is closed, or its next turn is shown a window.
func (s *State) lastingLimits() (all [2]Warning) {
	c := s.ownConfig()
	if s.Run != nil {
		c = &s.Run.Config
	}
	if s.Closed || c != nil && c.Context != nil {
		return all
	}
	return [...]Warning{
		{Limit: LimitItems, Used: int64(len(s.Items)), Max: ItemsMax},
		{Limit: LimitItemBytes, Used: int64(s.ItemBytes), Max: int64(s.itemBytesMax(c))},
	}
}

// itemBytesMax returns how many bytes the items may take for a generation with a config,
// which may be nil.
func (s *State) itemBytesMax(c *RunConfig) int {
	if s.Spaces != nil || c != nil && c.PromptRefs != nil {
		return TranscriptBytesMax - promptBytesMax // the effect has a prompt too
	}
	return TranscriptBytesMax
}

// warnings returns the limits that are near, nil if none is.
func (s *State) warnings() (near []Warning) {
	all := s.lastingLimits()
	for i := range all {
		if all[i].isNear() {
			near = append(near, all[i])
		}
	}
	return near
}

// warn publishes the limits that are near since the event, and were not before.
func (s *State) warn(before *[2]Warning) {
	now := s.lastingLimits()
	for i := range now {
		if !now[i].isNear() || before[i].isNear() {
			continue
		}
		run := uint32(0)
		if s.Run != nil {
			run = s.Run.Number
		} else if s.ended != nil {
			run = s.Last.Number
		}
		notify(s, NoticeLimitNear, LimitNear{Run: run, Warning: now[i]})
	}
}
