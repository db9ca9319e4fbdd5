package session

// What is tested here: the notices of every run are written by hand, and nobody
// could tell.

import (
	"bytes"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/refold/refold/codec"
)

func TestNoticeQuickJSON(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		data  any
		quick bool
	}{
		"opened":                {SessionOpened{Install: codec.Sum([]byte("x")), Rules: 3}, true},
		"started":               {RunPlaced{Run: 1, Seq: 7}, true},
		"started by submission": {RunPlaced{Run: math.MaxUint32, Seq: math.MaxUint64, Submission: "a<b>&c'/ ~"}, true},
		"turn":                  {TurnSettled{Effect: "r1t1", Calls: 2, Text: "hi", TextBytes: 9, FinishReason: "f", Code: "c", Detail: "d", RetryAt: 7, Usage: UsageTotal{5, 1, 2, 3, 4}}, true},
		"silent turn":           {TurnSettled{Effect: "r1t1"}, true},
		"call":                  {CallSettled{Effect: "r1t1c0", ToolName: "look", Status: CallFailed, Code: "c", Detail: "d", DurationMS: 7, Output: "a\n\tb \"c\" \\", OutputBytes: 9}, true},
		"silent call":           {CallSettled{Effect: "r1t1c0", ToolName: "look", Status: CallSucceeded}, true},
		"finished":              {RunFinished{Run: 2, Lifecycle: "completed", Output: &Content{Text: "done"}, Usage: UsageTotal{5, 1, 2, 3, 4}, Cost: 5}, true},
		"finished without":      {RunFinished{Run: 2, Lifecycle: "failed", Code: "c", Detail: "d", OutputSeq: 9, Cost: math.MinInt64}, true},
		"a long output":         {RunFinished{Output: &Content{Text: strings.Repeat("a", 100_000)}}, true},
		"a quote":               {RunFinished{Detail: `say "no"`}, true},
		"a backslash":           {RunFinished{Code: `\`}, true},
		"a new line":            {RunFinished{Output: &Content{Text: "a\nb"}}, true},
		"a letter beyond ASCII": {RunFinished{Output: &Content{Text: "é"}}, true},
		"a control character":   {RunFinished{Output: &Content{Text: "a\x01\b\f\r"}}, false},
		"a separator":           {RunFinished{Output: &Content{Text: "a\u2028"}}, false},
		"no UTF-8":              {RunFinished{Detail: "a\xff"}, false},
		"no text":               {RunFinished{Output: &Content{}}, false},
		"a blob":                {RunFinished{Output: &Content{Blob: new(codec.Ref), MediaType: "image/png", Size: 3}}, false},
		"parts":                 {RunFinished{Output: &Content{Parts: []Content{{Text: "a"}}}}, false},
		"steers":                {RunFinished{Untaken: []uint64{1}}, false},
		"another":               {BudgetExceeded{Run: 1}, false},
	} {
		for _, n := range []Notice{
			{N: 3, Type: "T", Session: "s1", Seq: 41, At: 1_700_000_000_000, Data: test.data},
			{Type: NoticeRunFinished, Data: test.data, At: -1},
		} {
			got, quick := n.quickJSON()
			if quick != test.quick {
				t.Errorf("%s: got written by hand %t, want %t", name, quick, test.quick)
			}
			if want := n.slowJSON(); quick && !bytes.Equal(got, want) {
				t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
			}
			if got, want := n.JSON(), n.slowJSON(); !bytes.Equal(got, want) {
				t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
			}
		}
	}
}

// A member that is added to one of these is written by hand, too, or nobody hears
// of it.
func TestNoticeQuickJSONKnowsAllMembers(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		of      any
		members int
	}{{noticeJSON{}, 7}, {SessionOpened{}, 2}, {RunPlaced{}, 5}, {TurnSettled{}, 9}, {CallSettled{}, 8}, {RunFinished{}, 10}, {UsageTotal{}, 5}, {Content{}, 5}} {
		if got := reflect.TypeOf(test.of).NumField(); got != test.members {
			t.Errorf("%T: got %d members, want %d: write the new one in notice_json.go, and count it here", test.of, got, test.members)
		}
	}
}

func FuzzNoticeQuickJSON(f *testing.F) {
	f.Add(uint8(0), uint64(1), int64(2), "s1", "text", "other")
	f.Add(uint8(1), uint64(0), int64(-2), "", `"`, "\u2028")
	f.Add(uint8(3), uint64(1), int64(2), "s1", "é\n", "\"")
	f.Add(uint8(4), uint64(1), int64(0), "s1", "\t", "\\")
	f.Add(uint8(2), uint64(math.MaxUint64), int64(math.MinInt64), "\x7f", "<&>", "\xff")
	f.Fuzz(func(t *testing.T, kind uint8, u uint64, i int64, session, a, b string) {
		n := Notice{N: u, Type: NoticeRunStarted, Seq: u / 2, At: i, Session: session}
		switch kind % 5 {
		case 0:
			n.Data = SessionOpened{Install: codec.Sum([]byte(a)), Rules: int(i)}
		case 1:
			n.Data = RunPlaced{Run: uint32(u), Seq: u, Provider: a, Model: b, Submission: a}
		case 3:
			n.Data = TurnSettled{Effect: a, Calls: int(i), Text: b, TextBytes: i, FinishReason: a, Code: b, Detail: session, RetryAt: i}
		case 4:
			n.Data = CallSettled{Effect: a, ToolName: b, Status: CallStatus(a), Code: b, DurationMS: i, Output: a, OutputBytes: i % 2}
		case 2:
			n.Data = RunFinished{
				Run: uint32(u), Lifecycle: Lifecycle(a), Code: b, Detail: session, OutputSeq: u % 2, Cost: i % 2,
				Output: &Content{Text: b}, Usage: UsageTotal{i / 3, i, -i, i / 2, 0},
			}
		}
		if got, quick := n.quickJSON(); quick && !bytes.Equal(got, n.slowJSON()) {
			t.Errorf("got\n%s\nwant\n%s", got, n.slowJSON())
		}
	})
}

func BenchmarkNoticeJSON(b *testing.B) {
	n := Notice{N: 3, Type: NoticeRunFinished, Session: "bench-0000004955", Seq: 41, At: 1_700_000_000_000, Data: RunFinished{
		Run: 1, Lifecycle: "completed", Output: &Content{Text: "the tools said what they were asked"}, Usage: UsageTotal{0, 1, 200, 30, 4}, Cost: 5,
	}}
	for name, write := range map[string]func() []byte{"quick": n.JSON, "library": n.slowJSON} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				write()
			}
		})
	}
}
