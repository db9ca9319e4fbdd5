package session

import "github.com/refold/refold/codec"

// request is a RunRequested that was read in one pass, envelope and body, as
// clients write it: with text as input and no config. All else, and what is
// wrong, is left to open and applyBody, which come to the same.
type request struct {
	canonical []byte // of the payload, if that is JSON and could be read
	body      RunRequested
	bytes     int64 // of the input
}

// scan reads e if it is such a request. The text of its input is checked and
// not kept: the log has it.
func (q *request) scan(e *Event) (env Envelope, ok bool) {
	if e.Door != DoorIn && e.Door != DoorCtl || len(e.Payload) > EventBytesMax {
		return Envelope{}, false
	}
	var err error
	if q.canonical, err = codec.Canonicalize(e.Payload); err != nil {
		q.canonical = nil
		return Envelope{}, false
	}
	r := codec.Read(q.canonical)
	outer := r.Map()
	if r.Has("at") {
		env.At = r.Int()
	}
	if r.Has("by") && len(r.Text()) > ByBytesMax {
		return Envelope{}, false
	}
	r.Must("data")
	from := r.Pos()
	q.read(&r)
	to := r.Pos()
	if r.Has("id") {
		env.ID = r.Str()
	}
	r.Must("type")
	typ := r.Text()
	if r.Has("v") {
		env.V = int(r.Int())
	}
	r.EndMap(outer)
	n, ok := r.End()
	if !ok || n < len(q.canonical) || string(typ) != TypeRunRequested || !env.isSound() {
		return Envelope{}, false
	}
	env.Type, env.Data = TypeRunRequested, q.canonical[from:to]
	return env, true
}

// read reads the body.
func (q *request) read(r *codec.Reader) {
	outer := r.Map()
	r.Must("input")
	n := len(readTextBytes(r))
	if n == 0 || n > TextBytesMax {
		r.Fail()
	}
	q.bytes = int64(n)
	if r.Has("submission") {
		q.body.Submission = r.SomeText()
	}
	if r.Has("when_busy") {
		q.body.WhenBusy = r.SomeText()
	}
	r.EndMap(outer)
}
