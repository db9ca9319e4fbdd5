package docs_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus/bustest"
)

// controlStory is a history in the form of scenario files, without pictures:
// runs that are steered, stopped, paused and edited, calls that wait for a
// person, budgets, retries and the end of the session.
const controlStory = `install {"v":1,"rules":1,"policy":{"approval":[{"decision":"deny","tools":["pay"],"when":"args.sum > 1000"},{"decision":"allow","tools":["pay"],"when":"role(\"boss\")"}]},"tools":[{"tool_id":"shop.look","tool_name":"look","args_schema":{"type":"object"},"executor":{"kind":"effect","target":"shop"},"parallel_safe":true,"access":"read","retry_safe":true},{"tool_id":"shop.pay","tool_name":"pay","args_schema":{"type":"object"},"executor":{"kind":"effect","target":"shop"},"approval":"args.sum > 10"},{"tool_id":"desk.ask","tool_name":"ask","args_schema":{"type":"object"},"executor":{"kind":"host_loop","target":"desk"},"approval":"always"}],"config":{"provider":"p","model":"m1","completion":"explicit","deadlines_ms":{"run":86400000,"approval":3600000},"prices":{"input":1000000,"cache_read":100000,"cache_write":1250000,"output":10000000},"budget":{"cost":1000},"retry":{"attempts":2}}}
----

run "buy a chair" submission=s1
----

run "and a lamp"
----

edit 2 "and two lamps"
----

# The first attempt fails, the second pays: one sum is refused, one asked about, one small.
settle r1t1 failed overloaded "later" retryable usage=10/0
----

clock +1s
----

settle w2
----

steer "a red one"
----

settle r1t1a2 calls look(1) pay{"sum":5000} pay{"sum":50} pay{"sum":5} ask{"question":"which?"} usage=100/50/60
----

approve r1t1c2 hash=00
----

approve r1t1c2 args={"sum":2000}
----

approve r1t1c2 args={"sum":30} reason="thirty is enough"
----

settle r1t1c4 ok "too early"
----

settle r1t1c0 ok "a shop"
----

settle r1t1c2 ok "paid"
----

settle r1t1c3 ok "paid"
----

deny r1t1c4 reason="nobody is there"
----

approve r1t1c4
----

# Words end nothing; the run is paused, and then its budget is spent.
settle r1t2 text "red it is" usage=10/60
----

pause
----

pause
----

steer "and the bill?"
----

resume
----

resume
----

resume budget={"cost":5000} via=in
----

resume budget={"cost":5000,"tokens":10000,"session_tokens":100000,"session_cost":100000,"on_breach":"pause"} via=ctl
----

settle r1t3 text "here"
----

complete code=done detail="as agreed"
----

# The next one is interrupted, and the one after that cancelled with a steer.
interrupt
----

steer "three lamps"
----

settle r2t1 text "two lamps so far"
----

cancel
----

steer "x" run=2
----

run "once more" when_busy=steer submission=s2
----

pause
----

settle r4t1 calls look(1)
----

steer "and again"
----

cancel reason="asked twice"
----

run "last" config={"provider":"p","model":"m1","completion":"explicit"}
----

settle r5t1 text "yes?"
----

fail
----

run "open"
----

steer "more"
----

close
----

steer "too late"
----

run "buy a chair" submission=s1
----
`

// TestControlStoryNamesItsCodes: the story says every code that came with what it tells of,
// and every end of a run.
func TestControlStoryNamesItsCodes(t *testing.T) {
	t.Parallel()
	s := readSchemas(t)
	var said []session.Rejection
	ends := map[session.Lifecycle]bool{}
	check := func(at, name string, err error) {
		if err != nil {
			t.Errorf("%s: %s: %v", at, name, err)
		}
	}
	foldFile(t, s, "controlStory", controlStory, check, func(_ *folding, notices []session.Notice) {
		for _, n := range notices {
			switch b := n.Data.(type) {
			case session.EventRejected:
				said = append(said, b.Code)
			case session.RunFinished:
				ends[b.Lifecycle] = true
			}
		}
	})
	want := []session.Rejection{
		session.RejectApprovalStale, session.RejectNotPermitted, session.RejectIllegalTransition, session.RejectApprovalStale,
		session.RejectIllegalTransition, session.RejectIllegalTransition, session.RejectNotPermitted, session.RejectStale, session.RejectSessionClosed,
	}
	if !slices.Equal(said, want) {
		t.Errorf("rejections: got %v\nwant %v", said, want)
	}
	for _, end := range []session.Lifecycle{session.Completed, session.Failed, session.Cancelled, session.Interrupted} {
		if !ends[end] {
			t.Errorf("no run ended %s", end)
		}
	}
}

// controlled runs a session whose one tool asks a person each time, and says
// all that can be said of its runs.
func (w *wire) controlled(operator, chat *nats.Conn) {
	w.t.Helper()
	out := w.follow(operator, "refold.out.s3")
	in := func(typ, data string) {
		w.t.Helper()
		w.said(chat, "refold.in.s3", `{"type":"`+typ+`","data":`+data+`}`)
	}
	w.said(operator, "refold.ctl.s3", `{"type":"ToolRegistrySet","data":{"tools":[{"tool_id":"desk.ask","tool_name":"ask","args_schema":{"type":"object"},"approval":"args.q != 'again'","executor":{"kind":"host_loop","target":"desk"}}]}}`)
	w.said(operator, "refold.ctl.s3", `{"type":"SessionConfigured","data":{"provider":"openai","model":"m1","completion":"explicit"}}`)
	in("RunRequested", `{"input":{"text":"work"}}`)
	w.decides(operator, out, `"decision":"approve","arguments":"{\"q\":\"which?\"}"`)
	var planned session.CallsPlanned
	out.next(session.NoticeCallsPlanned, &planned)
	w.said(operator, "refold.tool.s3", `{"type":"ToolCallSettled","data":{"effect":"r1t1c0","status":"succeeded","output":{"text":"the red one"}}}`)
	w.waits(operator, "input")
	in("RunPauseRequested", `{"reason":"lunch"}`)
	in("RunResumeRequested", `{}`)
	in("RunCompleted", `{"code":"done"}`)
	if end := out.finished(1); end.Lifecycle != session.Completed || end.Code != "done" || end.OutputSeq == 0 {
		w.t.Fatalf("a run that was completed: got %+v", end)
	}
	// A steer starts the second run; its call waits until the run is interrupted.
	in("SteerRequested", `{"input":{"text":"more"}}`)
	w.waits(operator, "approval")
	in("RunInterruptRequested", `{}`)
	if end := out.finished(2); end.Lifecycle != session.Interrupted {
		w.t.Fatalf("a run that was interrupted: got %+v", end)
	}
	// The third is cancelled, the fourth edited before it starts, and its call denied.
	in("RunRequested", `{"input":{"text":"work"}}`)
	in("RunRequested", `{"input":{"text":"work"}}`)
	in("RunEdited", `{"run":4,"input":{"text":"work on"}}`)
	in("RunCancelRequested", `{"reason":"asked twice"}`)
	if end := out.finished(3); end.Lifecycle != session.Cancelled || end.Detail != "asked twice" {
		w.t.Fatalf("a run that was cancelled: got %+v", end)
	}
	w.decides(operator, out, `"decision":"deny","reason":"enough"`)
	w.waits(operator, "input")
	in("RunFailed", `{}`)
	if end := out.finished(4); end.Lifecycle != session.Failed || end.Code != session.CodeExplicit {
		w.t.Fatalf("a run that was failed: got %+v", end)
	}
	w.said(operator, "refold.ctl.s3", `{"type":"SessionClosed"}`)
	w.waits(operator, "nobody")
}

// decides answers the call of s3 that waits for a person, and not one of a run
// that is over.
func (w *wire) decides(operator *nats.Conn, out *followed, decision string) {
	w.t.Helper()
	v := w.waits(operator, "approval")
	var asked session.ApprovalRequested
	for asked.Call != v.Batch.Calls[0].Effect {
		out.next(session.NoticeApprovalRequested, &asked)
	}
	w.said(operator, "refold.approve.s3", `{"type":"ApprovalDecided","data":{"call":"`+asked.Call+`","args_hash":"`+asked.ArgsHash+`",`+decision+`}}`)
}

// waits asks for the view of s3 until it waits for somebody.
func (w *wire) waits(operator *nats.Conn, whom string) (v session.View) {
	w.t.Helper()
	bustest.Until(w.t, "s3 waits for "+whom, func() bool {
		view := w.request(operator, "refold.view.s3").Data
		w.check("View", view)
		v = session.View{}
		if err := json.Unmarshal(view, &v); err != nil {
			w.t.Fatal(err)
		}
		return v.WaitsFor == whom
	})
	return v
}
