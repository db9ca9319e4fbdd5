package archtest

import (
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// violations are pairs of a violation and its clean twin, each a small tree in txtar form.
var violations = []struct {
	law   string
	name  string
	want  string // a part of the one complaint
	bad   string
	clean string
}{
	{
		law: "ladder", name: "up",
		want:  `planner/p.go:2: planner imports actors, which is above it on the ladder`,
		bad:   "-- planner/p.go --\npackage planner\nimport _ \"github.com/refold/refold/actors/session\"\n",
		clean: "-- planner/p.go --\npackage planner\nimport _ \"github.com/refold/refold/codec\"\n",
	},
	{
		law: "ladder", name: "same rung",
		want:  `internal/engine/h.go:2: internal/engine imports client: they share a rung`,
		bad:   "-- internal/engine/h.go --\npackage engine\nimport _ \"github.com/refold/refold/client\"\n",
		clean: "-- internal/engine/h.go --\npackage engine\nimport _ \"github.com/refold/refold/internal/bus\"\n",
	},
	{
		law: "ladder", name: "a longer entry wins",
		want:  `bridge/b.go:2: bridge imports bridge/bridgetest, which is above it`,
		bad:   "-- bridge/b.go --\npackage bridge\nimport _ \"github.com/refold/refold/bridge/bridgetest\"\n",
		clean: "-- bridge/bridgetest/b.go --\npackage bridgetest\nimport _ \"github.com/refold/refold/bridge\"\n",
	},
	{
		law: "ladder", name: "own subtree, and tests look up",
		want:  `internal/llm/openai/o.go:2: internal/llm imports internal/tools: they share a rung`,
		bad:   "-- internal/llm/openai/o.go --\npackage openai\nimport _ \"github.com/refold/refold/internal/tools/host\"\n",
		clean: "-- internal/llm/openai/o.go --\npackage openai\nimport _ \"github.com/refold/refold/internal/llm\"\n-- internal/llm/l_test.go --\npackage llm\nimport _ \"github.com/refold/refold/internal/devserver\"\n",
	},
	{
		law: "ladder", name: "no place",
		want:  `internal/queue: has no place on the import ladder`,
		bad:   "-- internal/queue/q.go --\npackage queue\n",
		clean: "-- internal/bus/queue/q.go --\npackage queue\n",
	},
	{
		law: "ladder", name: "outside the ladder",
		want:  `cmd/refold/main.go:2: imports e2e, which stands outside the ladder`,
		bad:   "-- cmd/refold/main.go --\npackage main\nimport _ \"github.com/refold/refold/e2e\"\n",
		clean: "-- e2e/e.go --\npackage e2e\nimport _ \"github.com/refold/refold/client\"\n",
	},
	{
		law: "ladder", name: "the root",
		want:  `open.go:2: . imports internal/devserver, which is above it`,
		bad:   "-- open.go --\npackage refold\nimport _ \"github.com/refold/refold/internal/devserver\"\n",
		clean: "-- internal/devserver/d.go --\npackage devserver\nimport _ \"github.com/refold/refold\"\n-- open.go --\npackage refold\nimport _ \"github.com/refold/refold/client\"\n",
	},
	{
		law: "fences", name: "nats",
		want:  `internal/engine/h.go:2: imports github.com/nats-io/nats.go/jetstream, which only internal/natsio`,
		bad:   "-- internal/engine/h.go --\npackage engine\nimport _ \"github.com/nats-io/nats.go/jetstream\"\n",
		clean: "-- internal/natsio/b.go --\npackage natsio\nimport _ \"github.com/nats-io/nats.go/jetstream\"\n-- internal/engine/h_test.go --\npackage engine\nimport _ \"github.com/nats-io/nats.go\"\n",
	},
	{
		law: "fences", name: "an SDK, in a test too",
		want:  `internal/llm/l_test.go:2: imports github.com/openai/openai-go/v3, which only internal/llm/openai may`,
		bad:   "-- internal/llm/l_test.go --\npackage llm\nimport _ \"github.com/openai/openai-go/v3\"\n",
		clean: "-- internal/llm/openai/o.go --\npackage openai\nimport _ \"github.com/openai/openai-go/v3/option\"\n",
	},
	{
		law: "fences", name: "a daemon with a server inside",
		want:  `cmd/bridge/main.go:2: imports github.com/refold/refold/internal/devserver, which only cmd/refold/cli, bridge/bridgetest, embedded may`,
		bad:   "-- cmd/bridge/main.go --\npackage main\nimport _ \"github.com/refold/refold/internal/devserver\"\n",
		clean: "-- cmd/refold/cli/dev.go --\npackage cli\nimport _ \"github.com/refold/refold/internal/devserver\"\n",
	},
	{
		law: "links", name: "by another package",
		want:  `internal/llm/openai links github.com/openai/openai-go/v3 (internal/llm/openai, github.com/openai/openai-go/v3/option), which only cmd/bridge, provider/compatible, provider/openai may: providers' SDKs`,
		bad:   "-- internal/llm/openai/o.go --\npackage main\nimport _ \"github.com/openai/openai-go/v3/option\"\n",
		clean: "-- internal/llm/openai/o.go --\npackage openai\nimport _ \"github.com/openai/openai-go/v3/option\"\n",
	},
	{
		law: "providers", name: "a name",
		want:  `cmd/refold/cli/dev.go:2: spells "llm/gemini": derive it from package internal/llm/provider`,
		bad:   "-- cmd/refold/cli/dev.go --\npackage cli\nconst target = \"llm/gemini\"\n",
		clean: "-- cmd/refold/cli/dev.go --\npackage cli\nconst help = \"such as llm/gemini\"\n-- cmd/refold/cli/dev_test.go --\npackage cli\nconst key = \"GEMINI_API_KEY\"\n",
	},
	{
		law: "outside", name: "e2e",
		want:  `e2e/e_test.go:2: imports internal/bus: e2e plays a user`,
		bad:   "-- e2e/e_test.go --\npackage e2e\nimport _ \"github.com/refold/refold/internal/bus\"\n",
		clean: "-- e2e/e_test.go --\npackage e2e\nimport _ \"github.com/refold/refold/subjects\"\n",
	},
	{
		law: "outside", name: "an example",
		want:  `examples/x/main.go:2: imports internal/bus: an example plays a user`,
		bad:   "-- examples/x/main.go --\npackage main\nimport _ \"github.com/refold/refold/internal/bus\"\n",
		clean: "-- examples/x/main_test.go --\npackage main\nimport _ \"github.com/refold/refold/internal/bus\"\n",
	},
	{
		law: "outside", name: "an example with the proof kit",
		want:  `examples/x/main.go:2: imports proof/chaos: an example plays a user, and the proof kit is for people who check Refold`,
		bad:   "-- examples/x/main.go --\npackage main\nimport _ \"github.com/refold/refold/proof/chaos\"\n",
		clean: "-- examples/x/main.go --\npackage main\nimport _ \"github.com/refold/refold/refoldtest\"\n",
	},
	{
		law: "outside", name: "what a user can't import",
		want:  `client/example_test.go:2: imports internal/bus: go doc shows the examples of this file to a user`,
		bad:   "-- client/example_test.go --\npackage client_test\nimport _ \"github.com/refold/refold/internal/bus\"\nfunc ExampleConnect() {}\n-- client/c.go --\npackage client\n",
		clean: "-- client/c_test.go --\npackage client_test\nimport _ \"github.com/refold/refold/internal/bus\"\nfunc TestConnect() {}\n-- client/c.go --\npackage client\n",
	},
	{
		law: "examples", name: "a method",
		want:  `Session.End: no Example function of the root's tests uses it`,
		bad:   "-- session.go --\npackage refold\ntype Session struct{}\nfunc (s *Session) End() {}\n-- example_test.go --\npackage refold_test\nimport \"github.com/refold/refold\"\nfunc ExampleSession() { _ = &refold.Session{} }\n",
		clean: "-- session.go --\npackage refold\ntype Session struct{}\nfunc (s *Session) End() {}\n-- example_test.go --\npackage refold_test\nimport \"github.com/refold/refold\"\nfunc ExampleSession() { (&refold.Session{}).End() }\n",
	},
	{
		law: "examples", name: "a function that is no option",
		want:  `Open: no Example function`,
		bad:   "-- open.go --\npackage refold\ntype OpenOption func()\nfunc Quiet() OpenOption { return nil }\nfunc Open(...OpenOption) {}\n",
		clean: "-- open.go --\npackage refold\ntype OpenOption func()\nfunc Quiet() OpenOption { return nil }\n",
	},
	{
		law: "surface", name: "a field",
		want:  `client: Result.Found shows internal/audit.Hit: users of a public package can't name it`,
		bad:   "-- client/c.go --\npackage client\nimport \"github.com/refold/refold/internal/audit\"\ntype Result struct { Found []audit.Hit }\n-- internal/audit/a.go --\npackage audit\ntype Hit struct{}\n",
		clean: "-- client/c.go --\npackage client\nimport \"github.com/refold/refold/internal/audit\"\ntype Result struct { found []audit.Hit }\n-- internal/audit/a.go --\npackage audit\ntype Hit struct{}\n",
	},
	{
		law: "surface", name: "a method of what a function returns",
		want:  `client: result.Each shows internal/audit.Hit: users of a public package can't name it`,
		bad:   "-- client/c.go --\npackage client\nimport \"github.com/refold/refold/internal/audit\"\nfunc New() *result { return nil }\ntype result struct{}\nfunc (*result) Each(func(audit.Hit)) {}\n-- internal/audit/a.go --\npackage audit\ntype Hit struct{}\n",
		clean: "-- client/c.go --\npackage client\nimport \"github.com/refold/refold/internal/audit\"\nfunc New() *result { return nil }\ntype result struct{}\nfunc (*result) each(func(audit.Hit)) {}\n-- internal/audit/a.go --\npackage audit\ntype Hit struct{}\n",
	},
	{
		law: "surface", name: "a sealed interface, which is the root's alone",
		want:  `client: Source.Open shows internal/source.Opened: users of a public package can't name it`,
		bad:   "-- client/c.go --\npackage client\nimport \"github.com/refold/refold/internal/source\"\ntype Source interface { Open() source.Opened }\n-- internal/source/s.go --\npackage source\ntype Opened struct{}\n",
		clean: "-- r.go --\npackage refold\nimport \"github.com/refold/refold/internal/source\"\ntype Source interface { Open() source.Opened }\nfunc Open(Source) {}\n-- internal/source/s.go --\npackage source\ntype Opened struct{}\n",
	},
	{
		law: "surface", name: "another name for it",
		want:  `bridge: Hit shows internal/audit.Hit: users of a public package can't name it`,
		bad:   "-- bridge/b.go --\npackage bridge\nimport \"github.com/refold/refold/internal/audit\"\ntype Hit = audit.Hit\n-- internal/audit/a.go --\npackage audit\ntype Hit struct{}\n",
		clean: "-- bridge/other/b.go --\npackage other\nimport \"github.com/refold/refold/internal/audit\"\ntype Hit = audit.Hit\n-- internal/audit/a.go --\npackage audit\ntype Hit struct{}\n",
	},
	{
		law: "purity", name: "time",
		want:  `actors/session/s.go:2: imports "time", which is not on the list of pure packages`,
		bad:   "-- actors/session/s.go --\npackage session\nimport _ \"time\"\n",
		clean: "-- actors/session/s.go --\npackage session\nimport _ \"errors\"\n-- actors/session/s_test.go --\npackage session\nimport _ \"time\"\n",
	},
	{
		law: "purity", name: "a third party in a second file",
		want:  `actors/session/s.go:2: imports github.com/vmihailenco/msgpack/v5, which stays in codec`,
		bad:   "-- actors/session/s.go --\npackage session\nimport _ \"github.com/vmihailenco/msgpack/v5\"\n",
		clean: "-- codec/codec.go --\npackage codec\nimport _ \"github.com/vmihailenco/msgpack/v5\"\n",
	},
	{
		law: "purity", name: "go",
		want:  `codec/c.go:2: starts a goroutine`,
		bad:   "-- codec/c.go --\npackage codec\nfunc f() { go f() }\n",
		clean: "-- codec/c.go --\npackage codec\nfunc f() { defer f() }\n-- internal/bus/b.go --\npackage bus\nfunc f() { go f() }\n",
	},
	{
		law: "purity", name: "channel type",
		want:  `codec/c.go:2: has a channel type`,
		bad:   "-- codec/c.go --\npackage codec\nvar done chan struct{}\n",
		clean: "-- codec/c.go --\npackage codec\nvar done struct{}\n",
	},
	{
		law: "purity", name: "send",
		want:  `planner/p.go:3: sends on a channel`,
		bad:   "-- planner/p.go --\npackage planner\nfunc f() {\nq.In <- 1\n}\n",
		clean: "-- planner/p.go --\npackage planner\nfunc f() {\nq = 1\n}\n",
	},
	{
		law: "purity", name: "receive",
		want:  `planner/p.go:3: receives from a channel`,
		bad:   "-- planner/p.go --\npackage planner\nfunc f(q interface{}) {\n<-q.Out\n}\n",
		clean: "-- planner/p.go --\npackage planner\nfunc f(q *int) {\n_ = -*q\n}\n",
	},
	{
		law: "purity", name: "select",
		want:  `planner/p.go:3: selects over channels`,
		bad:   "-- planner/p.go --\npackage planner\nfunc f() {\nselect {}\n}\n",
		clean: "-- planner/p.go --\npackage planner\nfunc f() {\nfor {}\n}\n",
	},
	{
		law: "purity", name: "map",
		want:  `subjects/s.go:3: ranges over a map`,
		bad:   "-- subjects/s.go --\npackage subjects\nfunc f(m map[string]int) {\nfor range m {}\n}\n",
		clean: "-- subjects/s.go --\npackage subjects\nfunc f(m []string, seq func(func(int) bool)) {\nfor range m {}\nfor range seq {}\nfor range 3 {}\n}\n",
	},
	{
		law: "purity", name: "map under two names",
		want:  `subjects/s.go:5: ranges over a map`,
		bad:   "-- subjects/s.go --\npackage subjects\ntype a map[string]int\ntype s struct{ in a }\nfunc f(x s) {\nfor range x.in {}\n}\n",
		clean: "-- subjects/s.go --\npackage subjects\ntype a []int\ntype s struct{ in a }\nfunc f(x s) {\nfor range x.in {}\n}\n",
	},
	{
		law: "purity", name: "map as a type parameter",
		want:  `subjects/s.go:3: ranges over a map`,
		bad:   "-- subjects/s.go --\npackage subjects\nfunc f[M ~map[K]int, K comparable](m M) {\nfor range m {}\n}\n",
		clean: "-- subjects/s.go --\npackage subjects\nfunc f[S ~[]int](m S) {\nfor range m {}\n}\n",
	},
	{
		law: "purity", name: "a type that can't be told",
		want:  `subjects/s.go:4: ranges over something whose type can't be told`,
		bad:   "-- subjects/s.go --\npackage subjects\nimport \"slices\"\nfunc f() {\nfor range slices.Anything() {}\n}\n",
		clean: "-- subjects/s.go --\npackage subjects\nimport \"slices\"\nfunc f() {\nslices.Anything()\n}\n",
	},
	{
		law: "spelling", name: "subject",
		want:  `client/c.go:2: spells "refold.in."`,
		bad:   "-- client/c.go --\npackage client\nconst in = \"refold.in.\"\n",
		clean: "-- client/c.go --\npackage client\nconst help = \"publish to refold.in.s1\"\n-- subjects/s.go --\npackage subjects\nconst in = \"refold.in.\"\n",
	},
	{
		law: "spelling", name: "stream",
		want:  "cmd/refold/r.go:2: spells \"REFOLD_LOG\"",
		bad:   "-- cmd/refold/r.go --\npackage main\nconst log = `REFOLD_LOG`\n",
		clean: "-- cmd/refold/r.go --\npackage main\nconst env = `REFOLD_PREFIX`\n",
	},
	{
		law: "nouns", name: "package",
		want:  `internal/bus/nats-util: "util" names no package`,
		bad:   "-- internal/bus/nats-util/u.go --\npackage natsutil\n",
		clean: "-- internal/bus/committer/u.go --\npackage committer\n",
	},
	{
		law: "nouns", name: "type",
		want:  `internal/bus/b.go:2: type laneManager: "manager" is not one of our words`,
		bad:   "-- internal/bus/b.go --\npackage bus\ntype laneManager struct{}\n",
		clean: "-- internal/bus/b.go --\npackage bus\ntype lane struct{}\nfunc managerOf() {}\n",
	},
	{
		law: "nouns", name: "an exception is for one directory",
		want:  `client/c.go:2: type runCommand: "command" is not one of our words`,
		bad:   "-- client/c.go --\npackage client\ntype runCommand struct{}\n",
		clean: "-- cmd/refold/cli/r.go --\npackage cli\ntype runCommand struct{}\n",
	},
	{
		law: "cuts", name: "function",
		want:  `internal/tools/mcp/m.go:3: clip cuts a text that may contain a secret`,
		bad:   "-- internal/tools/mcp/m.go --\npackage mcp\n\nvar words = clip(stderr, errorTextMax)\n",
		clean: "-- internal/tools/mcp/m.go --\npackage mcp\nimport \"slices\"\nvar words, all = redactor.Clip(stderr, errorTextMax), slices.Clip(lines)\n-- internal/prompt/p.go --\npackage prompt\nvar words = clip(text, 80)\n",
	},
	{
		law: "cuts", name: "declaration",
		want:  `internal/tools/mcp/m.go:2: truncateText cuts a text that may contain a secret`,
		bad:   "-- internal/tools/mcp/m.go --\npackage mcp\nfunc truncateText(text string) string { return text }\n",
		clean: "-- internal/tools/mcp/m.go --\npackage mcp\nfunc (s *server) clip(text string) string { return s.redactor().Clip(text, 80) }\n",
	},
	{
		law: "cuts", name: "another package's function",
		want:  `internal/worker/w.go:3: Clip cuts a text that may contain a secret`,
		bad:   "-- internal/worker/w.go --\npackage worker; import \"github.com/refold/refold/internal/prompt\"\n\nvar detail = prompt.Clip(err.Error(), 80)\n",
		clean: "-- internal/llm/endpoint/e.go --\npackage endpoint\nimport \"github.com/refold/refold/internal/llm\"\nvar detail = llm.Excerpt(e.Clean(message))\n",
	},
	{
		law: "cuts", name: "slice",
		want:  `internal/tools/service/s.go:2: cuts at a limit`,
		bad:   "-- internal/tools/service/s.go --\npackage service\nvar detail = reply[:errorTextMax]\n",
		clean: "-- internal/tools/service/s.go --\npackage service\nvar head, rest = reply[:end], reply[errorTextMax:]\n",
	},
	{
		law: "cuts", name: "slice by the smaller of two",
		want:  `internal/tools/service/s.go:2: cuts at a limit`,
		bad:   "-- internal/tools/service/s.go --\npackage service\nvar detail = reply[:min(len(reply), 200)]\n",
		clean: "-- internal/tools/service/s.go --\npackage service\nvar head = reply[:min(len(reply), 4)]\n",
	},
	{
		law: "lines", name: "a line of any length",
		want:  `internal/tools/mcp/m.go:3: ReadString takes a line of any length`,
		bad:   "-- internal/tools/mcp/m.go --\npackage mcp\nfunc f() {\nbufio.NewReader(stderr).ReadString('\\n')\n}\n",
		clean: "-- internal/tools/mcp/m.go --\npackage mcp\nfunc f() {\nbufio.NewReader(io.LimitReader(stderr, 80)).ReadString('\\n')\n}\n",
	},
	{
		law: "sizes", name: "file",
		want:  `client/c.go: 401 lines; the limit is 400`,
		bad:   "-- client/c.go --\npackage client\n" + strings.Repeat("\n", 400),
		clean: "-- client/c.go --\npackage client\n" + strings.Repeat("\n", 399) + "-- client/c_test.go --\npackage client\n" + strings.Repeat("\n", 500),
	},
	{
		law: "sizes", name: "chapter",
		want:  `actors/session/s.go: 1001 lines; the limit is 1000`,
		bad:   "-- actors/session/s.go --\npackage session\n" + strings.Repeat("\n", 1000),
		clean: "-- actors/session/s.go --\npackage session\n" + strings.Repeat("\n", 999),
	},
}

func TestLawsFindViolations(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{"stale": true} // TestStaleEntriesAreReported has those
	for _, c := range violations {
		seen[c.law] = true
		t.Run(c.law+"/"+c.name, func(t *testing.T) {
			t.Parallel()
			got := checks[c.law](repository, treeOf(t, c.bad))
			if len(got) != 1 || !strings.Contains(got[0], c.want) {
				t.Errorf("violation: got %q, want one complaint with %q", got, c.want)
			}
			if got := checks[c.law](repository, treeOf(t, c.clean)); len(got) != 0 {
				t.Errorf("clean twin: got %q, want none", got)
			}
		})
	}
	for law := range checks {
		if !seen[law] {
			t.Errorf("law %s has no violation as a test case", law)
		}
	}
}

// TestStaleEntriesAreReported gives the stale check laws that allow something
// nobody does, one at a time, over a tree that is otherwise in order.
func TestStaleEntriesAreReported(t *testing.T) {
	t.Parallel()
	const text = "-- codec/c.go --\npackage codec\nimport (\n\"errors\"\n\"example.com/pack\"\n)\n" +
		"-- internal/bus/b.go --\npackage bus\nimport _ \"example.com/nats\"\ntype intentLog struct{}\n-- e2e/e.go --\npackage e2e\n"
	clean := func() laws {
		return laws{
			ladder:   [][]string{{"codec"}, {"internal/bus"}},
			offside:  map[string]string{"e2e": "a user"},
			fences:   []fence{{what: "example.com/nats", only: []string{"internal/bus"}}},
			public:   []string{"codec"},
			pure:     []string{"codec"},
			pureStd:  []string{"errors"},
			pureMods: []pureMod{{what: "example.com/pack", in: "codec/c.go"}},
			nouns:    map[string]noun{"intent": {"effect", "internal/bus"}},
		}
	}
	cases := []struct {
		name, want string
		change     func(*laws)
	}{
		{"a rung nobody stands on", "ladder: client is not there", func(l *laws) { l.ladder = append(l.ladder, []string{"client"}) }},
		{"offside", "offside: docs is not there", func(l *laws) { l.offside["docs"] = "prose" }},
		{"public", "public: docs is not there", func(l *laws) { l.public = append(l.public, "docs") }},
		{"experimental", "experimental: docs.Page is not public", func(l *laws) { l.experimental = []exempt{{"docs.Page", "prose"}} }},
		{"gate", "fence: codec doesn't import example.com/nats", func(l *laws) { l.fences[0].only = []string{"internal/bus", "codec"} }},
		{"root", "links: cmd/x is neither a program nor public", func(l *laws) { l.links = []link{{what: "example.com/nats", roots: []string{"cmd/x"}}} }},
		{"standard library", `pure: no pure package imports "bytes"`, func(l *laws) { l.pureStd = append(l.pureStd, "bytes") }},
		{"third party", "pure: codec/d.go doesn't import example.com/pack", func(l *laws) { l.pureMods[0].in = "codec/d.go" }},
		{"noun", `nouns: no type of codec holds "intent"`, func(l *laws) { l.nouns["intent"] = noun{"effect", "codec"} }},
	}
	tree := treeOf(t, text)
	if got := clean().checkStale(tree); len(got) != 0 {
		t.Errorf("laws in order: got %q, want no complaint", got)
	}
	for _, c := range cases {
		l := clean()
		c.change(&l)
		got := l.checkStale(tree)
		if len(got) != 1 || !strings.Contains(got[0], c.want) {
			t.Errorf("%s: got %q, want one complaint with %q", c.name, got, c.want)
		}
	}
}

// treeOf parses a txtar archive into a tree.
func treeOf(t testing.TB, archive string) *tree {
	t.Helper()
	files := map[string][]byte{}
	for _, f := range txtar.Parse([]byte(archive)).Files {
		files[f.Name] = f.Data
	}
	return parseTree(t, files)
}
