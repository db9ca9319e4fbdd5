package refold

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
)

// logOf is a drawn log of a session: turns, the events in them, and their texts. An event
// in a turn may say something, such as that a run is queued, or nothing.
type logOf struct {
	events []eventOf
	texts  []string // of turn i+1
	again  bool     // models may begin turns again, which not every process sees
}

// eventOf is an event. It ends the open turn, and begins the next one.
type eventOf struct {
	seq   uint64
	ends  bool
	tells bool
	turn  uint32 // that is open before it
}

func drawLog(t *rapid.T) (l logOf) {
	l.again = rapid.Bool().Draw(t, "again")
	seq, turn := uint64(1), uint32(1)
	for range rapid.IntRange(1, 12).Draw(t, "events") {
		seq += uint64(rapid.IntRange(1, 2).Draw(t, "seq")) // others are of other sessions
		e := eventOf{seq: seq, turn: turn, ends: rapid.Bool().Draw(t, "ends"), tells: rapid.Bool().Draw(t, "tells")}
		if l.events = append(l.events, e); e.ends {
			turn++
		}
	}
	seq++
	l.events = append(l.events, eventOf{seq: seq, ends: true, tells: true, turn: turn})
	for i := range turn {
		l.texts = append(l.texts, fmt.Sprint(rapid.StringMatching("[a-z]{0,6}").Draw(t, "text"), i+1))
	}
	return l
}

// shown draws how a process that reads from a sequence on is shown the log: the texts come
// in any pieces, at any time while their turns are open.
func (l *logOf) shown(t *rapid.T, from uint64) (all []client.Shown) {
	rest := map[uint32]string{}
	for i, text := range l.texts {
		rest[uint32(i+1)] = text
	}
	piece := func(turn uint32, n int) {
		if n > 0 {
			all = append(all, client.Shown{Kind: client.ShownText, Run: 1, Turn: turn, Text: rest[turn][:n]})
			rest[turn] = rest[turn][n:]
		}
	}
	for _, e := range l.events {
		if e.seq < from {
			continue
		}
		if l.again && rest[e.turn] == l.texts[e.turn-1] && rapid.Bool().Draw(t, "void") {
			void := rapid.StringMatching("[a-z]{1,6}").Draw(t, "text")
			all = append(all, client.Shown{Kind: client.ShownText, Run: 1, Turn: e.turn, Text: void}, client.Shown{Kind: client.ShownAgain, Run: 1, Turn: e.turn})
		}
		piece(e.turn, rapid.IntRange(0, len(rest[e.turn])).Draw(t, "piece"))
		if e.ends {
			piece(e.turn, len(rest[e.turn]))
			all = append(all, client.Shown{Kind: client.ShownDone, Run: 1, Turn: e.turn, Seq: e.seq})
		}
		folded := &client.Folded{Event: session.Event{Seq: e.seq}}
		if e.tells {
			folded.Notices = []session.Notice{{Type: session.NoticeRunQueued, Data: session.RunPlaced{Run: uint32(e.seq)}}}
		}
		all = append(all, client.Shown{Kind: client.ShownEvent, Event: folded})
	}
	return all
}

// page is what a program makes of the updates from a sequence on. It checks them.
type page struct {
	t     *rapid.T
	log   *logOf
	left  []eventOf // that it has not been told of
	texts map[uint32]string
}

func (l *logOf) page(t *rapid.T, from uint64) *page {
	p := &page{t: t, log: l, texts: map[uint32]string{}}
	for _, e := range l.events {
		if e.seq >= from && e.tells {
			p.left = append(p.left, e)
		}
	}
	return p
}

func (p *page) take(u Update) {
	switch u := u.(type) {
	case Text:
		p.texts[u.Turn] += u.Text
	case TextRestarted:
		if p.texts[u.Turn] = ""; !p.log.again {
			p.t.Errorf("turn %d began again, but no text of it was another one", u.Turn)
		}
	case RunQueued:
		if len(p.left) == 0 || uint64(u.Run) != p.left[0].seq {
			p.t.Fatalf("told of event %d, and %v are left", u.Run, p.left)
		}
		e := p.left[0]
		p.left = p.left[1:]
		if e.ends && p.texts[e.turn] != p.log.texts[e.turn-1] {
			p.t.Errorf("at the end of turn %d, event %d, its text is %q, want %q", e.turn, e.seq, p.texts[e.turn], p.log.texts[e.turn-1])
		}
	}
}

// read lets a reader that goes on after a position take what a feed gets, until it has had
// most updates. It joins after so many steps of the feed. It returns the new position.
func (p *page) read(from, joins uint64, steps []client.Shown, after position, most int) position {
	f := &feed{session: &Session{rt: &Runtime{keptMax: keptMax}}, came: make(chan struct{}), from: from}
	fold := newFollowing(from)
	for i := range joins {
		f.put(fold.take(&steps[i]))
	}
	r := &reader{after: after, at: after}
	got := f.begin(r)
	for i := joins; ; i++ {
		all, _, _, _ := f.more(r)
		for _, u := range all {
			r.next++
			got = append(got, r.take(u)...)
		}
		for _, u := range got {
			if most == 0 {
				return after
			}
			most--
			p.take(u)
			after = u.place().at
		}
		if got = nil; i == uint64(len(steps)) {
			return after
		}
		f.put(fold.take(&steps[i]))
	}
}

// TestReaderGoesOnInAnotherProcess: a reader that leaves one process after any update, and
// goes on in others, gets each text and each event once, wherever the processes began to
// read, and however early texts came to each.
func TestReaderGoesOnInAnotherProcess(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := drawLog(t)
		from := rapid.Uint64Range(1, l.events[len(l.events)-1].seq).Draw(t, "from")
		p, after := l.page(t, from), position{seq: from}
		for _, most := range []int{rapid.IntRange(0, 20).Draw(t, "most"), rapid.IntRange(0, 20).Draw(t, "most"), -1} {
			begins := rapid.Uint64Range(1, after.seq).Draw(t, "begins")
			steps := l.shown(t, begins)
			after = p.read(begins, rapid.Uint64Range(0, uint64(len(steps))).Draw(t, "joins"), steps, after, most)
		}
		if len(p.left) > 0 {
			t.Errorf("never told of %v", p.left)
		}
		last := l.events[len(l.events)-1]
		if p.texts[last.turn] != l.texts[last.turn-1] {
			t.Errorf("the text of the last turn is %q, want %q", p.texts[last.turn], l.texts[last.turn-1])
		}
	})
}
