package service

// The metadata of endpoints: which of them are tools, and the problems of the
// others.

import (
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold/internal/presence"
)

const plain = `{"schema": {"type": "object", "additionalProperties": false}}`

// offering is a service with one endpoint, do, that says text of itself.
func offering(name, version, text string) presence.FoundService {
	return presence.FoundService{Name: name, ID: name + version, Version: version, Description: "Does " + name + ".", Endpoints: []presence.FoundEndpoint{
		{Name: "ping", Subject: name + ".ping", QueueGroup: "q"},
		{Name: "do", Subject: name + ".do", QueueGroup: "q", Metadata: map[string]string{MetadataKey: text, "other": "x"}},
	}}
}

func TestFindTools(t *testing.T) {
	t.Parallel()
	whole := `{"tool_id": "shop.order", "tool_name": "order", "description": "Orders.", "retry_safe": true, "parallel_safe": true,
		"access": "read", "resource_key": "shop:{what}", "resource_kind": "path", "requires": ["money"], "approval": "args.n > 3", "deadline_ms": 2500,
		"schema": {"type": "object", "properties": {"what": {"type": "string"}, "n": {"type": "integer"}}, "required": ["what", "n"]}}`
	tools, problems := Find([]presence.FoundService{offering("orders", "1.0.0", whole), offering("mail", "1.0.0", plain), {Name: "none"}}, "services", "refold", nil, nil)
	if len(tools) != 2 || len(problems) != 0 {
		t.Fatalf("got %v and %v, want two tools", tools, problems)
	}
	for i, want := range []string{
		`{"args_schema":{"additionalProperties":false,"type":"object"},"description":"Does mail.","executor":{"kind":"effect","target":"services"},` +
			`"tool_id":"mail.do","tool_name":"mail_do"}`,
		`{"access":"read","approval":"args.n > 3","args_schema":{"properties":{"n":{"type":"integer"},"what":{"type":"string"}},"required":["what","n"],"type":"object"},` +
			`"deadline_ms":2500,"description":"Orders.","executor":{"kind":"effect","target":"services"},"parallel_safe":true,"requires":["money"],` +
			`"resource_key":"shop:{what}","resource_kind":"path","retry_safe":true,"tool_id":"shop.order","tool_name":"order"}`,
	} {
		if got, err := tools[i].Function.Spec(); err != nil || string(got) != want {
			t.Errorf("got %s (%v), want %s", got, err, want)
		}
	}
	if only, _ := Find([]presence.FoundService{offering("orders", "1", whole), offering("mail", "1", plain)}, "x", "refold", []string{"mail"}, nil); len(only) != 1 || only[0].Service != "mail" {
		t.Errorf("of mail only: got %v", only)
	}
}

// Each problem names the service, the endpoint and the key.
func TestFindProblems(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`nonsense`:                   "refold.tool: is a JSON object: {\"schema\": {…}, …}, not nonsense",
		`null`:                       "refold.tool: is a JSON object",
		`{}`:                         "refold.tool: schema: is missing; of a tool without arguments it is {",
		`{"schema": "x"}`:            "refold.tool: schema: ",
		`{"schema": {"type": "no"}}`: "refold.tool: schema: ",
		with(`"retrysafe": true`):    "refold.tool: retrysafe: there is no such member, there are access, approval, deadline_ms,",
		with(`"retry_safe": "yes"`):  `refold.tool: retry_safe: is true or false, not "yes"`,
		with(`"parallel_safe":null`): "refold.tool: parallel_safe: is true or false, not null",
		with(`"access": "rw"`):       `refold.tool: access: is read or write, not "rw"`,
		with(`"deadline_ms": 1.5`):   "refold.tool: deadline_ms: is a whole number of milliseconds, not 1.5",
		with(`"deadline_ms": -1`):    "refold.tool: deadline_ms: is 0 (the session's) to ",
		with(`"requires": "money"`):  "refold.tool: requires: is a list of texts",
		with(`"approval": "args."`):  "refold.tool: approval: is never, always, or a condition",
		with(`"resource_key": "{"`):  "refold.tool: resource_key: ",
		with(`"resource_kind":"x"`):  "refold.tool: resource_kind: says what the part of a resource_key is",
		with(`"tool_name": "a b"`):   "refold.tool: tool_name: is 1 to 64 of A-Za-z0-9_-",
		with(`"tool_id": "a b"`):     "refold.tool: tool_id: is 1 to 128 of",
	} {
		tools, problems := Find([]presence.FoundService{offering("orders", "1.0.0", text)}, "services", "refold", nil, nil)
		if len(tools) != 0 || len(problems) != 1 || !strings.HasPrefix(problems[0].Error(), "service orders, endpoint do: "+want) {
			t.Errorf("%s: got %v, %v, want %q", text, tools, problems, want)
		}
	}
	for subject, want := range map[string]string{
		"$JS.API.STREAM.DELETE.REFOLD_LOG": "is the server's or Refold's own", "_INBOX.x": "own", "refold.ctl.s1": "own",
		"orders.*": "wildcards", "orders.>": "wildcards", "orders..x": "is none", "a b": "is none", "": "is none",
	} {
		s := offering("orders", "1.0.0", plain)
		s.Endpoints[1].Subject = subject
		if tools, problems := Find([]presence.FoundService{s}, "services", "refold", nil, nil); len(tools) != 0 || len(problems) != 1 || !strings.Contains(problems[0].Error(), want) {
			t.Errorf("subject %q: got %v, %v, want %q", subject, tools, problems, want)
		}
	}
	all := offering("orders", "1.0.0", plain)
	all.Endpoints[1].QueueGroup = ""
	if tools, problems := Find([]presence.FoundService{all}, "services", "refold", nil, nil); len(tools) != 0 || len(problems) != 1 || !strings.Contains(problems[0].Error(), "queue_group") {
		t.Errorf("without a queue group: got %v, %v", tools, problems)
	}
	all.Endpoints[1].Metadata[MetadataKey] = with(`"retry_safe": true`)
	if tools, problems := Find([]presence.FoundService{all}, "services", "refold", nil, nil); len(tools) != 1 || len(problems) != 0 {
		t.Errorf("retry-safe without a queue group: got %v, %v", tools, problems)
	}
}

// with is metadata with one more member.
func with(member string) string {
	return `{"schema": {"type": "object"}, ` + member + `}`
}

// It counts in whatever order instances answer. Two services can't share a tool.
func TestNewestInstanceCounts(t *testing.T) {
	t.Parallel()
	services := []presence.FoundService{
		offering("orders", "1.9.0", with(`"description": "nine"`)), offering("orders", "1.10.0", with(`"description": "ten"`)), offering("orders", "1.2.0", plain),
	}
	for range 3 {
		services = append(services[1:], services[0])
		if tools, problems := Find(services, "services", "refold", nil, nil); len(tools) != 1 || len(problems) != 0 || tools[0].metadata.Description != "ten" {
			t.Errorf("got %v, %v, want the tool of 1.10.0", tools, problems)
		}
	}
	same := with(`"tool_id": "shop.order"`)
	tools, problems := Find([]presence.FoundService{offering("a", "1", same), offering("b", "1", same), offering("c", "1", plain)}, "services", "refold", nil, nil)
	var said []string
	for _, p := range problems {
		said = append(said, p.Error())
	}
	want := []string{
		"service a, endpoint do: refold.tool: tool_id: service b, endpoint do, has shop.order too: give one of them another",
		"service b, endpoint do: refold.tool: tool_id: service a, endpoint do, has shop.order too: give one of them another",
	}
	if len(tools) != 1 || !slices.Equal(said, want) {
		t.Errorf("got %v, %q, want %q", tools, said, want)
	}
}
