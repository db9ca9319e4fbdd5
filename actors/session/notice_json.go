package session

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// quickRoom is what a notice of every run takes in JSON, most of the time.
const quickRoom = 320

// quickJSON writes the notices and the progress that every run has, the same
// bytes that the library writes, without reflection. ok is false where a text
// needs an escape that is rare, and for all other notices.
func (n *Notice) quickJSON() (text []byte, ok bool) {
	room := quickRoom
	finished, is := n.Data.(RunFinished)
	if is && finished.Output != nil {
		room += len(finished.Output.Text)
	}
	switch data := n.Data.(type) {
	case TurnSettled:
		room += len(data.Text)
	case CallSettled:
		room += len(data.Output)
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
		q.text(`,"provider":`, data.Provider)
		q.text(`,"model":`, data.Model)
		q.given(`,"submission":`, data.Submission)
	case RunFinished:
		q.finished(&finished)
	case TurnSettled:
		q.turn(&data)
	case CallSettled:
		q.call(&data)
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
	q.usage(&f.Usage)
	q.some(`,"cost":`, f.Cost)
	q.odd = q.odd || f.OverBudget != nil || len(f.Untaken) > 0
}

func (q *quickWriter) usage(u *UsageTotal) {
	q.raw(`,"usage":{`)
	if u.CacheWriteTokens != 0 {
		q.signed(`"cache_write_tokens":`, u.CacheWriteTokens)
		q.raw(`,`)
	}
	q.signed(`"cached_tokens":`, u.CachedTokens)
	q.signed(`,"input_tokens":`, u.InputTokens)
	q.signed(`,"output_tokens":`, u.OutputTokens)
	q.signed(`,"reasoning_tokens":`, u.ReasoningTokens)
	q.raw(`}`)
}

func (q *quickWriter) turn(d *TurnSettled) {
	q.text(`"effect":`, d.Effect)
	q.some(`,"calls":`, int64(d.Calls))
	q.given(`,"text":`, d.Text)
	q.some(`,"text_bytes":`, d.TextBytes)
	q.given(`,"finish_reason":`, d.FinishReason)
	q.given(`,"code":`, d.Code)
	q.given(`,"detail":`, d.Detail)
	q.some(`,"retry_at":`, d.RetryAt)
	q.usage(&d.Usage)
}

func (q *quickWriter) call(d *CallSettled) {
	q.text(`"effect":`, d.Effect)
	q.text(`,"tool_name":`, d.ToolName)
	q.text(`,"status":`, string(d.Status))
	q.given(`,"code":`, d.Code)
	q.given(`,"detail":`, d.Detail)
	q.some(`,"duration_ms":`, d.DurationMS)
	q.given(`,"output":`, d.Output)
	q.some(`,"output_bytes":`, d.OutputBytes)
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

// some writes a number that is left out if it is 0.
func (q *quickWriter) some(before string, n int64) {
	if n != 0 {
		q.signed(before, n)
	}
}

func (q *quickWriter) text(before, text string) {
	q.b = append(append(q.b, before...), '"')
	from, ascii := 0, true
	for i := range len(text) {
		c := text[i]
		switch {
		case c == '"' || c == '\\':
			q.b = append(append(q.b, text[from:i]...), '\\', c)
		case c == '\n':
			q.b = append(append(q.b, text[from:i]...), '\\', 'n')
		case c == '\t':
			q.b = append(append(q.b, text[from:i]...), '\\', 't')
		case c >= ' ' && c < 0x7f:
			continue
		case c >= 0x80:
			ascii = false
			continue
		default:
			q.odd = true
			return
		}
		from = i + 1
	}
	q.odd = q.odd || !ascii && (!utf8.ValidString(text) || strings.Contains(text, "\u2028") || strings.Contains(text, "\u2029"))
	q.b = append(append(q.b, text[from:]...), '"')
}

// given writes a text that is left out if it is empty.
func (q *quickWriter) given(before, text string) {
	if text != "" {
		q.text(before, text)
	}
}
