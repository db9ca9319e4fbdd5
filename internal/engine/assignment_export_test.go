package engine

import "time"

// OrphanedEvery makes a host look at the lanes of others more often.
func (h *Host) OrphanedEvery(d time.Duration) { h.orphanedEvery = d }

// Runs returns the lanes that a host runs.
func (h *Host) Runs() []int {
	lanes, _, _ := h.assignment.now()
	return lanes
}

// Wanted returns the lanes that a host is to run.
func (h *Host) Wanted() []int {
	h.assignment.mu.Lock()
	defer h.assignment.mu.Unlock()
	return numbers(h.assignment.wanted)
}
