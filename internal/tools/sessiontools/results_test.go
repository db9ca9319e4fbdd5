package sessiontools_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/tools/sessiontools"
)

// texts are results in memory, by call.
type texts map[string]string

func (r texts) ResultOf(_ context.Context, sid, call string) (string, error) {
	text, ok := r[call]
	switch {
	case call == "r9t9c9":
		return "", errors.New("the server is away")
	case !ok || sid != "":
		return "", &executor.Error{Code: "result_unknown", Detail: "no such call"}
	}
	return text, nil
}

func TestReadResult(t *testing.T) {
	t.Parallel()
	const size = 32 << 10
	tools := sessiontools.New(nil)
	tools.Results = texts{
		"r1t1c0": "one\ntwo\nthree\nfour\nfive\nsix\nseven\n",
		"r1t1c1": "über",
		"r1t1c2": strings.Repeat("x", 70_000),
		"r1t1c3": strings.Repeat("a", 1_000) + "needle" + strings.Repeat("b", 1_000),
		"r1t1c4": strings.Repeat("hit\n", 20_000),
	}
	for _, c := range []struct{ arguments, want string }{
		{`{"call":"r1t1c0","offset":4,"max_bytes":3}`, "two\n[bytes 4 to 7 of 34 of the result of r1t1c0: go on with offset 7]"},
		{`{"call":"r1t1c0","offset":28}`, "seven\n\n[bytes 28 to 34 of 34 of the result of r1t1c0: that is its end]"},
		{`{"call":"r1t1c0","offset":34}`, "error invalid_arguments"},
		{`{"call":"r1t1c0","offset":35}`, "error invalid_arguments"},
		{`{"call":"r1t1c0","offset":-1}`, "error invalid_arguments"},
		{`{"call":"r1t1c0","pattern":"("}`, "error invalid_arguments"},
		{`{"call":"r1t1c0","pattern":"t[hw]"}`, "4: two\n8: three\n[bytes 0 to 34 of 34 of the result of r1t1c0: that is its end]"},
		{`{"call":"r1t1c0","pattern":"^three$","lines_around":1}`, "4- two\n8: three\n14- four\n[bytes 0 to 34 of 34 of the result of r1t1c0: that is its end]"},
		{`{"call":"r1t1c0","pattern":"one|six","lines_around":1}`, "0: one\n4- two\n--\n19- five\n24: six\n28- seven\n[bytes 0 to 34 of 34 of the result of r1t1c0: that is its end]"},
		{`{"call":"r1t1c0","pattern":"\\Q.\\E"}`, "no line matches\n[bytes 0 to 34 of 34 of the result of r1t1c0: that is its end]"},
		{`{"call":"r1t1c0","pattern":"e","offset":5,"max_bytes":14}`, "8: three\n[bytes 5 to 19 of 34 of the result of r1t1c0: go on with offset 19]"},
		{`{"call":"r1t1c1","max_bytes":1}`, "ü\n[bytes 0 to 2 of 5 of the result of r1t1c1: go on with offset 2]"}, // a character at least
		{`{"call":"r1t1c1","offset":1,"max_bytes":1}`, "b\n[bytes 2 to 3 of 5 of the result of r1t1c1: go on with offset 3]"},
		{`{"call":"r1t1c2"}`, strings.Repeat("x", size) + "\n[bytes 0 to 32768 of 70000 of the result of r1t1c2: go on with offset 32768]"},
		{`{"call":"r1t1c2","offset":65536}`, strings.Repeat("x", 70_000-2*size) + "\n[bytes 65536 to 70000 of 70000 of the result of r1t1c2: that is its end]"},
		{`{"call":"r1t1c3","pattern":"needle"}`, "850: …" + strings.Repeat("a", 150) + "needle" + strings.Repeat("b", 144) + "…\n[bytes 0 to 2006 of 2006 of the result of r1t1c3: that is its end]"},
		{`{"call":"r2t1c0"}`, "error result_unknown"},
		{`{"call":"r9t9c9"}`, "fault the server is away"},
	} {
		if got := says(t, tools, "refold.result.read", c.arguments, nil); got != c.want {
			t.Errorf("%s: got %q, want %q", c.arguments, got, c.want)
		}
	}
	// All matches are found in parts, none twice.
	found, parts := 0, 0
	for offset := "0"; offset != ""; parts++ {
		got := says(t, tools, "refold.result.read", `{"call":"r1t1c4","pattern":"hit","lines_around":2,"offset":`+offset+`}`, nil)
		if len(got) > size+100 {
			t.Fatalf("%d bytes at once", len(got))
		}
		found += strings.Count(got, ": hit")
		_, offset, _ = strings.Cut(strings.TrimSuffix(got, "]"), "go on with offset ")
	}
	if found != 20_000 || parts < 2 {
		t.Errorf("%d of 20000 matches in %d parts", found, parts)
	}
	if got := says(t, sessiontools.New(nil), "refold.result.read", `{"call":"r1t1c0"}`, nil); got != "error tool_not_served" {
		t.Errorf("without results: got %q", got)
	}
}
