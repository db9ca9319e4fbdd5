package bridge

import (
	"container/list"
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
	order        *list.List // of *transcript; the latest used first
	at           map[string]*list.Element
}

// transcript is what is kept of one session, by sequence in the log.
type transcript struct {
	sid   string
	said  map[uint64]*said
	bytes int
	first uint64 // of its latest turn's events
}

func newTranscripts(bytesMax int) *transcripts {
	return &transcripts{bytesMax: bytesMax, order: list.New(), at: make(map[string]*list.Element)}
}

// look fills found with what is kept of these events of a session, and returns
// those that are not, in their order. What found has already is left as it is.
func (c *transcripts) look(sid string, seqs []uint64, found map[uint64]*said) (missing []uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var of *transcript
	if e := c.at[sid]; e != nil {
		c.order.MoveToFront(e)
		of = e.Value.(*transcript)
	}
	first := ^uint64(0)
	for _, seq := range seqs {
		if _, known := found[seq]; known {
			continue
		}
		first = min(first, seq)
		var s *said
		if of != nil {
			s = of.said[seq]
		}
		found[seq] = s
		if s == nil {
			c.misses++
			missing = append(missing, seq)
		} else {
			c.hits++
		}
	}
	if of != nil && first != ^uint64(0) {
		of.first = first
		if len(of.said) > 2*len(found)+transcriptSlack {
			c.forget(of) // the window has moved on
		}
	}
	return missing
}

// forget drops what lies before a session's latest turn. The lock is held.
func (c *transcripts) forget(of *transcript) {
	for seq, s := range of.said {
		if seq < of.first {
			delete(of.said, seq)
			of.bytes -= s.bytes()
			c.bytes -= s.bytes()
			c.entries--
		}
	}
}

// put keeps what an event says. What is larger than a quarter of the cache is
// not kept, and of a session no more than all of the cache holds.
func (c *transcripts) put(sid string, seq uint64, s *said) {
	bytes := s.bytes()
	if bytes > c.bytesMax/4 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.at[sid]
	if e == nil {
		e = c.order.PushFront(&transcript{sid: sid, said: make(map[uint64]*said)})
		c.at[sid] = e
	} else {
		c.order.MoveToFront(e)
	}
	of := e.Value.(*transcript)
	if _, known := of.said[seq]; known {
		return
	}
	if of.bytes+bytes > c.bytesMax {
		c.forget(of)
	}
	if of.bytes+bytes > c.bytesMax {
		return
	}
	for c.bytes+bytes > c.bytesMax { // of is not the last one then
		oldest := c.order.Remove(c.order.Back()).(*transcript)
		delete(c.at, oldest.sid)
		c.bytes -= oldest.bytes
		c.entries -= len(oldest.said)
	}
	of.said[seq] = s
	of.bytes += bytes
	c.bytes += bytes
	c.entries++
}

// stats returns the counts. What was too large to be kept is a miss each time.
func (c *transcripts) stats() CacheStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return CacheStats{Hits: c.hits, Misses: c.misses, Entries: c.entries, Bytes: c.bytes}
}

// clear forgets everything.
func (c *transcripts) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.order.Init()
	clear(c.at)
	c.bytes, c.entries = 0, 0
}
