package bridge

// doubt is what this process does not know of its claims of a model turn. While
// nobody hears us, another bridge may find us gone, and go on with the next claim:
// ours is worth nothing then, and it would be a second start to trust it.
type doubt struct {
	passed int // the last claim of ours that others may have passed over; 0: none
	asked  int // the claim that was asked for, and not answered yet or ours; 0: none
	mark   int // what holders.mark said when it was asked for first
}

// asks notes that the claim n is asked for, for the first time or again: what
// counts is the first time, since that one may have been stored. Those before the
// one that is asked for are known, and asked for only on the way to it.
func (f *flight) asks(n int, h *holders) {
	if h.look(); f.doubt.asked < n {
		f.doubt.asked, f.doubt.mark = n, h.mark()
	}
}

// answered notes that the claim n, if it is the one that was asked for, is not
// ours, or worth nothing: passed says that others may have passed it over. One
// that is ours is doubted until what it is for is settled, since it may be given
// back before it starts.
func (f *flight) answered(n int, passed bool) {
	if n != f.doubt.asked {
		return
	}
	if passed {
		f.doubt.passed = n
	}
	f.doubt.asked, f.doubt.mark = 0, 0
}
