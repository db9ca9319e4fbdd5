package webhook

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/replylink"
	"github.com/refold/refold/subjects"
)

// notice is one notice, as it is sent.
type notice struct {
	id   string // the header webhook-id
	body []byte
}

// noticeJSON is a notice on refold.out.
type noticeJSON struct {
	V       int             `json:"v"`
	N       uint64          `json:"n,omitempty"`
	Type    string          `json:"type"`
	Session string          `json:"session"`
	Seq     uint64          `json:"seq"`
	At      int64           `json:"at"`
	Data    json.RawMessage `json:"data"`
	Summary json.RawMessage `json:"summary,omitempty"`
}

// repliesPath is the path of the HTTP API at which reply links are answered.
const repliesPath = "/v1/replies/"

// addLink adds reply_path to a ReplyRequested: with it anybody can answer the call, until
// its deadline.
func (h *Hook) addLink(sid string, n *noticeJSON) {
	var d struct {
		session.ReplyRequested
		ReplyPath string `json:"reply_path"`
	}
	if !h.ReplyLinks || n.Type != session.NoticeReplyRequested || json.Unmarshal(n.Data, &d) != nil {
		return
	}
	d.ReplyPath = repliesPath + replylink.Mint(h.secret, replylink.Link{
		Session: sid, Call: d.Call, ArgsHash: d.ArgsHash, By: d.By, Expires: time.UnixMilli(d.Deadline),
	})
	if text, err := json.Marshal(d); err == nil {
		n.Data = text
	}
}

// notices returns the notices of a message that the webhook sends. log is the identity of
// the log. The id of a notice is the same whoever sends it, and when.
func (h *Hook) notices(sid, log string, payload []byte) (all []notice) {
	if !strings.HasPrefix(sid, h.Scope+h.Sessions) {
		return nil
	}
	for line := range bytes.SplitSeq(payload, []byte("\n")) {
		var n noticeJSON
		if json.Unmarshal(line, &n) != nil || n.Session != sid || !slices.Contains(h.Events, n.Type) {
			continue
		}
		h.addLink(sid, &n)
		n.Session = strings.TrimPrefix(sid, h.Scope)
		id := subjects.NoticeID(n.Session, n.N)
		if n.N == 0 {
			id = subjects.UnnumberedID(n.Session, codec.Digest(line).String())
		}
		if log != "" {
			id += "." + log
		}
		var body bytes.Buffer
		enc := json.NewEncoder(&body)
		enc.SetEscapeHTML(false)
		if enc.Encode(n) != nil { // never: it was just decoded
			continue
		}
		all = append(all, notice{id: id, body: bytes.TrimSpace(body.Bytes())})
	}
	return all
}
