package docs_test

import (
	"slices"
	"testing"

	"github.com/refold/refold/actors/session"
)

// story is a history in the form of scenario files, without pictures: what
// sets of tools, step rules, step hooks and host loops say and are answered.
// TestScenariosFitSchemas folds it as one more file.
const story = `install {"v":1,"rules":1,"capabilities":["desk"],"policy":{"ingress":["system","steps","step_hook","tool_refs","roles","provider","model"],"coverage":"fail"},"tools":[{"tool_id":"web.search","tool_name":"search","args_schema":{"type":"object"},"executor":{"kind":"effect","target":"web"},"parallel_safe":true,"access":"read","retry_safe":true},{"tool_id":"desk.ask","tool_name":"ask","args_schema":{"type":"object"},"executor":{"kind":"host_loop","target":"desk"}},{"tool_id":"desk.note","tool_name":"note","args_schema":{"type":"object"},"executor":{"kind":"host_loop","target":"desk"},"parallel_safe":true,"retry_safe":true}],"profiles":[{"profile":"all","tools":["search","ask","note"],"steps":[{"when":"context.phase == \"done\"","active_tools":[]},{"when":"step == 0","context":{"phase":"find"},"model":"m2","params":{"seed":1},"system":"Find."},{"when":"used(\"search\") && \"search\" in last","tool_choice":"search"}]}],"default_profile":"all","config":{"provider":"p","model":"m1","tool_choice":"required"}}
----

facts region="eu"
----

# Rules of the profile; the first one can't be evaluated until there is a phase.
run "go" roles=["editor"]
----

# A mixed batch: the host loop has calls in a later group only, then it has them.
settle r1t1 calls search{} note{} ask{} nosuch{}
----

settle r1t1c2 ok "too early"
----

settle r1t1 batch c1 ok c2 ok "Tuesday"
----

settle r1t1c0 ok "three pages"
----

settle r1t1c1 ok plan_hash=0000000000000000000000000000000000000000000000000000000000000000
----

settle r1t1 batch plan_hash=0000000000000000000000000000000000000000000000000000000000000000 c1 ok c2 ok
----

settle r1t1 batch c1 ok c7 ok
----

settle r1t1c1 ok
----

settle r1t1 batch c2 ok "Tuesday"
----

overrides run disable=["note"] force=["ask"]
----

overrides session enable=["ask"] disable=["nosuch"]
----

overrides session enable=["ask"] disable=["note"]
----

# A registry that lacks what the overrides name, and one that doesn't.
registry {"tools":[]}
----

overrides session enable=[] disable=[]
----

settle r1t2 text "done" usage=10/5
----

overrides run enable=[]
----

registry {"tools":[{"tool_id":"desk.ask","tool_name":"ask","args_schema":{"type":"object"},"executor":{"kind":"host_loop","target":"desk"}}],"profiles":[{"profile":"desk","tools":["ask"]}],"default_profile":"desk"}
----

configure {"provider":"p","model":"m1","steps":[{"when":"step =="}]}
----

configure {"provider":"p","model":"m1","steps":[{"context":{"phase":"late"}}],"step_hook":{"hook":"h","deadline_ms":1000}}
----

# A hook is asked, and answers, and is not understood, and fails, and is silent.
run "again"
----

settle r2t1s ok {"active_tools":["ask"],"tool_choice":"ask","context":{"phase":"asked"}}
----

settle r2t1 calls ask{}
----

settle r2t1 batch c0 ok "yes"
----

settle r2t2s ok {"active_tools":["search"]}
----

settle r2t2 calls ask{}
----

settle r2t2c0 failed gone "nobody is at the desk"
----

settle r2t3s failed hook_failed "no rules"
----

settle r2t3 calls ask{}
----

settle r2t3c0 unknown
----

clock +2s
----

settle w2
----

settle r2t4 text "enough"
----

run "last" config={"provider":"p","model":"m1","step_hook":{"hook":"h","fallback":"fail"}}
----

settle r3t1s failed hook_failed "no rules"
----
`

// TestStoryNamesItsCodes: the story says every code that came with what it tells of.
func TestStoryNamesItsCodes(t *testing.T) {
	t.Parallel()
	var said []session.Rejection
	foldFile(t, readSchemas(t), "story", story, func(string, string, error) {}, func(_ *folding, notices []session.Notice) {
		for _, n := range notices {
			if r, ok := n.Data.(session.EventRejected); ok {
				said = append(said, r.Code)
			}
		}
	})
	want := []session.Rejection{
		session.RejectIllegalTransition, session.RejectBatchMismatch, session.RejectPlanMismatch, session.RejectPlanMismatch,
		session.RejectUnknownCall, session.RejectUnknownTool, session.RejectInvalidRegistry, session.RejectRunNotActive, session.RejectInvalidRule,
	}
	if !slices.Equal(said, want) {
		t.Errorf("rejections: got %v\nwant %v", said, want)
	}
}
