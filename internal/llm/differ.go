package llm

import (
	"fmt"
	"strconv"

	"github.com/refold/refold/bridge/executor"
)

// Differ compares a message that a model is shown with the expected one. It
// names the first part that differs, with excerpts of both; "" if none does. Ids
// of calls are not compared, and arguments that are too large to be shown are
// compared by their size.
func Differ(want, got *executor.Message) (what, wanted, shown string) {
	switch {
	case want.Role != got.Role:
		return "role", want.Role + " " + Excerpt(want.Text), got.Role + " " + Excerpt(got.Text)
	case want.Error != got.Error:
		return "error", strconv.FormatBool(want.Error), strconv.FormatBool(got.Error) + ": " + Excerpt(got.Text)
	case want.Text != got.Text:
		wanted, shown = Difference(want.Text, got.Text)
		return "text", wanted, shown
	case len(want.Calls) != len(got.Calls):
		return "how many calls", strconv.Itoa(len(want.Calls)), strconv.Itoa(len(got.Calls))
	}
	for i := range want.Calls {
		w, g := &want.Calls[i], &got.Calls[i]
		if w.Name != g.Name {
			return fmt.Sprintf("calls[%d].tool", i), Excerpt(w.Name), Excerpt(g.Name)
		}
		if w.Arguments != g.Arguments && (g.Omitted == 0 || g.Omitted != int64(len(w.Arguments))) {
			wanted, shown = Difference(w.Arguments, g.Arguments)
			return fmt.Sprintf("calls[%d].arguments", i), wanted, shown
		}
	}
	return "", "", ""
}
