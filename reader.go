package refold

// reader is what one reader of updates has.
type reader struct {
	after position // what is before it is left out
	at    position // of the latest update

	text   string // of the open turn, as far as it has come again, while the reader is behind
	had    bool   // it began with a text, which has come again
	next   int    // number of the feed's next update
	joined int    // number of the feed's next update when the reader joined
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
	r.at, r.text, r.had = r.after, "", true
}

// waits returns an update of what the session waits for, at the reader's place.
func (r *reader) waits(w Waiting) Update {
	w.at = r.position()
	return w
}

// take returns what the reader gets of an update.
func (r *reader) take(u Update) []Update {
	at := u.place().at
	switch {
	case at.seq < r.after.seq:
		return r.takeEarlier(u)
	case at.seq == r.after.seq && (at.n < r.after.n || isEvent(u) && at.n == r.after.n):
		return nil // it has that, and the text of the turn that this event ended
	}
	switch u := u.(type) {
	case turnOver:
		r.at = at
		return r.endText(u)
	case TextRestarted:
		r.after.text, r.text = 0, ""
	case Text:
		r.at = at
		if r.after.text == 0 {
			return []Update{u}
		}
		if r.text += u.Text; len(r.text) < r.after.text {
			return nil
		}
		return r.caughtUp(u)
	}
	r.at = at
	return []Update{u}
}

// takeEarlier returns what the reader gets of an update from before its position: a feed
// may still be on its way there. Only the text of a turn that is open at the position
// counts, and a reader without a text may get it.
func (r *reader) takeEarlier(u Update) []Update {
	switch u := u.(type) {
	case Text:
		if r.after.text > 0 {
			r.text += u.Text
		} else if r.after == (position{seq: r.after.seq}) && !r.had {
			u.at.seq, u.at.n = r.after.seq, 0
			return []Update{u}
		}
	case TextRestarted, turnOver:
		r.text = ""
	}
	return nil
}

// caughtUp returns what the reader gets when as much text has come again as it has. u is
// the latest piece of it.
func (r *reader) caughtUp(u Text) []Update {
	has, whole := r.after.text, r.text
	r.after.text, r.text, r.had = 0, "", true
	if sumOf(whole[:has]) != r.after.sum {
		again := u.about
		again.at.text, again.at.sum = 0, 0
		u.Text = whole
		return []Update{TextRestarted{again, u.Turn}, u}
	}
	if u.Text = whole[has:]; u.Text == "" {
		return nil
	}
	return []Update{u}
}

// endText returns what the reader gets at the end of a turn: another text, if the turn
// ended with another one than the reader has.
func (r *reader) endText(u turnOver) (out []Update) {
	switch {
	case r.after.text == 0:
	case len(r.text) >= r.after.text:
		out = r.caughtUp(Text{u.about, u.Turn, ""})
	default:
		out = []Update{TextRestarted(u)}
		if r.text != "" {
			out = append(out, Text{u.about, u.Turn, r.text})
		}
	}
	r.after.text, r.text, r.had = 0, "", true
	return out
}

// isEvent reports whether an update is an event's, and not one of a text.
func isEvent(u Update) bool {
	switch u.(type) {
	case Text, TextRestarted, turnOver, Waiting:
		return false
	}
	return true
}
