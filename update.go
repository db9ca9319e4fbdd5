package refold

import "github.com/refold/refold/actors/session"

// Update is one thing that happened in a session: Text, TextRestarted, ToolAsked,
// ToolEnded, ApprovalAsked, ApprovalDecided, ReplyAsked, RunQueued, RunStarted, RunPaused,
// RunResumed, RunEnded, Waiting or Partial. Text arrives while the model writes it;
// everything is what the log says in the end, in its order, each once.
type Update interface {
	// Position is opaque: Session.Updates goes on after it, in any process.
	Position() string

	place() about
}

// about is what all updates have.
type about struct {
	// Run is the run's number.
	Run uint32

	at position
}

// Position implements Update.
func (a about) Position() string { return a.at.String() }

func (a about) place() about { return a }

// The updates.
type (
	// Text continues the text of a turn.
	Text struct {
		about
		Turn uint32
		Text string
	}
	// TextRestarted makes the text of a turn void that came so far: the model begins
	// again, on another process or after an answer that broke off.
	TextRestarted struct {
		about
		Turn uint32
	}
	// ToolAsked is a call that the model made.
	ToolAsked struct {
		about
		Call Call // without an end
	}
	// ToolEnded is the end of a call.
	ToolEnded struct {
		about
		Call Call
	}
	// ApprovalAsked is a call that waits for a person: see Session.Approvals.
	ApprovalAsked struct {
		about
		Call Call // without an end
	}
	// ApprovalDecided is what a person decided.
	ApprovalDecided struct {
		about
		Call     Call   // without an end
		Decision string // approve or deny
		Reason   string
	}
	// ReplyAsked is a call that waits for a reply: see Session.Questions.
	ReplyAsked struct {
		about
		Call Call // without an end
	}
	// RunQueued is a run that waits for another one.
	RunQueued struct{ about }
	// RunStarted is a run that began.
	RunStarted struct{ about }
	// RunPaused is a run that begins no turns and calls until it is resumed.
	RunPaused struct{ about }
	// RunResumed is a run that goes on.
	RunResumed struct{ about }
	// RunEnded is the end of a run.
	RunEnded struct {
		about
		Lifecycle session.Lifecycle // completed, failed, cancelled or interrupted; empty, after a Partial: not known
		Code      string
		Detail    string
		Turns     uint32

		end *session.RunFinished
	}
)
