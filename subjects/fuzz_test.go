package subjects_test

import (
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/subjects"
)

// FuzzParse: publishers choose subjects. The parts of a parsed subject make that subject
// again, so no two subjects name the same thing.
func FuzzParse(f *testing.F) {
	names, err := subjects.New("")
	if err != nil {
		f.Fatal(err)
	}
	for _, subject := range []string{
		names.Install(), "refold.17.in.s1", "refold.fx.tool.host.s1.r1t1c0", "refold.fx.claim.llm.openai.s1.r1t1.2", "refold.fx.wake.-.s1.w1",
		"refold.out.s1", "refold.due.s1.w1", "refold.alive.bridge.01J", "refold.view.s1", "refold.in.*", "refold..>", "q.s1", "tool-host", "l7",
	} {
		f.Add(subject)
	}
	f.Fuzz(func(t *testing.T, subject string) {
		same := func(what string, parse error, made string, err error) {
			t.Helper()
			if parse == nil && (err != nil || made != subject) {
				t.Errorf("%s: %q is read, and makes %q (%v)", what, subject, made, err)
			}
		}
		door, sid, parsed := names.ParseStored(subject)
		made, err := names.Stored(door, sid)
		same("stored event", parsed, made, err)
		if parsed == nil && door != session.DoorInstall && strings.ContainsAny(sid, ".*> \t\r\n") {
			t.Errorf("%q is of session %q", subject, sid)
		}
		effect, parsed := names.ParseEffect(subject)
		if made, err = names.Effect(effect); !strings.HasPrefix(subject, made+"-") { // else EffectOf made it
			same("effect", parsed, made, err)
		}
		claim, parsed := names.ParseClaim(subject)
		made, err = names.Claim(claim)
		same("claim", parsed, made, err)
		sid, wake, parsed := names.ParseDue(subject)
		made, err = names.Due(sid, wake)
		same("due wake", parsed, made, err)
		kind, instance, parsed := names.ParseAlive(subject)
		made, err = names.Alive(kind, instance)
		same("heartbeat", parsed, made, err)
		for what, both := range map[string]struct {
			parse func(string) (string, error)
			make  func(string) (string, error)
		}{
			"notice": {names.ParseOut, names.Out}, "words": {names.ParseLive, names.Live},
			"cancel": {names.ParseCancel, names.Cancel}, "view": {names.ParseView, names.View},
		} {
			sid, parsed := both.parse(subject)
			made, err := both.make(sid)
			same(what, parsed, made, err)
		}
		if sid, ok := subjects.ParseSnapshotKey(subject); ok {
			made, err = subjects.SnapshotKey(sid)
			same("snapshot", nil, made, err)
		}
		if sid, ok := subjects.ParseQuarantineKey(subject); ok {
			made, err = subjects.QuarantineKey(sid)
			same("quarantine", nil, made, err)
		}
	})
}
