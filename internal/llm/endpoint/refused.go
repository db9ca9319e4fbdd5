package endpoint

import (
	"slices"
	"sync"
)

// Refused remembers which optional parts of requests a server refused, by model: one
// server may lead to many. The zero value remembers none.
type Refused struct {
	mu  sync.Mutex
	all map[string][]string
}

// Of returns the parts that the server refused for a model.
func (r *Refused) Of(model string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.all[model])
}

// Add remembers parts, and returns those that were not known.
func (r *Refused) Add(model string, parts ...string) (added []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil || len(r.all) >= refusedMax {
		r.all = map[string][]string{}
	}
	for _, part := range parts {
		if !slices.Contains(r.all[model], part) {
			r.all[model], added = append(r.all[model], part), append(added, part)
		}
	}
	return added
}
