package refold

// reader is what one reader of updates has. It is given the updates of a feed, or of a
// viewer, which may begin long before its position and is somewhere else: texts come in
// other pieces there, earlier or later beside the events.
type reader struct {
	after  position // what is before it is left out
	passed bool     // the updates have reached it
	at     position // of the latest update

	text   Text         // of the open turn, as far as it has come again, until the reader has it all
	void   map[int]bool // numbers of the feed's updates that it need not see
	next   int          // number of the feed's next update
	joined int          // number of the feed's next update when the reader joined
}

// position returns where the reader goes on.
func (r *reader) position() position {
	p := r.at
	if r.after.text > 0 { // it has text that has not come again
		p.text, p.sum = r.after.text, r.after.sum
	}
	return p
}

// rejoin makes the reader go on where it is.
func (r *reader) rejoin() {
	r.after = r.position()
	r.at, r.text, r.passed = r.after, Text{}, false
}

// waits returns an update of what the session waits for, at the reader's place.
func (r *reader) waits(w Waiting) Update {
	w.at = r.position()
	return w
}

// take returns what the reader gets of an update.
func (r *reader) take(u Update) (out []Update) {
	at := u.place().at
	if !r.passed {
		if at.seq < r.after.seq || at.seq == r.after.seq && at.n < r.after.n {
			return r.takeEarlier(u)
		}
		if out = r.pass(); isEvent(u) && at.seq == r.after.seq && at.n == r.after.n {
			return out // it has that
		}
	}
	switch u := u.(type) {
	case turnOver:
		return append(out, r.endText(u)...)
	case TextRestarted:
		r.after.text, r.text, r.at = 0, Text{}, at
		return append(out, u)
	case Text:
		r.at = at
		if r.after.text == 0 {
			return append(out, u)
		}
		r.add(u)
		return append(out, r.catchUp()...)
	}
	r.at = at
	return append(out, placed(u, r.position()))
}

// takeEarlier returns what the reader gets of an update from before its position. Only the
// text of a turn that is open at the position counts.
func (r *reader) takeEarlier(u Update) []Update {
	switch u := u.(type) {
	case Text:
		r.add(u)
	case TextRestarted:
		r.text = Text{}
	case turnOver:
		if u.by > r.after.seq || u.by == r.after.seq && r.after.n == 0 {
			return append(r.pass(), r.endText(u)...)
		}
		r.text = Text{}
	}
	return nil
}

// add adds to the text of the open turn.
func (r *reader) add(u Text) {
	u.Text = r.text.Text + u.Text
	r.text = u
}

// pass returns what the reader gets at its position: the text of the turn that is open
// there.
func (r *reader) pass() []Update {
	r.passed = true
	return r.catchUp()
}

// catchUp returns what the reader gets when at least as much text has come again as it has,
// and no more until then.
func (r *reader) catchUp() []Update {
	has, u := r.after.text, r.text
	if u.Text == "" || len(u.Text) < has {
		return nil
	}
	same := sumOf(u.Text[:has]) == r.after.sum || has == 0
	r.after.text, r.text = 0, Text{}
	u.at.seq, u.at.n, u.at.text, u.at.sum = r.at.seq, r.at.n, len(u.Text), sumOf(u.Text)
	r.at = u.at
	if !same {
		return r.restart(u)
	}
	if u.Text = u.Text[has:]; u.Text == "" {
		return nil
	}
	return []Update{u}
}

// restart makes the text void that the reader has, for another one, or none.
func (r *reader) restart(u Text) []Update {
	again := TextRestarted{u.about, u.Turn}
	again.at.text, again.at.sum = 0, 0
	if u.Text == "" {
		r.at = again.at
		return []Update{again}
	}
	return []Update{again, u}
}

// endText returns what the reader gets at the end of a turn: another text, if the turn
// ended with another one than the reader has.
func (r *reader) endText(u turnOver) []Update {
	if r.after.text == 0 {
		return nil
	}
	text := Text{u.about, u.Turn, r.text.Text}
	text.at.seq, text.at.n, text.at.text, text.at.sum = r.at.seq, r.at.n, len(text.Text), sumOf(text.Text)
	r.after.text, r.text, r.at = 0, Text{}, text.at
	return r.restart(text)
}

// isEvent reports whether an update is an event's, and not one of a text.
func isEvent(u Update) bool {
	switch u.(type) {
	case Text, TextRestarted, turnOver, Waiting:
		return false
	}
	return true
}

// placed returns an event's update with another position: readers may have more of the open
// turn's text than has come again.
func placed(u Update, at position) Update {
	switch u := u.(type) {
	case ToolAsked:
		u.at = at
		return u
	case ToolEnded:
		u.at = at
		return u
	case ApprovalAsked:
		u.at = at
		return u
	case ApprovalDecided:
		u.at = at
		return u
	case ReplyAsked:
		u.at = at
		return u
	case RunQueued:
		u.at = at
		return u
	case RunStarted:
		u.at = at
		return u
	case RunPaused:
		u.at = at
		return u
	case RunResumed:
		u.at = at
		return u
	case RunEnded:
		u.at = at
		return u
	}
	return u
}
