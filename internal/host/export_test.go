package host

import "time"

// RecheckEvery makes a host look after quarantined sessions more often.
func (h *Host) RecheckEvery(d time.Duration) { h.recheck = d }
