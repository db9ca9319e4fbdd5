package client

// What a follower shows, whatever the order of its messages, and whichever are
// lost.

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
)

func TestFollowerShowsTextInOrderAndOnce(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", session.ProgressTextMax)
	n, seq := uint64(0), uint64(8)
	said := func(typ string, data any) received {
		text, err := json.Marshal(data)
		if err != nil {
			t.Fatal(err)
		}
		seq++
		notice := &Notice{Type: typ, Session: "s1", Seq: seq, Data: text}
		if typ != session.ProgressTurnSettled && typ != session.ProgressCallSettled {
			n++
			notice.N = n
		}
		return received{notice: notice}
	}
	delta := func(effect, start string, n uint64, text string) received {
		return received{delta: &Delta{Effect: effect, Start: start, N: n, Text: text}}
	}
	started := func() received { return said(session.NoticeRunStarted, session.RunPlaced{Run: 1, Seq: 7}) }
	turn := func(effect, text string, calls int) received {
		return said(session.ProgressTurnSettled, session.TurnSettled{Effect: effect, Text: text, Calls: calls})
	}
	failed := func(effect string) received {
		return said(session.ProgressTurnSettled, session.TurnSettled{Effect: effect, Code: "overloaded"})
	}
	call := func(effect string) received {
		return said(session.ProgressCallSettled, session.CallSettled{Effect: effect, ToolName: "look", Status: session.CallSucceeded})
	}
	refused := func(effect string) received {
		return said(session.NoticeToolRejected, session.ToolRejected{Effect: effect, Code: "policy_denied"})
	}
	ended := func(text string) received {
		return said(session.NoticeRunFinished, session.RunFinished{Run: 1, Lifecycle: session.Completed, Output: &session.Content{Text: text}})
	}
	same := func(h received) received { // as what was made before it
		h.notice.Seq--
		return h
	}
	for _, c := range []struct {
		name  string
		heard []received
		want  string
	}{
		{"no deltas", []received{started(), turn("r1t1", "I look.", 1), call("r1t1c0"), ended("Done.")}, "I look.[done]{r1t1c0}Done.[done][end]"},
		{"all deltas", []received{
			started(), delta("r1t1", "A", 0, "I "), delta("r1t1", "A", 1, "look."), turn("r1t1", "I look.", 1), call("r1t1c0"),
			delta("r1t2", "B", 0, "Do"), delta("r1t2", "B", 1, "ne."), ended("Done."), turn("r1t2", "Done.", 0),
		}, "I look.[done]{r1t1c0}Done.[done][end]"},
		{"a delta is lost", []received{started(), delta("r1t1", "A", 0, "I "), delta("r1t1", "A", 2, "k."), turn("r1t1", "I look.", 1), ended("Done.")}, "I look.[done]Done.[done][end]"},
		{"deltas before the run is known", []received{delta("r1t1", "A", 0, "Do"), started(), delta("r1t1", "A", 1, "ne."), ended("Done.")}, "Done.[done][end]"},
		{"the next turn speaks before the end of this one is heard", []received{
			started(), delta("r1t1", "A", 0, "I "), delta("r1t2", "B", 0, "Do"), turn("r1t1", "I look.", 1), delta("r1t2", "B", 1, "ne."), ended("Done."),
		}, "I look.[done]Done.[done][end]"},
		{"all is said again after a takeover", []received{
			started(), turn("r1t1", "I look.", 1), turn("r1t1", "I look.", 1), call("r1t1c0"), call("r1t1c0"), turn("r1t1", "I look.", 1), ended("Done."),
		}, "I look.[done]{r1t1c0}Done.[done][end]"},
		{"the end of a turn is lost", []received{started(), delta("r1t1", "A", 0, "I "), turn("r1t2", "Then.", 1), ended("Done.")}, "I Then.[done]Done.[done][end]"},
		{"another start", []received{started(), delta("r1t1", "A", 0, "I "), delta("r1t1", "B", 0, "Do"), ended("Done.")}, "I [again]Done.[done][end]"},
		{"another attempt", []received{started(), delta("r1t1", "A", 0, "I "), failed("r1t1"), delta("r1t1a2", "B", 0, "Do"), ended("Done.")}, "I [failed][again]Done.[done][end]"},
		{"the last turn is heard to end first", []received{started(), delta("r1t1", "A", 0, "Do"), turn("r1t1", "Done.", 0), same(ended("Done."))}, "Done.[done][end]"},
		{"the next turn speaks before the end of a call is heard", []received{
			started(), turn("r1t1", "I look.", 2), call("r1t1c0"), delta("r1t2", "B", 0, "Do"), call("r1t1c1"), delta("r1t2", "B", 1, "ne."), ended("Done."),
		}, "I look.[done]{r1t1c0}{r1t1c1}Done.[done][end]"},
		{"a call is refused before the end of its turn is heard", []received{
			started(), delta("r1t1", "A", 0, "I "), refused("r1t1c0"), delta("r1t1", "A", 1, "look."), turn("r1t1", "I look.", 1), call("r1t1c0"), ended("Done."),
		}, "I look.[done]{no r1t1c0}{r1t1c0}Done.[done][end]"},
		{"a call is refused, and its turn has no deltas", []received{
			started(), refused("r1t1c0"), turn("r1t1", "I look.", 1), call("r1t1c0"), ended("Done."),
		}, "I look.[done]{no r1t1c0}{r1t1c0}Done.[done][end]"},
		{"the end of a call is lost", []received{
			started(), turn("r1t1", "I look.", 1), delta("r1t2", "B", 0, "Do"), turn("r1t2", "Done", 1), call("r1t2c0"), ended("Done."),
		}, "I look.[done]Done[done]{r1t2c0}Done.[done][end]"},
		{"the end of a turn is lost, and its call is refused", []received{
			started(), delta("r1t1", "A", 0, "I "), refused("r1t1c0"), turn("r1t2", "Then.", 0), ended("Done."),
		}, "I Then.[done]{no r1t1c0}Done.[done][end]"},
		{"of another run", []received{started(), delta("r2t1", "A", 0, "other"), turn("r2t1", "other", 1), ended("Done.")}, "Done.[done][end]"},
		{"a long text", []received{
			started(), delta("r1t1", "A", 0, long), delta("r1t1", "A", 1, "yz"),
			said(session.ProgressTurnSettled, session.TurnSettled{Effect: "r1t1", Text: long, TextBytes: int64(len(long)) + 2, Calls: 1}), ended("Done."),
		}, long + "yz[done]Done.[done][end]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var got strings.Builder
			f := &Follower{sid: "s1", awaited: awaited{seq: 7}, numbers: numbers{}, watch: Watch{Run: func(uint32) {}, Notice: func(n Notice) {
				switch d := n.Body().(type) {
				case session.CallSettled:
					fmt.Fprintf(&got, "{%s}", d.Effect)
				case session.ToolRejected:
					fmt.Fprintf(&got, "{no %s}", d.Effect)
				}
			}, Shown: func(s Shown) {
				if s.Kind == ShownText {
					got.WriteString(s.Text)
				} else {
					fmt.Fprintf(&got, "[%s]", s.Kind)
				}
			}}}
			var end *RunEnd
			for _, h := range c.heard { // all of them may come at once
				of, err := f.handle(h)
				if err != nil {
					t.Fatal(err)
				}
				if end = of; end != nil {
					break
				}
			}
			f.flush()
			if got.String() != c.want {
				t.Errorf("got %q, want %q", got.String(), c.want)
			}
			if end == nil || end.Output.Text != "Done." {
				t.Errorf("the end is %+v", end)
			}
		})
	}
}

// TestFollowerDoesNotWaitForLostMessages: a session-actor publishes progress before
// it answers with a view of the same state.
func TestFollowerDoesNotWaitForLostMessages(t *testing.T) {
	t.Parallel()
	var got strings.Builder
	f := &Follower{sid: "s1", awaited: awaited{run: 1}, numbers: numbers{}, watch: Watch{
		Notice: func(n Notice) { fmt.Fprintf(&got, "{%s}", n.Type) },
		Shown:  func(s Shown) { got.WriteString(s.Text) },
	}}
	data, err := json.Marshal(session.ToolRejected{Effect: "r1t1c0"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.handle(received{notice: &Notice{N: 1, Type: session.NoticeToolRejected, Data: data}}); err != nil {
		t.Fatal(err)
	}
	running := session.View{Run: &session.ViewRun{ShownRun: session.ShownRun{Number: 1}}}
	for range lateMost {
		if got.Len() > 0 {
			t.Errorf("%q is shown before the text of its turn", got.String())
		}
		if _, err := f.applyView(running); err != nil {
			t.Fatal(err)
		}
	}
	if want := "{ToolRejected}"; got.String() != want {
		t.Errorf("got %q, want %q", got.String(), want)
	}
	f.words.opened(turnAttempt{1, 1, 1})
	f.words.done("", 9)
	f.turnEnded(1)
	f.delta(Delta{Effect: "r1t2", Start: "B", Text: "Then"})
	for range lateMost {
		f.flush()
		if strings.Contains(got.String(), "Then") {
			t.Error("the next turn's text is shown before the end of the call")
		}
		if _, err := f.applyView(running); err != nil {
			t.Fatal(err)
		}
	}
	if f.flush(); !strings.HasSuffix(got.String(), "Then") {
		t.Errorf("got %q, want the next turn's text", got.String())
	}
}
