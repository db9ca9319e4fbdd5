package meter

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"
)

// Other stands for the values outside a label's set.
const Other = "other"

// labelBytesMax is the length to which an open label cuts a value.
const labelBytesMax = 128

// labelsTogether is how many labels a set may have.
const labelsTogether = 3

type values [labelsTogether]string

// Label is a set of values of one label, or of several labels that belong
// together, such as the class and the target of an effect. Metrics may share it,
// and it is safe for concurrent use.
type Label struct {
	names []string
	max   int // the limit of an open set; 0: it is closed

	mu    sync.Mutex // held while a value is added
	known atomic.Pointer[known]
}

// known holds the values of a label. It is replaced, never changed.
type known struct {
	at   map[values]int
	list []values
}

// Closed returns a label with a fixed set of values.
func Closed(name string, set ...string) *Label {
	l := &Label{names: []string{name}}
	k := &known{at: make(map[values]int, len(set))}
	for i, v := range set {
		k.at[values{v}] = i
		k.list = append(k.list, values{v})
	}
	l.known.Store(k)
	return l
}

// Open returns a label, or up to three that belong together, whose values are the
// first ones used, at most limit.
func Open(limit int, names ...string) *Label {
	if len(names) > labelsTogether {
		panic("meter: too many labels in one set")
	}
	l := &Label{names: names, max: limit}
	l.known.Store(&known{})
	return l
}

// Names returns the names of the labels.
func (l *Label) Names() []string { return l.names }

// Values returns the current values of the set, each with one text for each of
// its names, without "other".
func (l *Label) Values() [][]string {
	k := l.known.Load()
	all := make([][]string, len(k.list))
	for i := range k.list {
		all[i] = k.list[i][:len(l.names)]
	}
	return all
}

// Limit returns the limit of an open set, 0 for a closed one.
func (l *Label) Limit() int { return l.max }

// size is the number of indices of the set, with that of "other".
func (l *Label) size() int {
	if l.max > 0 {
		return l.max + 1
	}
	return len(l.known.Load().list) + 1
}

// index returns the index of a value, which has one text for each label of the set.
// An open set adds the value, if it has room.
func (l *Label) index(value []string) int {
	var v values
	copy(v[:], value)
	if at, ok := l.known.Load().at[v]; ok {
		return at
	}
	if l.max == 0 {
		return l.size() - 1
	}
	return l.add(v)
}

func (l *Label) add(v values) int {
	for i := range v {
		if len(v[i]) > labelBytesMax {
			v[i] = v[i][:labelBytesMax]
		}
		v[i] = strings.Clone(strings.ToValidUTF8(v[i], "?")) // keeps no larger text alive
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.known.Load()
	if at, ok := k.at[v]; ok {
		return at
	}
	if len(k.list) >= l.max {
		return l.max
	}
	next := &known{at: maps.Clone(k.at), list: append(k.list[:len(k.list):len(k.list)], v)}
	if next.at == nil {
		next.at = map[values]int{}
	}
	next.at[v] = len(k.list)
	l.known.Store(next)
	return len(k.list)
}

func (l *Label) at(index int) []string {
	if k := l.known.Load(); index < len(k.list) {
		return k.list[index][:len(l.names)]
	}
	other := make([]string, len(l.names))
	for i := range other {
		other[i] = Other
	}
	return other
}
