package host

import "time"

// StrayEvery makes a host look at the lanes of others more often.
func (h *Host) StrayEvery(d time.Duration) { h.strayEvery = d }

// Runs returns the lanes that a host runs.
func (h *Host) Runs() []int {
	lanes, _, _ := h.places.now()
	return lanes
}

// SharesNow returns the lanes that are a host's by who shares them.
func (h *Host) SharesNow() []int {
	h.places.mu.Lock()
	defer h.places.mu.Unlock()
	return numbers(h.places.share)
}
