package session

import "fmt"

// Check returns the first invariant that the state breaks, for tests, for
// snapshots that come from outside, and for the inspector. A state that only
// Evolve changed breaks none.
func (s *State) Check() error {
	switch {
	case s.install == nil:
		return fmt.Errorf("the state pinned no install record")
	case len(s.Items) > itemsHeldMax:
		return fmt.Errorf("the transcript holds %d items", len(s.Items))
	case len(s.Queue) > QueueMax:
		return fmt.Errorf("%d runs are queued", len(s.Queue))
	case s.Run == nil && len(s.Queue) > 0:
		return fmt.Errorf("%d runs are queued and none is active", len(s.Queue))
	case len(s.Wakes) > WakesMax:
		return fmt.Errorf("%d wakes are open", len(s.Wakes))
	case len(s.IDs) > IDsMax, len(s.Facts) > FactsMax, len(s.Submissions) > SubmissionsMax:
		return fmt.Errorf("%d ids, %d facts, %d submissions are remembered", len(s.IDs), len(s.Facts), len(s.Submissions))
	}
	size := 0
	for i := range s.Items {
		size += s.Items[i].encodedBytesMax()
	}
	if size != s.ItemBytes {
		return fmt.Errorf("item_bytes is %d, the items add up to %d", s.ItemBytes, size)
	}
	return s.checkTurn()
}

// checkTurn checks that an active run waits for something, and that whatever
// has a deadline has a wake.
func (s *State) checkTurn() error {
	t := s.Turn
	if s.Run == nil {
		if t != nil && t.Open {
			return fmt.Errorf("%s is open without an active run", turnName(t.Run, t.Number))
		}
		return nil
	}
	if t == nil || t.Run != s.Run.Number {
		return fmt.Errorf("run %d is active without a turn", s.Run.Number)
	}
	if t.Items > len(s.Items) {
		return fmt.Errorf("the window of %s is %d of %d items", turnName(t.Run, t.Number), t.Items, len(s.Items))
	}
	deadline, any := s.nextDeadline()
	if !any {
		return fmt.Errorf("run %d is active and waits for nothing", s.Run.Number)
	}
	for i := range s.Wakes {
		if s.Wakes[i].Due <= deadline {
			return s.checkBatch()
		}
	}
	return fmt.Errorf("nothing wakes the session by %d", deadline)
}

// checkBatch checks the calls of the batch against its plan.
func (s *State) checkBatch() error {
	b := s.Turn.Batch
	if b == nil {
		return nil
	}
	if len(b.Calls) > CallsMax {
		return fmt.Errorf("a batch of %d calls", len(b.Calls))
	}
	group := make([]int, len(b.Calls))
	for g, calls := range b.Plan.Groups {
		for _, i := range calls {
			if i < 0 || i >= len(b.Calls) {
				return fmt.Errorf("the plan names call %d of %d", i, len(b.Calls))
			}
			group[i] = g + 1
		}
	}
	for i := range b.Calls {
		c := &b.Calls[i]
		switch {
		case group[i] == 0 && !c.done():
			return fmt.Errorf("call %d is in no group and has no result", i)
		case c.Status == CallOpen && group[i]-1 != b.Group:
			return fmt.Errorf("call %d of group %d is open in group %d", i, group[i]-1, b.Group)
		case c.Status == CallWaiting && group[i]-1 <= b.Group:
			return fmt.Errorf("call %d of group %d waits in group %d", i, group[i]-1, b.Group)
		}
	}
	return nil
}
