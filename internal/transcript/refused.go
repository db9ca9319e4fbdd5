package transcript

import (
	"github.com/refold/refold/actors/session"
)

// refused says that a call was not run, with the reason. If the executor refused
// it, it adds what to do, since no model can repair that.
func refused(d session.ToolRejected) string {
	text := "refused " + d.ToolName + " " + d.Effect + ": " + d.Code
	if d.Detail != "" {
		text += ": " + d.Detail
	}
	if todo := whatToDo(d.Code); todo != "" {
		text += "; what to do: " + todo
	}
	return text
}

// whatToDo returns how to repair a refused tool. It is "" if the session itself
// refused the call: then the model can correct it.
func whatToDo(code string) string {
	switch code {
	case session.RefusedToolChanged, session.RefusedToolGone, session.RefusedToolNotPinned:
		return "the tool differs from the imported one: review it (refold bridge doctor), import it again (refold tools import), and start its bridge again"
	case session.RefusedService:
		return "correct the service's metadata, then import it again (refold tools import services)"
	case session.RefusedToolNotServed:
		return "start the program that has the tool, or take it out of the registry (refold tools check)"
	}
	return ""
}
