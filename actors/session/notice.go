package session

import (
	"encoding/json"

	"github.com/refold/refold/codec"
)

// Notice is what the fold has to say to the outside about one event. Notices
// are numbered per session from 1 without gaps; a repeat has the same number.
// Payload is the JSON that observers read on refold.out.<sid>:
// {"v":1,"n":3,"type":"RunFinished","session":"s1","seq":41,"at":…,"data":{…}}.
type Notice struct {
	N       uint64 // 0 only on SessionQuarantined, which no fold says
	Type    string
	Seq     uint64 // of the event that it is about
	At      int64  // session clock, Unix milliseconds
	Session string
	Data    any // one of the structs below
}

// Notice types: the wire's names.
const (
	NoticeSessionOpened      = "SessionOpened"
	NoticeRunQueued          = "RunQueued"
	NoticeRunStarted         = "RunStarted"
	NoticeRunFinished        = "RunFinished"
	NoticeEventRejected      = "EventRejected"
	NoticeToolRejected       = "ToolRejected"
	NoticeSessionQuarantined = "SessionQuarantined"
)

// SessionOpened is the data of the first notice.
type SessionOpened struct {
	Install codec.Hash `json:"install"` // of the pinned install record
	Rules   int        `json:"rules"`
}

// RunPlaced is the data of RunQueued and RunStarted.
type RunPlaced struct {
	Run        uint32 `json:"run"`
	Seq        uint64 `json:"seq"` // of its RunRequested
	Submission string `json:"submission,omitempty"`
}

// RunFinished is the data of the notice that ends a run.
type RunFinished struct {
	Run       uint32     `json:"run"`
	Lifecycle Lifecycle  `json:"lifecycle"` // completed, failed
	Code      string     `json:"code,omitempty"`
	Detail    string     `json:"detail,omitempty"`
	Output    *Content   `json:"output,omitempty"`
	Usage     UsageTotal `json:"usage"`
}

// EventRejected is the data of the notice about an event that had no effect.
type EventRejected struct {
	Seq    uint64    `json:"seq"`
	Type   string    `json:"type,omitempty"` // absent if undecodable
	Code   Rejection `json:"code"`
	Detail string    `json:"detail,omitempty"`
}

// ToolRejected is the data of the notice about a call that was not run.
type ToolRejected struct {
	Effect   string `json:"effect"` // the name that it would have had
	ToolName string `json:"tool_name"`
	Code     string `json:"code"`
	Detail   string `json:"detail,omitempty"`
}

// SessionQuarantined is the data of the notice that a session is stopped. No
// fold says it, so it has no number.
type SessionQuarantined struct {
	Reason string `json:"reason"`
}

// noticeJSON is a notice's form on refold.out.<sid>.
type noticeJSON struct {
	V       int    `json:"v"`
	N       uint64 `json:"n,omitempty"`
	Type    string `json:"type"`
	Session string `json:"session"`
	Seq     uint64 `json:"seq"`
	At      int64  `json:"at"`
	Data    any    `json:"data"`
}

// JSON returns what observers read.
func (n Notice) JSON() []byte {
	b, err := json.Marshal(noticeJSON{V: Version, N: n.N, Type: n.Type, Session: n.Session, Seq: n.Seq, At: n.At, Data: n.Data})
	if err != nil {
		panic("session: a notice does not encode: " + err.Error())
	}
	return b
}
