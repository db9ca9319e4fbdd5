package e2e_test

// Calls that wait for a person, who is a plain NATS client with the right to
// publish to the door approve; the session-actor is killed meanwhile.

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

func approvalRecord() object {
	unsafe := object{"retry_safe": false, "approval": "always"}
	mail := object{"retry_safe": false, "approval": "always", "args_schema": object{
		"type": "object", "required": list{"to"}, "properties": object{"to": object{"type": "string"}}, "additionalProperties": false,
	}}
	return object{
		"v": 1, "rules": 1,
		"tools":  list{tool("look", nil), tool("pay", unsafe), tool("mail", mail), tool("wipe", unsafe)},
		"config": object{"provider": "scripted", "model": "m"},
	}
}

// approvalScript calls four tools at once, three of which wait for a person.
const approvalScript = `
turns:
  - calls:
      - {tool: look, arguments: {at: it}}
      - {tool: pay, arguments: {amount: 5}}
      - {tool: mail, arguments: {to: all}}
      - {tool: wipe, arguments: {disk: a}}
  - shown:
      results:
        - {tool: look, error: false, text: done, lacks: person}
        - {tool: pay, error: false, text: done, lacks: person}
        - {tool: mail, error: false, text: ['A person changed the arguments of this call to {"to":"bob"}', done]}
        - {tool: wipe, error: true, text: [approval_denied, not today]}
    say: That is all.
`

// approvals waits for n notices that calls wait for a person.
func (e *ear) approvals(t *testing.T, n int) (all []session.ApprovalRequested) {
	t.Helper()
	until(t, endWithin, fmt.Sprintf("ApprovalRequested %d", n), func() bool { return e.count(session.NoticeApprovalRequested) >= n })
	for _, heard := range e.all() {
		if heard.Type != session.NoticeApprovalRequested {
			continue
		}
		var said session.ApprovalRequested
		if err := json.Unmarshal(heard.Data, &said); err != nil {
			t.Fatal(err)
		}
		all = append(all, said)
	}
	return all
}

// decision is what a person says of a call.
func decision(of session.ApprovalRequested, what string, more object) object {
	data := object{"call": of.Call, "args_hash": of.ArgsHash, "decision": what}
	for key, value := range more {
		data[key] = value
	}
	return data
}

// TestApprovals: one call runs at once, one after its approval, one with other
// arguments, one never. A client without the role decides nothing.
func TestApprovals(t *testing.T) {
	t.Parallel()
	guarded := startGuarded(t)
	s := guarded.start(approvalRecord())
	s.models(approvalScript, "scripted")
	l := &lab{}
	s.tools(l)
	chat := guarded.connect("chat")
	heard := listen(t, chat, "refold.out.s1")
	publish(t, chat, "refold.in.s1", envelope(t, session.TypeRunRequested, object{"input": object{"text": "go"}}))
	asked := heard.approvals(t, 3)
	for i, want := range []struct{ call, tool, arguments string }{
		{"r1t1c1", "pay", `{"amount":5}`}, {"r1t1c2", "mail", `{"to":"all"}`}, {"r1t1c3", "wipe", `{"disk":"a"}`},
	} {
		a := asked[i]
		if a.Call != want.call || a.ToolName != want.tool || a.ToolID != "lab."+want.tool || a.Arguments != want.arguments ||
			a.ArgsHash != codec.Sum([]byte(want.arguments)).String() || a.Deadline < time.Now().Add(time.Hour).UnixMilli() {
			t.Errorf("asked for approval %d: %+v, want %+v", i, a, want)
		}
	}
	pay, mail, wipe := asked[0], asked[1], asked[2]
	s.view("s1", "the sibling's result", func(v session.View) bool {
		return v.Batch != nil && v.Batch.Calls[0].Status == session.CallSucceeded && v.WaitsFor == "approval"
	})
	s.actor.kill()
	s.actor.start()
	// Through the clients' door the decision is refused, and to the other one
	// their account does not reach.
	said := envelope(t, session.TypeApprovalDecided, decision(pay, session.DecisionApprove, nil))
	s.at("s1", publish(t, chat, "refold.in.s1", said))
	unheard(t, chat, "refold.ctl.s1", said)
	s.folded()
	s.wantCalls("s1", "look")

	ctl := func(data object) uint64 { return s.say(session.DoorApprove, "s1", session.TypeApprovalDecided, data) }
	ctl(decision(wipe, session.DecisionDeny, object{"reason": "not today"}))
	ctl(decision(mail, session.DecisionApprove, object{"arguments": `{"to":7}`})) // not what the tool takes
	ctl(decision(pay, session.DecisionApprove, object{"args_hash": mail.ArgsHash}))
	edit := ctl(decision(mail, session.DecisionApprove, object{"arguments": `{"to":"bob"}`}))
	ctl(decision(pay, session.DecisionApprove, nil))
	ctl(decision(wipe, session.DecisionApprove, nil)) // too late
	s.wantEnd("s1", 1, session.Completed, "")
	s.wantRejections(heard, "ApprovalDecided wrong_door", "ApprovalDecided invalid_data", "ApprovalDecided approval_stale", "ApprovalDecided approval_stale")
	if n := heard.count(session.NoticeApprovalRequested); n != 3 {
		t.Errorf("%d approvals were asked for, want 3", n)
	}
	s.wantCalls("s1", "look", "mail", "pay")
	var ran []string
	for _, c := range l.did() {
		ran = append(ran, c.ToolName+" "+string(c.Arguments))
	}
	slices.Sort(ran)
	if got, want := strings.Join(ran, ", "), `look {"at":"it"}, mail {"to":"bob"}, pay {"amount":5}`; got != want {
		t.Errorf("ran: %s, want %s", got, want)
	}
	all := s.generations("s1")
	for _, it := range shownItems(t, all[len(all)-1]) {
		if want := (it.Role == session.RoleTool && it.Call == 2); (it.Edit == edit) != want || it.Edit != 0 && !want {
			t.Errorf("the item %+v, want the edit %d at the call 2 alone", it, edit)
		}
	}
	verifyAll(t, s.url)
}
