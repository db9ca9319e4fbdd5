// Package archtest holds the laws of the repository: which package may import
// which, what a pure package may contain, which package spells subjects, how
// long files may be, and which words may name packages and types. The linter
// counts the lines of functions. The test at the root runs them.
//
// This file holds the laws' data, each entry with its reason. rules.go, purity.go
// and surface.go check a tree, which tree.go reads.
//
// Every law is a function from a tree to complaints. Each is tested on small
// trees with one violation, which it must report, and on their clean twins, for
// which it must report nothing: a law that can't fail is worthless. An entry that
// allows something nobody does any more is a complaint too.
package archtest

import "testing"

const module = "github.com/refold/refold"

// laws is the data of all checks. Directories are relative to the root. A
// directory stands for itself and everything below it, unless a longer entry of
// the ladder contains it. The root is "." and stands for itself alone.
type laws struct {
	ladder   [][]string        // low to high; packages of one rung don't import one another
	offside  map[string]string // directories outside the ladder, each with everything below it: no package imports them
	fences   []fence
	links    []link
	public   []string // directories of the packages that users import; each stands for itself alone
	sealed   []exempt // interfaces of the root with methods of internal types, by name
	pure     []string // directories of pure packages
	pureStd  []string // packages of the standard library that pure packages import
	pureMods []pureMod
	nouns    map[string]noun // words that may not name packages and types

	// experimental is what a release does not promise of public packages: packages, and
	// files such as web/bodies.go, of which it promises only the types that something
	// promised shows; and types such as actors/session.State, of which it promises only
	// the name.
	experimental []exempt

	redacting []exempt // directories through which texts of programs, servers and tools go
	uncut     []exempt // their files that may cut without redacting
	naming    []exempt // where a provider's name may be a value
}

// fence restricts one import to the directories that need it.
type fence struct {
	what  string   // import path, and every path below it
	only  []string // directories that may import it, each without its subdirectories unless it ends in /...
	tests bool     // test files may import it from anywhere
	why   string
}

// pureMod is a third-party package that pure packages may use, in one place.
type pureMod struct {
	what string // import path
	in   string // the file or directory that imports it
	why  string
}

// noun is what to say instead of a word. Types of one directory may have it: "" is
// none.
type noun struct{ instead, except string }

var repository = laws{
	ladder: [][]string{
		{"codec"},
		{"planner"},
		{"space"},
		{"actors/sentence"},
		{"actors/spaces"},
		{"actors"},
		{"subjects"},
		{"bridge/executor"}, // the interface of tools and models
		{"bridge/function"},
		{"proof/jetmodel", "proof/strict", "internal/meter", "internal/media"}, // what the simulation runs on; what providers would refuse; counters that any package above may raise; types of images
		{"internal/inspector", "internal/prove"},                               // pages, which package web serves; the fold that they carry out themselves
		{"internal/yamlfile", "internal/cron"},                                 // what YAML files may cost; when schedules fire
		{"internal/roles", "internal/secrets"},                                 // who may do what on NATS; where values are found, and kept out of what is stored
		{"internal/archive"},                                                   // the format of a session's file
		{"internal/spacefiles"},                                                // folders become manifests
		{"internal/natsio"},
		{"internal/streams"}, // re-creates the consumers that delivery pulls from, and journal's bucket of snapshots
		{"internal/journal", "internal/delivery", "internal/presence", "internal/account"}, // account: what a NATS account gives
		{"internal/audit", "internal/prompt", "internal/erase"},                            // the comparisons that engine and refold verify share; the request to a model; deletes of erased sessions
		{"internal/bus"}, // all of them over one connection
		{"internal/engine", "internal/worker", "client"},
		{"internal/replylink"}, // what package web and webhook agree on
		{"bridge", "internal/sessionactor", "internal/inside", "internal/webhook", "internal/retain"}, // inside: what the root and package web agree on; webhook: notices for receivers elsewhere; retain: archives and deletes old sessions
		{"internal/source"}, // what the root and its sources agree on
		{"internal/llm", "internal/tools", "internal/telemetry"}, // telemetry measures bridges, and reads the engine's counters
		{"internal/transcript"},                                  // what happened in a session, for people and for other programs
		{"."},                                                    // the front door: one import for a program that owns an agent
		{"internal/devserver"},
		{"embedded", "provider", "tools", "web"}, // each links what the root does not
		{"proof/bench", "proof/chaos", "proof/sim"},
		{"bridge/bridgetest", "proof/cli"},
		{"refoldtest"},
		{"cmd"},
		{"proof/faults", "proof/kit"},
	},
	offside: map[string]string{
		"e2e":    "plays a user: processes, files and a plain NATS client",
		"deploy": "checks the deployment files",
		"docs":   "compares the documents with the code",

		"internal/wire": "derives schemas and tables from the source of the types",

		"internal/api":      "what releases promise, which tests compare with the code",
		"internal/archtest": "the laws; the test at the root runs them",
		"proof/faults":      "a program that edits shipped code, and checks that tests notice",

		"internal/browser": "drives Chromium, in tests with the tag peers",

		"clients":  "clients in other languages, and the server of their tests, with the public packages alone",
		"examples": "users' programs, with the public packages or NATS alone",
	},
	fences: []fence{
		{
			what:  "github.com/nats-io/nats.go",
			only:  []string{"internal/natsio", "internal/source", ".", "internal/streams", "internal/account", "internal/journal", "internal/delivery", "internal/presence", "internal/bus/testbus", "e2e", "bridge", "client", "proof/bench", "proof/sim", "internal/roles/trial", "cmd/refold/bridgecheck", "examples/service-go"},
			tests: true,
			why:   "JetStream's conflicts, timeouts and stale reads are handled in internal/natsio and the packages over it; internal/bus/testbus gives tests a plain client; the root, bridge and client take a connection from their caller; proof/bench measures the bus against plain publishes; proof/sim delivers messages to a lane; internal/roles/trial tries what no program of ours may do; cmd/refold/bridgecheck reads how bridges acknowledge deliveries, and acknowledges some itself; examples/service-go is a service that knows nothing of Refold",
		},
		{
			what:  "github.com/nats-io/nats-server/v2",
			only:  []string{"internal/streams", "internal/bus/bustest", "internal/devserver", "proof/bench", "proof/chaos", "e2e"},
			tests: true,
			why:   "a server runs in internal/devserver and in tests; proof/bench and proof/chaos start fresh ones, single or clustered; internal/streams reads streams.conf with the server's parser",
		},
		{
			what: "github.com/landlock-lsm/go-landlock",
			only: []string{"internal/tools/sandbox"},
			why:  "it confines the calling process for good: only the child process that runs a command may call it",
		},
		{
			what: "github.com/openai/openai-go/v3",
			only: []string{"internal/llm/openai"},
			why:  "a provider's SDK adds tens of MiB and most of a minute of build: one package each, so that the others can be left out",
		},
		{
			what: "github.com/anthropics/anthropic-sdk-go",
			only: []string{"internal/llm/anthropic"},
			why:  "a provider's SDK stays in its own package, as OpenAI's does",
		},
		{
			what: "google.golang.org/genai",
			only: []string{"internal/llm/gemini"},
			why:  "a provider's SDK stays in its own package, as OpenAI's does",
		},
		{
			what: "github.com/modelcontextprotocol/go-sdk",
			only: []string{"internal/tools/mcp"},
			why:  "one package knows the protocol of MCP; its SDK is not part of what sessions are",
		},
		{
			what:  "github.com/coreos/go-oidc/v3",
			only:  []string{"web/bearer"},
			tests: true,
			why:   "one package verifies JWTs; a handler takes any way to know its callers",
		},
		{
			what:  "github.com/standard-webhooks/standard-webhooks/libraries",
			only:  []string{"internal/webhook"},
			tests: true,
			why:   "one package signs webhooks",
		},
		{
			what: "go.opentelemetry.io/otel",
			only: []string{"internal/telemetry/metrics", "internal/telemetry/traces", "internal/telemetry/logs"},
			why:  "users of bridge and client link no OpenTelemetry: an interface of two methods reports starts to it",
		},
		{
			what: "go.opentelemetry.io/contrib",
			only: []string{"internal/telemetry/logs"},
			why:  "it is the bridge from slog to OpenTelemetry; only daemons that export logs pay for it",
		},
		{
			what: "github.com/prometheus/client_golang",
			only: []string{"internal/telemetry/metrics"},
			why:  "it answers scrapes; the counters are in internal/meter",
		},
		{
			what:  module + "/internal/devserver",
			only:  []string{"cmd/refold/cli", "bridge/bridgetest", "embedded"},
			tests: true,
			why:   "a daemon with a NATS server inside would hide that it was given no address; users' tests have no server to connect to, and embedded is for programs without one",
		},
	},
	links: []link{
		{"github.com/openai/openai-go/v3", []string{"cmd/bridge", "provider/compatible", "provider/openai"}, "providers' SDKs take most of a minute to build: the daemon bridge calls providers, and programs that import the provider's package"},
		{"github.com/anthropics/anthropic-sdk-go", []string{"cmd/bridge", "provider/anthropic"}, "as OpenAI's"},
		{"google.golang.org/genai", []string{"cmd/bridge", "provider/gemini"}, "as OpenAI's"},
		{"github.com/modelcontextprotocol/go-sdk", []string{"cmd/bridge", "cmd/refold-full", "tools/mcp"}, "the demo needs no MCP, nor does an agent without MCP servers"},
		{"go.opentelemetry.io", []string{"cmd/bridge", "cmd/refold-full", "cmd/session-actor", "proof/kit", "provider/anthropic", "provider/gemini"}, "the SDKs of these providers link it; besides, only daemons export telemetry; an interface of two methods reports starts to it"},
		{"github.com/prometheus", []string{"cmd/bridge", "cmd/refold-full", "cmd/session-actor", "proof/kit"}, "it answers scrapes; the counters are in internal/meter"},
		{"google.golang.org/grpc", []string{"cmd/bridge", "cmd/refold-full", "cmd/session-actor", "proof/kit", "provider/gemini"}, "the exporters of OpenTelemetry and Gemini's SDK need it, and Refold does not"},
		{"github.com/coreos/go-oidc/v3", []string{"cmd/refold", "cmd/refold-full", "web/bearer"}, "programs that serve HTTP with tokens of an issuer"},
		{module + "/proof", []string{"cmd/refold-full", "proof/kit"}, "the proof kit is for people who check Refold"},
		{"github.com/nats-io/nats-server/v2/server", []string{"bridge/bridgetest", "cmd/refold", "cmd/refold-full", "embedded", "proof/kit", "refoldtest"}, "the demo, tests and programs with embedded have a server inside; daemons, clients and programs on NATS connect to one"},
		{module + "/internal/engine", []string{"bridge/bridgetest", "cmd/refold", "cmd/refold-full", "cmd/session-actor", "embedded", "proof/kit", "refoldtest"}, "a program on NATS uses the servers' session-actors"},
		{"cel.dev/cel-go", []string{".", "actors/session", "actors/spaces", "bridge", "bridge/bridgetest", "bridge/executor", "bridge/function", "client", "cmd/bridge", "cmd/prove", "cmd/refold", "cmd/refold-full", "cmd/session-actor", "embedded", "planner", "proof/kit", "provider", "provider/anthropic", "provider/compatible", "provider/gemini", "provider/openai", "refoldtest", "space", "subjects", "tools/host", "tools/mcp", "web", "web/bearer"}, "the fold evaluates when"},
	},
	public: []string{".", "actors/sentence", "actors/session", "actors/spaces", "bridge", "bridge/bridgetest", "bridge/executor", "bridge/function", "client", "codec", "embedded", "planner", "provider", "provider/anthropic", "provider/compatible", "provider/gemini", "provider/openai", "refoldtest", "space", "subjects", "tools/host", "tools/mcp", "web", "web/bearer"},
	experimental: []exempt{
		{"actors/sentence", "what a session explains itself with: programs use the text"},
		{"actors/session", "the fold itself: programs use events and views"},
		{"actors/session.Snapshot", "a cache: docs/stability.md"},
		{"actors/session.State", "it changes with the fold: programs use session.View"},
		{"actors/spaces", "a part of the fold"},
		{"planner", "a part of the fold"},
		{"space", "a part of the fold"},
		{"web/bodies.go", "the HTTP API promises their fields: internal/api"},
		{"web/inspect_bodies.go", "the inspector's pages come with the program that serves them"},
		{"web/inspect_system_bodies.go", "as web/inspect_bodies.go"},
	},
	sealed: []exempt{
		{"Source", "package embedded implements it, which the root does not import, and nobody else may"},
		{"ToolSource", "the packages below tools implement it, which the root does not import, and nobody else may"},
	},
	pure: []string{"codec", "planner", "space", "actors", "subjects"},
	pureStd: []string{
		"bytes", "cmp", "crypto/sha256", "embed", "encoding", "encoding/base32", "encoding/base64", "encoding/binary",
		"encoding/hex", "encoding/json", "errors", "fmt", "hash/fnv", "iter", "math", "math/big",
		"math/bits", "path", "reflect", "regexp", "regexp/syntax", "slices", "strconv", "strings",
		"unicode/utf16", "unicode/utf8",
	},
	pureMods: []pureMod{
		{"github.com/vmihailenco/msgpack/v5", "codec", "the encoding; codec decides which of its forms is the canonical one"},
		{"golang.org/x/crypto/blake2b", "codec/hash.go", "every event is hashed into its session's chain"},
		{"github.com/oklog/ulid/v2", "subjects/effects.go", "an effect's subject may end with a log's identity: it is only parsed"},
		{"github.com/nats-io/nkeys", "space/trust.go", "a manifest's signature is verified inside the fold: Ed25519, no clock and no randomness"},
		{"github.com/nats-io/nkeys", "actors/session/scenario/space.go", "scenarios sign manifests: Ed25519 takes no randomness"},
		{"github.com/santhosh-tekuri/jsonschema/v6", "planner/schema.go", "arguments of a call are checked against the tool's schema inside the fold"},
		{"cel.dev/cel-go/cel", "planner/cel.go", "a step rule's when is evaluated inside the fold"},
		{"cel.dev/cel-go/common/ast", "planner/cel.go", "the tree of a when is checked against the allowed language"},
		{"cel.dev/cel-go/common/env", "planner/cel.go", "names the part of the standard library that a when may call"},
		{"cel.dev/cel-go/common/types", "planner/cel.go", "the values that a when sees"},
		{"cel.dev/cel-go/common/types/ref", "planner/cel.go", "the interface of those values"},
		{"cel.dev/cel-go/common/types/traits", "planner/cel.go", "a when may read members of context, but not loop over it"},
		{"cel.dev/cel-go/cel", "planner/celvalue.go", "a scope is what the library calls an activation"},
		{"cel.dev/cel-go/common/types", "planner/celvalue.go", "JSON becomes these values"},
		{"cel.dev/cel-go/common/types/ref", "planner/celvalue.go", "the interface of those values"},
		{"cel.dev/cel-go/common/types/traits", "planner/celvalue.go", "members of an object are read, but not iterated"},
		{"cel.dev/cel-go/interpreter", "planner/cel.go", "tells a when that cost too much from one that failed"},
	},
	nouns: map[string]noun{
		"command": {"event or effect", "cmd/refold/cli"}, "intent": {"effect", ""}, "receipt": {"the sequence that JetStream answers", ""},
		"job": {"run", ""}, "task": {"run", ""}, "workflow": {"session", ""}, "handler": {"executor, or a function", ""},
		"manager": {"what it holds or decides", ""}, "misc": {"what is in it", ""},
		"util": {"what it does", ""}, "utils": {"what it does", ""}, "common": {"what it is", ""}, "shared": {"what it is", ""},
		"types": {"what it describes", ""}, "helper": {"what it does", ""}, "helpers": {"what it does", ""},
	},
	redacting: []exempt{
		{"bridge", "what functions return, and errors of executors"},
		{"cmd/bridge", "errors of executors"},
		{"internal/tools", "what programs, servers and services answer"},
		{"internal/worker", "what is stored"},
		{"internal/llm/anthropic", "what a server answers"},
		{"internal/llm/endpoint", "what a server answers"},
		{"internal/llm/gemini", "what a server answers"},
		{"internal/llm/openai", "what a server answers"},
	},
	uncut: []exempt{
		{"bridge/bridge.go", "the name of the program"},
		{"internal/tools/host", "calls of host tools get no secrets, and it cuts lists and looks at the beginning of files"},
		{"internal/tools/mcp/find.go", "the names of tools, which end in a hash"},
		{"internal/tools/mcp/stdio.go", "lines of a text that was redacted as a whole"},
		{"internal/tools/patch", "quotes lines of a model's patch"},
		{"internal/tools/sessiontools", "files of workspaces, for calls that get no secrets"},
		{"internal/worker/content.go", "outcomes that start.go redacted"},
		{"internal/worker/live.go", "pieces of a model's text, of which nothing is left out"},
		{"internal/worker/settlement.go", "outcomes that start.go redacted, and answers of models"},
		{"internal/worker/space.go", "readers of spaces get no secrets"},
	},
	naming: []exempt{
		{"cmd/bridge/models.go", "the constructors of the daemon"},
		{"cmd/refold/cli/transcript.go", "the name of a format"},
		{"internal/llm/anthropic", "the package of a provider"},
		{"internal/llm/gemini", "the package of a provider"},
		{"internal/llm/openai", "the package of a provider"},
		{"internal/llm/provider", "the rows"},
		{"internal/llm/schema", "dialects are named after providers"},
		{"provider", "each package below it is a provider's"},
		{"web/transcript.go", "the names of forms"},
		{"internal/roles/file.go", "the target of the roles that a command line without a file writes; it is below package provider"},
	},
}

// checks are the laws, by name.
var checks = map[string]func(laws, *tree) []string{
	"ladder":    laws.checkLadder,
	"fences":    laws.checkFences,
	"links":     laws.checkLinks,
	"outside":   laws.checkOutside,
	"purity":    laws.checkPurity,
	"surface":   laws.checkSurface,
	"examples":  laws.checkExamples,
	"spelling":  laws.checkSpelling,
	"nouns":     laws.checkNouns,
	"sizes":     laws.checkSizes,
	"cuts":      laws.checkCuts,
	"lines":     laws.checkLines,
	"stale":     laws.checkStale,
	"providers": laws.checkProviders,
}

// Repository checks the module at root against all laws, one after the other:
// an importer of types may be used by one goroutine only.
func Repository(t *testing.T, root string) {
	t.Helper()
	tree := readTree(t, root)
	if len(tree.pkgs) < 5 {
		t.Fatalf("read %d packages: this is not the repository's root", len(tree.pkgs))
	}
	for name, check := range checks {
		t.Run(name, func(t *testing.T) {
			for _, complaint := range check(repository, tree) {
				t.Error(complaint)
			}
		})
	}
}
