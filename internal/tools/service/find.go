package service

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/refold/refold/bridge/function"
	"github.com/refold/refold/internal/presence"
	"github.com/refold/refold/internal/secrets"
	"github.com/refold/refold/planner"
)

// Tool is a tool offered by a service.
type Tool struct {
	// Function is the tool for registries. Its calls go through a Tools.
	Function *function.Function
	Service  string
	Endpoint string
	Version  string // of the service instance with this metadata
	Subject  string

	metadata metadata
}

// Problem is an endpoint with the metadata of a tool that can't be used.
type Problem struct {
	Service, Endpoint string
	ToolID            string // if known
	Err               error  // every problem
}

// Error returns the endpoint and its problems.
func (p *Problem) Error() string {
	return fmt.Sprintf("service %s, endpoint %s: %s", p.Service, p.Endpoint, strings.ReplaceAll(p.Err.Error(), "\n", "; "))
}

// Unwrap returns the problems.
func (p *Problem) Unwrap() error { return p.Err }

// Find returns the tools that services offer, by tool_id, and the problems of
// others. target is the target of the tools, prefix that of Refold's own
// subjects. Unless only is empty, services with other names are ignored. If
// instances of one service differ, the newest version counts. Problems have no
// secrets.
func Find(services []presence.FoundService, target, prefix string, only []string, redactor *secrets.Redactor) (tools []*Tool, problems []*Problem) {
	newest := map[string]presence.FoundService{}
	for _, s := range services {
		if len(only) > 0 && !slices.Contains(only, s.Name) {
			continue
		}
		for _, e := range s.Endpoints {
			if e.Metadata[MetadataKey] == "" {
				continue
			}
			key := s.Name + " " + e.Name
			if known, ok := newest[key]; ok && !newer(s, known) {
				continue
			}
			one := s
			one.Endpoints = []presence.FoundEndpoint{e}
			newest[key] = one
		}
	}
	byID := map[string][]*Tool{}
	for _, key := range slices.Sorted(maps.Keys(newest)) {
		s := newest[key]
		tool, id, err := newTool(s, s.Endpoints[0], target, prefix, redactor)
		if err != nil {
			problems = append(problems, &Problem{Service: s.Name, Endpoint: s.Endpoints[0].Name, ToolID: id, Err: err})
			continue
		}
		byID[id] = append(byID[id], tool)
	}
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		same := byID[id]
		if len(same) == 1 {
			tools = append(tools, same[0])
			continue
		}
		for i, t := range same {
			other := same[(i+1)%len(same)]
			problems = append(problems, &Problem{Service: t.Service, Endpoint: t.Endpoint, ToolID: id, Err: fmt.Errorf(
				"%s: tool_id: service %s, endpoint %s, has %s too: give one of them another", MetadataKey, other.Service, other.Endpoint, id)})
		}
	}
	return tools, problems
}

// newTool returns the tool of one endpoint. id is returned with an error too,
// if known.
func newTool(s presence.FoundService, e presence.FoundEndpoint, target, prefix string, redactor *secrets.Redactor) (t *Tool, id string, err error) {
	m, err := parseMetadata(e.Metadata[MetadataKey], redactor)
	id = cmp.Or(m.ToolID, s.Name+"."+e.Name)
	if err != nil {
		return nil, id, fmt.Errorf("%s: %w", MetadataKey, err)
	}
	all := []error{checkSubject(e.Subject, prefix, redactor)}
	if e.QueueGroup == "" && !m.RetrySafe {
		all = append(all, errors.New("queue_group: there is none, and each instance would carry out each call: give the endpoint one, or say retry_safe"))
	}
	t = &Tool{Service: s.Name, Endpoint: e.Name, Version: s.Version, Subject: e.Subject, metadata: m}
	options := []function.Option{
		function.Target(target), function.ArgsSchema(m.Schema), function.Description(cmp.Or(m.Description, s.Description)),
		function.ResourceKey(m.ResourceKey), function.ResourceKind(m.ResourceKind), function.Requires(m.Requires...), function.Approval(m.Approval), function.Tries(1),
	}
	if m.ToolName != "" {
		options = append(options, function.ToolName(m.ToolName))
	}
	if m.RetrySafe {
		options = append(options, function.RetrySafe())
	}
	if m.ParallelSafe {
		options = append(options, function.ParallelSafe())
	}
	if m.Access == string(planner.AccessRead) {
		options = append(options, function.ReadOnly())
	}
	if m.DeadlineMS > 0 {
		options = append(options, function.Deadline(m.deadline()))
	}
	t.Function = function.New(id, t.request, options...)
	if err := t.Function.Err(); err != nil {
		// Services call args_schema schema.
		detail := strings.TrimPrefix(err.Error(), "tool "+id+": ")
		detail = strings.NewReplacer("args_schema", "schema", "its schema:", "schema:").Replace(detail)
		all = append(all, fmt.Errorf("%s: %s", MetadataKey, detail))
	}
	return t, id, errors.Join(all...)
}

// checkSubject refuses subjects to which a service must not make a bridge publish.
func checkSubject(subject, prefix string, redactor *secrets.Redactor) error {
	tokens := strings.Split(subject, ".")
	switch {
	case slices.Contains(tokens, ""), strings.ContainsAny(subject, " \t\r\n"):
		return fmt.Errorf("subject: %q is none", redactor.Clip(subject, quotedMax))
	case slices.Contains(tokens, "*"), slices.Contains(tokens, ">"):
		return fmt.Errorf("subject: %s has wildcards: a tool has one subject", redactor.Clip(subject, quotedMax))
	case strings.HasPrefix(subject, "$"), strings.HasPrefix(subject, "_"), strings.HasPrefix(subject, prefix+"."):
		return fmt.Errorf("subject: %s is the server's or Refold's own: a service answers on its own", redactor.Clip(subject, quotedMax))
	}
	return nil
}

// newer reports whether a counts more than b: its version is later, or equal
// with a greater ID, which gives a fixed order.
func newer(a, b presence.FoundService) bool {
	return cmp.Or(compareVersions(a.Version, b.Version), cmp.Compare(a.ID, b.ID)) > 0
}

// compareVersions compares the numbers of two versions, then their texts.
func compareVersions(a, b string) int {
	as, bs := strings.FieldsFunc(a, notDigit), strings.FieldsFunc(b, notDigit)
	for i := range min(len(as), len(bs)) {
		x, errX := strconv.Atoi(as[i])
		y, errY := strconv.Atoi(bs[i])
		if errX != nil || errY != nil {
			break
		}
		if x != y {
			return cmp.Compare(x, y)
		}
	}
	return cmp.Compare(a, b)
}

func notDigit(r rune) bool { return r < '0' || r > '9' }
