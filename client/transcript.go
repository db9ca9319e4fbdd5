package client

import "strings"

// The kinds of entries of a transcript.
const (
	EntryRun      = "run"      // a run began
	EntryInput    = "input"    // a user's text that began a run
	EntrySteer    = "steer"    // a user's text for an active run, when a turn took it
	EntryRepair   = "repair"   // the session asked the model to repair its answer, as the model is shown it
	EntryText     = "text"     // a model's text
	EntryCall     = "call"     // a call that the model made
	EntryResult   = "result"   // the call's result, as the model is shown it
	EntryAsked    = "asked"    // a call waits for a person
	EntryDecided  = "decided"  // a person decided over a call
	EntryFailed   = "failed"   // an attempt at a turn failed
	EntryRejected = "rejected" // an event had no effect
	EntryPaused   = "paused"   // the budget is used up
	EntryWindow   = "window"   // something left what the model is shown; it stays in the transcript
	EntryEnd      = "end"      // a run ended
)

// TranscriptEntry is one entry of a session's conversation.
type TranscriptEntry struct {
	Kind      string `json:"kind"`
	Run       uint32 `json:"run,omitempty"`
	Turn      string `json:"turn,omitempty"` // r1t2
	Seq       uint64 `json:"seq"`            // of the event in the log
	Time      int64  `json:"time"`           // Unix ms
	Text      string `json:"text,omitempty"`
	Call      string `json:"call,omitempty"` // r1t2c0
	Tool      string `json:"tool,omitempty"`
	Arguments string `json:"arguments,omitempty"`
	Status    string `json:"status,omitempty"` // of a result, a decision, or the end of a run
	Code      string `json:"code,omitempty"`
	Detail    string `json:"detail,omitempty"`
	By        string `json:"by,omitempty"`
	Model     string `json:"model,omitempty"` // provider/model

	FinishReason string `json:"finish_reason,omitempty"` // of a turn's text, or of the answer that ended a run; absent: stop, or tool_calls

	Line string `json:"-"` // for people, without a time; empty: the entry has none
	Todo string `json:"-"` // what the reader can do, at a shell
}

// OneLine returns Line on one line: what a model, a tool or a stranger wrote in it can't
// begin another one. Other terminal controls are not escaped.
func (e *TranscriptEntry) OneLine() string { return lineBreaks.Replace(e.Line) }

var lineBreaks = strings.NewReplacer("\n", " ", "\t", " ")
