package planner

import "fmt"

// registryRoom is the total size of the parts of a registry. Each is counted
// before it is compiled, so that refusing it is cheap: an event with a registry
// is read again at every replay of its session.
type registryRoom struct {
	nodes    int // JSON values of schemas
	patterns int // bytes of patterns, compiled
	whens    int // bytes of conditions, as text
}

// add adds the sizes of other, or says which limit that exceeds.
func (r *registryRoom) add(other registryRoom) string {
	r.nodes, r.patterns, r.whens = r.nodes+other.nodes, r.patterns+other.patterns, r.whens+other.whens
	switch {
	case r.nodes > RegistryNodesMax:
		return fmt.Sprintf("with it the schemas of the registry hold %d values, at most %d", r.nodes, RegistryNodesMax)
	case r.patterns > RegistryPatternsBytesMax:
		return fmt.Sprintf("with it the patterns of the registry take %d bytes, at most %d", r.patterns, RegistryPatternsBytesMax)
	}
	return ""
}

// takeWhens counts more bytes of conditions, or returns the limit that they exceed.
func (r *registryRoom) takeWhens(path string, bytes int) *RegistryError {
	if r.whens += bytes; r.whens > RegistryWhensBytesMax {
		return fault(path, "with it the conditions of the registry take %d bytes, at most %d", r.whens, RegistryWhensBytesMax)
	}
	return nil
}

// whensBytes returns how many bytes the conditions of rules have.
func whensBytes(rules []StepRule) (n int) {
	for i := range rules {
		n += len(rules[i].When)
	}
	return n
}

// The memory of a registry's parts without texts and patterns, in bytes on a
// 64-bit machine, rounded up.
const (
	registryWeight = 1 << 10
	toolWeight     = 2 << 10 // with its entries in the tables
	schemaWeight   = 512
	nodeWeight     = 640
	whenWeight     = 4 << 10
	whenByteWeight = 48 // for each byte of a condition's text
	copies         = 4  // of texts: the registry's bytes, its specs, its descriptors, their bytes
)

// Weight returns about how many bytes of memory the registry takes. Sessions
// share registries: a session-actor counts each once.
func (r *Registry) Weight() int {
	n := registryWeight + copies*len(r.bytes) + len(r.tools)*toolWeight
	for i := range r.tools {
		n += r.tools[i].approval.weight()
		for _, d := range r.tools[i].descriptors {
			n += d.schema.weight
		}
	}
	for i := range r.profiles {
		n += r.profiles[i].steps.Weight()
	}
	return n
}

// Weight returns about how many bytes of memory the compiled tools take. A registry
// that they are composed into shares most of that.
func (l *LayerTools) Weight() (n int) {
	if l == nil {
		return 0
	}
	for i := range l.tools {
		for _, d := range l.tools[i].descriptors {
			n += d.schema.weight + 2*len(d.bytes)
		}
	}
	return n
}

// Weight returns about how many bytes of memory the compiled conditions take.
func (s *Steps) Weight() (n int) {
	if s == nil {
		return 0
	}
	for _, w := range s.whens {
		n += w.weight()
	}
	return n
}

func (w *when) weight() int {
	if w == nil {
		return 0
	}
	return whenWeight + w.bytes*whenByteWeight
}
