package session

import "fmt"

// isEnd reports whether a run in this lifecycle has ended.
func (l Lifecycle) isEnd() bool {
	return l == Completed || l == Failed || l == Cancelled || l == Interrupted
}

// isInput reports whether one input can show a model this many bytes.
func isInput(bytes int64) bool { return bytes >= 0 && bytes <= inputBytesMax }

func (r *Run) checkLifecycle(queued bool, seq uint64) error {
	switch {
	case queued && (r.Lifecycle != "" || r.Turns > 0 || r.Held != "" || r.Before != "" || r.Breach):
		return fmt.Errorf("it is queued and %q after %d turns", r.Lifecycle, r.Turns)
	case queued:
	case r.Lifecycle == Paused:
		if r.Before != Running && r.Before != WaitingInput {
			return fmt.Errorf("it is paused and goes back to %q", r.Before)
		}
	case r.Lifecycle != Running && r.Lifecycle != WaitingInput && r.Lifecycle != Interrupting:
		return fmt.Errorf("it is active and %q", r.Lifecycle)
	case r.Before != "" || r.Held != "" || r.Breach:
		return fmt.Errorf("it is %s, and holds back %q", r.Lifecycle, r.Held)
	}
	switch r.Held {
	case "", HeldGroup, HeldTurn, HeldGeneration:
	default:
		return fmt.Errorf("it holds back %q", r.Held)
	}
	if r.Repairs > RepairsMax || uint32(r.Repairs) > r.Turns {
		return fmt.Errorf("it repaired %d answers in %d turns", r.Repairs, r.Turns)
	}
	if !isInput(r.InputBytes) || !queued && r.InputBytes != 0 {
		return fmt.Errorf("its input is of %d bytes", r.InputBytes)
	}
	if queued && r.Asked != nil {
		return fmt.Errorf("it is queued, and its lists were changed")
	}
	if len(r.Steers) > SteersMax || r.Answer > seq || r.Cost < 0 || r.Cost > CostMax {
		return fmt.Errorf("%d steers wait, its answer is that of event %d", len(r.Steers), r.Answer)
	}
	if len(r.Finish) > NameBytesMax || queued && r.Finish != "" {
		return fmt.Errorf("its answer ended by %q", clip(r.Finish, CodeBytesMax))
	}
	for _, steer := range r.Steers {
		if steer.Seq == 0 || steer.Seq > seq || !isInput(steer.Bytes) {
			return fmt.Errorf("a steer is of event %d, the latest is %d, and of %d bytes", steer.Seq, seq, steer.Bytes)
		}
	}
	return nil
}

func (s *State) checkWakes() error {
	if len(s.Wakes) > WakesMax {
		return fmt.Errorf("%d wakes are open", len(s.Wakes))
	}
	before := uint32(0)
	for i := range s.Wakes {
		if n := s.Wakes[i].Number; n <= before || n > s.WakesAsked {
			return fmt.Errorf("%s comes after %s of %d", wakeName(n), wakeName(before), s.WakesAsked)
		}
		before = s.Wakes[i].Number
	}
	return nil
}
