package session_test

// Which install records are pinned. What a record asks for and this release
// can't do is refused: a tool that waits for approval must not run without.

import (
	"errors"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

func TestInstallRefused(t *testing.T) {
	t.Parallel()
	tool := func(more string) string {
		return `{"v":1,"rules":1,"tools":[{"tool_id":"a.b","tool_name":"b","args_schema":{"type":"object"}` + more + `}]}`
	}
	const effect = `,"executor":{"kind":"effect","target":"x"}`
	for name, c := range map[string]struct{ record, want string }{
		"an approval that is none": {tool(effect + `,"approval":"sometimes"`), "tools[0].approval: "},
		"an unknown executor":      {tool(`,"executor":{"kind":"process","target":"x"}`), "tools[0].executor.kind: "},
		"a run time over the cap":  {tool(effect + `,"deadline_ms":1350001`), "tools[0].deadline_ms is 1350001, it may be 0 to 1350000"},
		"rules 0":                  {`{"v":1,"rules":0,"tools":[]}`, "rules: 1 to "},
		"rules -1":                 {`{"v":1,"rules":-1,"tools":[]}`, "rules: 1 to "},
		"rules that are no number": {`{"v":1,"rules":"new","tools":[]}`, "rules"},
		"no object":                {`[]`, "install record: codec: "},
		"an unknown field":         {`{"v":1,"rules":1,"tools":[],"wings":2}`, `unknown field "wings"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			install, err := session.ParseInstall([]byte(c.record))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %s", err, c.want)
			}
			if install != nil {
				t.Error("a record with a fault was returned beside its fault")
			}
			var unknown *session.UnknownRulesError
			if errors.As(err, &unknown) {
				t.Error("a record with a fault counts as one of a later release: every lane would be given back for good")
			}
		})
	}
}

// A later release's record may have unknown fields. That is no fault of the record:
// a host gives such a session back. If this release skipped the record, it would
// fold the session under an older record than the later release does.
func TestInstallOfLaterRules(t *testing.T) {
	t.Parallel()
	for _, record := range []string{
		`{"v":1,"rules":2,"tools":[]}`,
		`{"v":1,"rules":2,"tools":[],"wings":2}`,
		`{"v":1,"rules":2,"tools":[{"tool_id":"a","new":1}],"policy":{"approval":[]}}`,
		`{"rules":7}`,
	} {
		_, err := session.ParseInstall([]byte(record))
		var unknown *session.UnknownRulesError
		if !errors.As(err, &unknown) {
			t.Errorf("%s: got %v, want an UnknownRulesError", record, err)
		}
	}
}

// A record is the same in JSON and in msgpack, in any order of its keys.
func TestInstallSpelling(t *testing.T) {
	t.Parallel()
	a, err := session.ParseInstall([]byte(`{"v":1,"tools":[],"rules":1,"config":{"provider":"p","model":"m"}}`))
	if err != nil {
		t.Fatal(err)
	}
	packed, err := codec.FromJSON([]byte(`{"config":{"model":"m","provider":"p"},"rules":1,"tools":[],"v":1}`))
	if err != nil {
		t.Fatal(err)
	}
	b, err := session.ParseInstall(packed)
	if err != nil {
		t.Fatal(err)
	}
	if a.Hash != b.Hash {
		t.Errorf("two spellings of one record have the hashes %s and %s", a.Hash, b.Hash)
	}
}
