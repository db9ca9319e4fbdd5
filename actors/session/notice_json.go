package session

import "strconv"

// quickRoom is what a notice of every run takes in JSON, most of the time.
const quickRoom = 320

// quickJSON writes the notices that every run has, the same bytes that the library
// writes, without reflection. ok is false where a text needs an escape or holds
// anything but ASCII, and for all other notices.
func (n *Notice) quickJSON() (text []byte, ok bool) {
	room := quickRoom
	finished, is := n.Data.(RunFinished)
	if is && finished.Output != nil {
		room += len(finished.Output.Text)
	}
	q := quickWriter{b: make([]byte, 0, room)}
	q.number(`{"v":`, Version)
	if n.N != 0 {
		q.number(`,"n":`, n.N)
	}
	q.text(`,"type":`, n.Type)
	q.text(`,"session":`, n.Session)
	q.number(`,"seq":`, n.Seq)
	q.signed(`,"at":`, n.At)
	q.raw(`,"data":{`)
	switch data := n.Data.(type) {
	case SessionOpened:
		q.text(`"install":`, data.Install.String())
		q.signed(`,"rules":`, int64(data.Rules))
	case RunPlaced:
		q.number(`"run":`, uint64(data.Run))
		q.number(`,"seq":`, data.Seq)
		q.given(`,"submission":`, data.Submission)
	case RunFinished:
		q.finished(&finished)
	default:
		return nil, false
	}
	q.raw(`}}`)
	return q.b, !q.odd
}

// finished writes the end of a run. One with a blob, parts, a budget that is
// overdrawn or steers that were not taken is left to the library.
func (q *quickWriter) finished(f *RunFinished) {
	q.number(`"run":`, uint64(f.Run))
	q.text(`,"lifecycle":`, string(f.Lifecycle))
	q.given(`,"code":`, f.Code)
	q.given(`,"detail":`, f.Detail)
	if o := f.Output; o != nil {
		q.odd = q.odd || o.Text == "" || o.Blob != nil || o.MediaType != "" || len(o.Parts) > 0 || o.Size != 0
		q.text(`,"output":{"text":`, o.Text)
		q.raw(`}`)
	}
	if f.OutputSeq != 0 {
		q.number(`,"output_seq":`, f.OutputSeq)
	}
	q.signed(`,"usage":{"cached_tokens":`, f.Usage.CachedTokens)
	q.signed(`,"input_tokens":`, f.Usage.InputTokens)
	q.signed(`,"output_tokens":`, f.Usage.OutputTokens)
	q.signed(`,"reasoning_tokens":`, f.Usage.ReasoningTokens)
	q.raw(`}`)
	if f.Cost != 0 {
		q.signed(`,"cost":`, f.Cost)
	}
	q.odd = q.odd || f.OverBudget != nil || len(f.Untaken) > 0
}

// quickWriter appends members of a JSON object: what stands before a value, then
// the value. odd says that it met what it does not write.
type quickWriter struct {
	b   []byte
	odd bool
}

func (q *quickWriter) raw(text string) { q.b = append(q.b, text...) }

func (q *quickWriter) number(before string, n uint64) {
	q.b = strconv.AppendUint(append(q.b, before...), n, 10)
}

func (q *quickWriter) signed(before string, n int64) {
	q.b = strconv.AppendInt(append(q.b, before...), n, 10)
}

func (q *quickWriter) text(before, text string) {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			q.odd = true
			return
		}
	}
	q.b = append(append(q.b, before...), '"')
	q.b = append(append(q.b, text...), '"')
}

// given writes a text that is left out if it is empty.
func (q *quickWriter) given(before, text string) {
	if text != "" {
		q.text(before, text)
	}
}
