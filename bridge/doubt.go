package bridge

import "github.com/refold/refold/internal/fault"

// doubt is what this process does not know of its claims of a model turn. While
// nobody hears us, another bridge may find us gone, and go on with the next claim:
// ours is worth nothing then, and it would be a second start to trust it.
type doubt struct {
	passed int // the last claim of ours that others may have passed over; 0: none
	asked  int // the claim that was asked for and not answered yet; 0: none
	mark   int // what holders.mark said when it was asked for first
}

// asks notes that the claim n is asked for, for the first time or again: what
// counts is the first time, since that one may have been stored.
func (f *flight) asks(n int, h *holders) {
	if h.look(); f.doubt.asked != n || fault.On(fault.FirstAskForgotten) {
		f.doubt.asked, f.doubt.mark = n, h.mark()
	}
}

// answered notes that it is known who has the claim that was asked for. passed
// says that others may have passed it over.
func (f *flight) answered(passed bool) {
	if passed {
		f.doubt.passed = f.doubt.asked
	}
	f.doubt.asked, f.doubt.mark = 0, 0
}
