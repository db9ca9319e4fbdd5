package docs_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold/planner"
)

// refusedByOthers returns the codes by which whoever was asked refuses a call,
// without those that the session has too.
func refusedByOthers(t *testing.T) []string {
	t.Helper()
	own := constants(t, "planner/check.go", func(_, typ string) bool { return typ == "Code" })
	return slices.DeleteFunc(refusedCodes(t), func(code string) bool { return slices.Contains(own, code) })
}

func refusedCodes(t *testing.T) []string {
	t.Helper()
	return constants(t, "actors/session/batch.go", func(name, _ string) bool { return strings.HasPrefix(name, "Refused") })
}

// TestRefusedCodesAreThoseOfBridges: the codes by which the fold knows that a call was
// refused are those that our bridges say, each of them, in the same letters;
// and what the session says itself is none of them but for one.
func TestRefusedCodesAreThoseOfBridges(t *testing.T) {
	t.Parallel()
	said := map[string][]string{
		"bridge/function/function.go":     {"codeToolNotServed"},
		"internal/tools/mcp/call.go":      {"CodeToolChanged", "CodeToolGone", "CodeToolNotPinned", "CodeToolNotServed"},
		"internal/tools/service/reply.go": {"CodeToolChanged", "CodeServiceRefused"},
		"internal/tools/host/failure.go":  {"CodeToolUnbound"},
	}
	var all []string
	for file, names := range said {
		codes := constants(t, file, func(name, _ string) bool { return slices.Contains(names, name) })
		if len(codes) != len(names) {
			t.Errorf("%s: %v are the codes %v", file, names, codes)
		}
		all = append(all, codes...)
	}
	slices.Sort(all)
	if all = slices.Compact(all); !sameSet(all, refusedCodes(t)) {
		t.Errorf("bridges refuse calls by %v, the fold knows %v", all, refusedCodes(t))
	}
	if left := refusedByOthers(t); len(left) != len(refusedCodes(t))-1 || slices.Contains(left, string(planner.ToolUnbound)) {
		t.Errorf("of %v, the session says itself all but %v; want tool_unbound alone", refusedCodes(t), left)
	}
}
