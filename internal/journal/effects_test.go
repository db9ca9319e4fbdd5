package journal_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/subjects"
)

func effect(name, payload string) session.Effect {
	return session.Effect{Name: name, Class: session.ClassTool, Target: "host", Payload: []byte(payload)}
}

func effectSubject(e testbus.Env, sid, name string) string {
	e.T.Helper()
	subject, err := e.Names.Effect(subjects.EffectName{Class: session.ClassTool, Target: "host", Session: sid, Effect: name})
	if err != nil {
		e.T.Fatal(err)
	}
	return subject
}

func askContract(t *testing.T, e testbus.Env) {
	subject := effectSubject(e, "ask", "r1t1c0")
	if _, found, err := storedUnder(e.Ctx, e.B, subject); err != nil || found {
		t.Errorf("before: got %v %v, want nothing", found, err)
	}
	for i := range 3 {
		if err := ask(e.Ctx, e.All[i%len(e.All)], "ask", effect("r1t1c0", "one")); err != nil {
			t.Fatalf("asking for the %dth time: %v", i+1, err)
		}
	}
	err := ask(e.Ctx, e.B, "ask", effect("r1t1c0", "two"))
	var violation *journal.ViolationError
	if !errors.As(err, &violation) {
		t.Fatalf("other bytes: got %v, want a ViolationError", err)
	}
	if violation.Subject != subject || string(violation.Stored) != "one" || string(violation.Wanted) != "two" {
		t.Errorf("got %s %q %q", violation.Subject, violation.Stored, violation.Wanted)
	}
	data, found, err := storedUnder(e.Ctx, e.B, subject)
	if err != nil || !found || string(data) != "one" {
		t.Errorf("stored: got %q %v %v, want one", data, found, err)
	}
	// Headers are no part of an effect: others' are not a violation.
	_, js := testbus.JS(t, e.Nodes[0])
	if _, err := js.Publish(e.Ctx, effectSubject(e, "ask", "r1t1c1"), []byte("raw")); err != nil {
		t.Fatal(err)
	}
	if err := ask(e.Ctx, e.B, "ask", effect("r1t1c1", "raw")); err != nil {
		t.Errorf("asked by another program: got %v", err)
	}
	stream, err := js.Stream(e.Ctx, e.Names.EffectsStream())
	bustest.OK(t, err)
	msg, err := stream.GetLastMsgForSubject(e.Ctx, subject)
	bustest.OK(t, err)
	if got, want := msg.Header.Get(subjects.HeaderContentType), subjects.ContentTypeMsgpack; got != want {
		t.Errorf("content type: got %q, want %q", got, want)
	}
}

func askAllContract(t *testing.T, e testbus.Env) {
	var all []session.Effect
	for i := range 40 {
		all = append(all, effect(fmt.Sprintf("r1t1c%d", i), fmt.Sprint(i)))
	}
	// Some are there already.
	bustest.OK(t, ask(e.Ctx, e.B, "ask-all", all[3:5]...))
	bustest.OK(t, ask(e.Ctx, e.B, "ask-all", all[9]))
	for range 2 {
		bustest.OK(t, ask(e.Ctx, e.B, "ask-all", all...))
	}
	for i := range all {
		data, found, err := storedUnder(e.Ctx, e.B, effectSubject(e, "ask-all", all[i].Name))
		if err != nil || !found || string(data) != fmt.Sprint(i) {
			t.Errorf("%s: got %q %v %v", all[i].Name, data, found, err)
		}
	}
	// One that differs fails, and the others are stored all the same.
	err := ask(e.Ctx, e.B, "ask-all", []session.Effect{effect("r1t2c0", "x"), effect("r1t1c7", "x"), effect("r1t2c1", "x")}...)
	var violation *journal.ViolationError
	if !errors.As(err, &violation) || string(violation.Stored) != "7" {
		t.Errorf("got %v, want a ViolationError", err)
	}
	for _, name := range []string{"r1t2c0", "r1t2c1"} {
		if _, found, err := storedUnder(e.Ctx, e.B, effectSubject(e, "ask-all", name)); err != nil || !found {
			t.Errorf("%s: got %v %v, want it stored", name, found, err)
		}
	}
	if err := ask(e.Ctx, e.B, "ask-all"); err != nil {
		t.Errorf("nothing to ask: got %v", err)
	}
	large := effect("r1t3c0", strings.Repeat("x", session.EffectBytesMax+1))
	var over *natsio.MaxPayloadError
	if err := ask(e.Ctx, e.B, "ask-all", []session.Effect{effect("r1t3c1", "x"), large}...); !errors.As(err, &over) {
		t.Errorf("too large: got %v, want a MaxPayloadError", err)
	}
}

// Two owners with the same fold publish the same effects; one with another fold gets a
// violation, in any interleaving.
func askAtOnce(t *testing.T, e testbus.Env) {
	const owners, effects = 6, 20
	done := make(chan error, owners)
	for i := range owners {
		go func() {
			var all []error
			for n := range effects {
				all = append(all, ask(e.Ctx, e.All[i%len(e.All)], "ask-at-once", effect(fmt.Sprintf("r1t%d", n), "same")))
			}
			done <- errors.Join(all...)
		}()
	}
	for range owners {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	for i := range owners {
		go func() {
			done <- ask(e.Ctx, e.All[i%len(e.All)], "ask-at-once", effect("r2t1", fmt.Sprint("owner", i)))
		}()
	}
	won := 0
	for range owners {
		err := <-done
		var violation *journal.ViolationError
		switch {
		case err == nil:
			won++
		case !errors.As(err, &violation):
			t.Errorf("got %v, want a ViolationError", err)
		}
	}
	if won != 1 {
		t.Errorf("%d owners stored their own bytes, want 1", won)
	}
}

func listEffects(t *testing.T, e testbus.Env) {
	want := []string{"r1t1", "r1t1c0", "r1t1c1"}
	all := []session.Effect{
		{Name: "r1t1", Class: session.ClassLLM, Target: "openai", Payload: []byte("0")},
		{Name: "r1t1c0", Class: session.ClassTool, Target: "host", Payload: []byte("1")},
		{Name: "r1t1c1", Class: session.ClassTool, Target: "host", Payload: []byte("2")},
	}
	for _, one := range all {
		bustest.OK(t, ask(e.Ctx, e.B, "list", one))
	}
	// Neither claims nor another session's, nor a claim that has this session's
	// name in another place.
	for _, claim := range [][2]string{{"list", "r1t1"}, {"x", "list"}, {"list", "list"}} {
		for _, n := range []int{1, 2} {
			if _, _, err := e.B.Claim(e.Ctx, claimOf(claim[0], claim[1], n), []byte(`{"by":"i"}`)); err != nil {
				t.Fatal(err)
			}
		}
	}
	bustest.OK(t, ask(e.Ctx, e.B, "list-2", all[0]))
	for _, b := range e.All {
		list, err := b.ListEffects(e.Ctx, "list")
		bustest.OK(t, err)
		var got []string
		for i, one := range list {
			got = append(got, one.Name.Effect)
			if string(one.Payload) != fmt.Sprint(i) || one.Name.Class != all[i].Class || one.Name.Target != all[i].Target {
				t.Errorf("%s: got %+v", one.Name.Effect, one)
			}
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}

func claimContract(t *testing.T, e testbus.Env) {
	mine, err := journal.ClaimedBy("01MINE")
	bustest.OK(t, err)
	yours, err := journal.ClaimedBy("01YOURS")
	bustest.OK(t, err)
	claim := func(effect string, n int, body []byte) (bool, []byte) {
		t.Helper()
		won, holder, err := e.B.Claim(e.Ctx, claimOf("claim", effect, n), body)
		bustest.OK(t, err)
		return won, holder
	}
	for range 2 { // the second is what an unanswered call repeats
		if won, holder := claim("r1t1", 1, mine); !won || !bytes.Equal(holder, mine) {
			t.Errorf("mine: got %v %s, want won", won, holder)
		}
	}
	if won, holder := claim("r1t1", 1, yours); won || !bytes.Equal(holder, mine) {
		t.Errorf("yours: got %v %s, want lost to mine", won, holder)
	}
	if won, _ := claim("r1t1", 2, yours); !won {
		t.Error("a second claim is free: got lost")
	}
	if won, holder := claim("r1t1", 2, mine); won || !bytes.Equal(holder, yours) {
		t.Errorf("second claim: got %v %s, want lost to yours", won, holder)
	}
	if _, _, err := e.B.Claim(e.Ctx, claimOf("claim", "r1t1", 0), mine); err == nil {
		t.Error("claim 0: got no error")
	}
	if _, _, err := e.B.Claim(e.Ctx, claimOf("claim", "r1t9", 1), nil); err == nil {
		t.Error("a claim of nobody: got no error")
	}
}

func claimAtOnce(t *testing.T, e testbus.Env) {
	const bridges = 8
	type outcome struct {
		won    bool
		holder string
	}
	for n := range 10 {
		outcomes := make(chan outcome, bridges)
		for i := range bridges {
			go func() {
				won, holder, err := e.All[i%len(e.All)].Claim(e.Ctx, claimOf("claim-at-once", fmt.Sprintf("r1t%d", n), 1), fmt.Appendf(nil, `{"by":"b%d"}`, i))
				if err != nil {
					t.Error(err)
				}
				outcomes <- outcome{won, string(holder)}
			}()
		}
		winners, holders := 0, make(map[string]bool)
		for range bridges {
			o := <-outcomes
			if o.won {
				winners++
			}
			holders[o.holder] = true
		}
		if winners != 1 || len(holders) != 1 {
			t.Errorf("claim %d: got %d winners and holders %v, want one", n, winners, holders)
		}
	}
}

func withdrawContract(t *testing.T, e testbus.Env) {
	mine := []byte(`{"by":"01MINE"}`)
	for range 2 {
		if won, _, err := e.B.Claim(e.Ctx, claimOf("withdraw", "r1t1", 1), []byte(`{"withdrawn":true}`)); err != nil || !won {
			t.Errorf("withdraw: got %v %v, want won", won, err)
		}
	}
	won, holder, err := e.B.Claim(e.Ctx, claimOf("withdraw", "r1t1", 1), mine)
	if err != nil || won {
		t.Errorf("claim what is withdrawn: got %v %v, want lost", won, err)
	}
	if body, err := journal.ParseClaimBody(holder); err != nil || !body.Withdrawn {
		t.Errorf("holder: got %+v %v, want withdrawn", body, err)
	}
	if _, _, err := e.B.Claim(e.Ctx, claimOf("withdraw", "r1t2", 1), mine); err != nil {
		t.Fatal(err)
	}
	won, holder, err = e.B.Claim(e.Ctx, claimOf("withdraw", "r1t2", 1), []byte(`{"withdrawn":true}`))
	if err != nil || won {
		t.Errorf("withdraw what is claimed: got %v %v, want lost", won, err)
	}
	if body, err := journal.ParseClaimBody(holder); err != nil || body.By != "01MINE" {
		t.Errorf("holder: got %+v %v, want 01MINE", body, err)
	}
}

// A claim of another effect of this name does not keep a session from withdrawing.
func withdrawNextContract(t *testing.T, e testbus.Env) {
	const sid = "withdraw-next"
	stale := fmt.Sprintf(`{"by":"01OLD","hash":%q}`, codec.Sum([]byte("lost")))
	staleWithdrawn := fmt.Sprintf(`{"hash":%q,"withdrawn":true}`, codec.Sum([]byte("lost too")))
	for _, c := range []struct {
		name   string
		claims []string // that are stored, from the first on
		want   int      // number of the claim that withdraws; 0: none
	}{
		{"no claim", nil, 1},
		{"of another effect", []string{stale}, 2},
		{"two of other effects", []string{stale, staleWithdrawn}, 3},
		{"of another effect, then of a bridge", []string{stale, `{"by":"01MINE","hash":%q}`}, 0},
		{"of a bridge", []string{`{"by":"01MINE","hash":%q}`}, 0},
		{"without a hash", []string{`{"by":"01MINE"}`}, 0},
		{"not readable as a claim", []string{`x`}, 0},
	} {
		name := strings.ReplaceAll(strings.ReplaceAll(c.name, " ", "-"), ",", "")
		e1 := effect(name, "payload of "+name)
		for n, body := range c.claims {
			if strings.Contains(body, "%q") {
				body = fmt.Sprintf(body, codec.Sum(e1.Payload))
			}
			if _, _, err := e.B.Claim(e.Ctx, claimOf(sid, name, n+1), []byte(body)); err != nil {
				t.Fatal(err)
			}
		}
		w := withdrawalOf(&e1)
		// The bridges' own withdrawal has the same bytes: the second store finds it.
		for range 2 {
			if err := errors.Join(e.B.Store(e.Ctx, []journal.Output{{Session: sid, Withdraw: w}, {Session: sid, Notice: []byte("{}")}})...); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
		}
		want := fmt.Sprintf(`{"hash":%q,"withdrawn":true}`, codec.Sum(e1.Payload))
		for n := 1; n <= len(c.claims)+2; n++ {
			_, got, err := e.B.Claim(e.Ctx, claimOf(sid, name, n), []byte(`{"by":"01FREE"}`))
			if err != nil || (string(got) == want) != (n == c.want) {
				t.Errorf("%s: claim %d is %q (%v), and %d must be %q", c.name, n, got, err, c.want, want)
			}
		}
	}
}

// The holder of an effect is not the holder of one that had the name before.
func holderContract(t *testing.T, e testbus.Env) {
	const sid = "holder"
	name := claimOf(sid, "r1t1c0", 1).EffectName
	claim := func(n int, body string) {
		t.Helper()
		if _, _, err := e.B.Claim(e.Ctx, claimOf(sid, "r1t1c0", n), []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(want string) {
		t.Helper()
		if by, found, err := e.B.Holder(e.Ctx, name); by != want || found != (want != "") || err != nil {
			t.Errorf("got %q %v %v, want %q", by, found, err, want)
		}
	}
	e1 := effect("r1t1c0", "one")
	if err := ask(e.Ctx, e.B, sid, e1); err != nil {
		t.Fatal(err)
	}
	expect("")
	claim(1, fmt.Sprintf(`{"by":"01OLD","hash":%q}`, codec.Sum([]byte("lost"))))
	expect("")
	claim(2, fmt.Sprintf(`{"by":"01NEW","hash":%q}`, codec.Sum(e1.Payload)))
	expect("01NEW")
	claim(3, `{"withdrawn":true}`)
	expect("")
}

func TestParseClaimBody(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "x", "{}", `{"by":""}`, `{"by":"a","withdrawn":true}`, `{"withdrawn":false}`, "[]"} {
		if got, err := journal.ParseClaimBody([]byte(bad)); err == nil {
			t.Errorf("%q: got %+v, want an error", bad, got)
		}
	}
	if _, err := journal.ClaimedBy("a.b"); err == nil {
		t.Error("claimed by a.b: got no error")
	}
}

// claimOf returns the name of the nth claim of a call.
func claimOf(sid, effect string, n int) subjects.ClaimName {
	return subjects.ClaimName{EffectName: subjects.EffectName{Class: session.ClassTool, Target: "host", Session: sid, Effect: effect}, N: n}
}

// withdrawalOf returns the withdrawal of an effect.
func withdrawalOf(e *session.Effect) *session.Withdrawal {
	return &session.Withdrawal{Name: e.Name, Class: e.Class, Target: e.Target, Claimed: true, Hash: codec.Sum(e.Payload)}
}
