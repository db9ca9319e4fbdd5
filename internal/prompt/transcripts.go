package prompt

import (
	"cmp"
	"slices"
	"sync"
)

// transcripts keeps what sessions said, for their next turns, up to a number of
// bytes. The session that was not used for longest goes first, and as a whole: a
// turn shows all of its session's items, so a part of them saves little.
type transcripts struct {
	bytesMax int

	mu           sync.Mutex
	bytes        int
	entries      int
	hits, misses uint64
	at           map[string]*transcript
	ring         transcript // next to it is the one used last, before it the one not used for longest
}

// transcript is what is kept of one session. Most hold few events: a map for
// each, and a list beside, would take more than what is kept.
type transcript struct {
	sid        string
	entries    entries
	bytes      int
	first      uint64 // of its latest turn's events
	next, prev *transcript
}

// entryAt is what the event at a sequence of the log says.
type entryAt struct {
	seq   uint64
	entry *entry
}

func newTranscripts(bytesMax int) *transcripts {
	c := &transcripts{bytesMax: bytesMax}
	c.empty()
	return c
}

// empty makes c anew, but its counts. The lock is held, or nobody has c yet.
func (c *transcripts) empty() {
	c.at = make(map[string]*transcript)
	c.ring.next, c.ring.prev = &c.ring, &c.ring
}

// link makes of, which is not in the ring, the one used last.
func (c *transcripts) link(of *transcript) {
	of.prev, of.next = &c.ring, c.ring.next
	of.prev.next, of.next.prev = of, of
}

func (of *transcript) unlink() { of.prev.next, of.next.prev = of.next, of.prev }

// entries are what events say, ascending by their sequence, each once.
type entries []entryAt

// of returns what the event at a sequence says, nil if that is not among them.
func (w entries) of(seq uint64) *entry {
	if at, found := w.find(seq); found {
		return w[at].entry
	}
	return nil
}

func (w entries) find(seq uint64) (at int, found bool) {
	return slices.BinarySearchFunc(w, seq, bySeq)
}

func bySeq(s entryAt, seq uint64) int { return cmp.Compare(s.seq, seq) }

// look fills in what is kept of these events of a session, and returns those that
// are not, in their order.
func (c *transcripts) look(sid string, wanted entries) (missing []uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.at[sid]
	if of != nil {
		of.unlink()
		c.link(of)
	}
	for i := range wanted {
		w := &wanted[i]
		if of != nil {
			w.entry = of.entries.of(w.seq)
		}
		if w.entry == nil {
			c.misses++
			missing = append(missing, w.seq)
		} else {
			c.hits++
		}
	}
	if of != nil && len(wanted) > 0 {
		of.first = wanted[0].seq
		if len(of.entries) > 2*len(wanted)+transcriptSlack {
			c.forget(of) // the window has moved on
		}
	}
	return missing
}

// forget drops what lies before a session's latest turn. The lock is held.
func (c *transcripts) forget(of *transcript) {
	n, _ := of.entries.find(of.first)
	for _, s := range of.entries[:n] {
		of.bytes -= s.entry.bytes()
		c.bytes -= s.entry.bytes()
	}
	c.entries -= n
	of.entries = slices.Delete(of.entries, 0, n)
}

// put keeps what an event says. What is larger than a quarter of the cache is
// not kept, and of a session no more than all of the cache holds.
func (c *transcripts) put(sid string, seq uint64, s *entry) {
	bytes := s.bytes()
	if bytes > c.bytesMax/4 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.at[sid]
	if of == nil {
		of = &transcript{sid: sid, entries: make(entries, 0, transcriptRoom)}
		c.at[sid] = of
	} else {
		of.unlink()
	}
	c.link(of)
	if _, known := of.entries.find(seq); known {
		return
	}
	if of.bytes+bytes > c.bytesMax {
		c.forget(of)
	}
	if of.bytes+bytes > c.bytesMax {
		return
	}
	for c.bytes+bytes > c.bytesMax { // of is not the last one then
		oldest := c.ring.prev
		oldest.unlink()
		delete(c.at, oldest.sid)
		c.bytes -= oldest.bytes
		c.entries -= len(oldest.entries)
	}
	at, _ := of.entries.find(seq) // behind the others, most often
	of.entries = slices.Insert(of.entries, at, entryAt{seq, s})
	of.bytes += bytes
	c.bytes += bytes
	c.entries++
}

// counts returns the counts. What was too large to be kept is a miss each time.
func (c *transcripts) counts() CacheCounts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return CacheCounts{Hits: c.hits, Misses: c.misses, Entries: c.entries, Bytes: c.bytes}
}

// clear forgets everything.
func (c *transcripts) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.empty()
	c.bytes, c.entries = 0, 0
}
