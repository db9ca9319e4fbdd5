package session

import "github.com/refold/refold/codec"

// request is a RunRequested with a text input and no config, the usual form, read
// in one pass. Other events are left to open and applyType.
type request struct {
	canonical []byte // bytes of a payload that is JSON and could be read
	body      RunRequested
	bytes     int64 // of the input
}

// scan reads e if it is such a request. The input's text is checked and not kept:
// the log has it.
func (q *request) scan(e *Event) (env Envelope, ok bool) {
	if e.Door != DoorIn && e.Door != DoorCtl || len(e.Payload) > EventBytesMax {
		return Envelope{}, false
	}
	var err error
	if q.canonical, err = codec.Canonicalize(e.Payload); err != nil {
		q.canonical = nil
		return Envelope{}, false
	}
	var r envelopeReader
	r.begin(q.canonical)
	r.beginBody()
	q.read(&r.Reader)
	if !r.endBody() {
		return Envelope{}, false
	}
	return r.endSound(TypeRunRequested)
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
	q.body.Submission = r.SomeText("submission")
	q.body.WhenBusy = r.SomeText("when_busy")
	r.EndMap(outer)
}
