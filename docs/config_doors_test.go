package docs_test

// What a config may change, by the door through which it comes: the table in
// docs/semantics.md against the fold. Each field of a config is set by an operator
// and named by a client, and what holds then is compared with the field's row.

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/spaces"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/space"
)

// doorsRow is a field's row of the table.
type doorsRow struct {
	in        string // the first words of the cell
	permitted bool   // by the default policy
	ctl       string
}

// doorsRows returns the rows of the table by field.
func doorsRows(t *testing.T) map[string]doorsRow {
	t.Helper()
	rows := map[string]doorsRow{}
	section := sections(t, "docs/semantics.md")["What a client may change"]
	for _, line := range regexp.MustCompile("(?m)^\\| (`[^|]*) \\|([^|]*)\\|([^|]*)\\|([^|]*)\\|$").FindAllStringSubmatch(section, -1) {
		row := doorsRow{in: strings.TrimSpace(line[2]), permitted: strings.TrimSpace(line[3]) == "permitted", ctl: strings.TrimSpace(line[4])}
		for _, name := range regexp.MustCompile("`([a-z_.]+)`").FindAllStringSubmatch(line[1], -1) {
			if _, twice := rows[name[1]]; twice {
				t.Errorf("%s has two rows", name[1])
			}
			rows[name[1]] = row
		}
	}
	return rows
}

// configFieldNames returns the fields of a config. A field that is an object stands
// for the fields in it if rows of the table name those.
func configFieldNames(typ reflect.Type, at string, rows map[string]doorsRow) (names []string) {
	for field := range typ.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("msgpack"), ",")
		name = at + name
		split := false
		for row := range rows {
			split = split || strings.HasPrefix(row, name+".")
		}
		if split {
			names = append(names, configFieldNames(field.Type.Elem(), name+".", rows)...)
		} else {
			names = append(names, name)
		}
	}
	return names
}

// doorsValue returns two values of a field, in JSON: those of doorsValues, or else what
// the schema of the field names or allows.
func doorsValue(t *testing.T, s *schemas, values map[string][2]string, field string) [2]string {
	t.Helper()
	if two, ok := values[field]; ok {
		return two
	}
	file, node := "parts/RunConfig", s.docs["parts/RunConfig"]
	for _, name := range strings.Split(field, ".") {
		properties, _ := node["properties"].(map[string]any)
		node, _ = properties[name].(map[string]any)
		if ref, ok := node["$ref"].(string); ok {
			file, node = s.refersTo(file, ref)
		}
	}
	least, _ := node["minimum"].(json.Number)
	most, _ := node["maximum"].(json.Number)
	largest, _ := most.Int64()
	switch enum := asList(node["enum"]); {
	case len(enum) > 1:
		return [2]string{string(jsonOf(t, enum[0])), string(jsonOf(t, enum[1]))}
	case node["type"] == "integer" && largest > 0 && largest < 1<<10:
		return [2]string{fmt.Sprint(largest - 1), most.String()}
	case node["type"] == "integer":
		return [2]string{least.String() + "200", least.String() + "300"}
	case node["type"] == "boolean":
		return [2]string{"true", "false"}
	}
	t.Errorf("%s: name two values for it in doorsValues", field)
	return [2]string{"null", "null"}
}

// doorsValues returns two values of each field whose schema does not say enough, in JSON.
func doorsValues(t *testing.T) map[string][2]string {
	t.Helper()
	text := ptr(codec.RefOf([]byte("x"))).String()
	other := ptr(codec.RefOf([]byte("y"))).String()
	workspace := doorsManifest().Hash().String()
	return map[string][2]string{
		"active_tools":    {`["a","b"]`, `["b","c"]`},
		"context":         {`{"tokens":9000,"clear_at":50,"compact_at":70,"keep_turns":2,"summary":{"provider":"p2","model":"m2","prompt":"Sum up.","tokens_max":100,"off":true}}`, `{"tokens":8000}`},
		"disable":         {`["a","b"]`, `["b","c"]`},
		"enable":          {`["a","b"]`, `["b","c"]`},
		"fallback":        {`[{"provider":"p2","model":"m1","after_ms":5000,"context":{"tokens":9000,"clear_at":50,"compact_at":70,"keep_turns":2,"summary":{"provider":"p2","model":"m2","prompt":"Sum up.","tokens_max":100,"off":true}},"params":{"top":1},"on":["auth"],"sticky":"turn"}]`, `[{"provider":"p3","model":"m1"}]`},
		"force":           {`["a","b"]`, `["b","c"]`},
		"model":           {`"m1"`, `"m2"`},
		"params":          {`{"seed":1,"top":1}`, `{"seed":2}`},
		"prices":          {`{"input":1,"output":2}`, `{"input":3}`},
		"profile":         {`"one"`, `"two"`},
		"prompt_pack":     {`"default"`, `"short"`},
		"prompt_refs":     {`["` + text + `"]`, `["` + other + `"]`},
		"provider":        {`"p1"`, `"p2"`},
		"response_format": {`{"type":"json_object"}`, `{"type":"text"}`},
		"retry":           {`{"attempts":3,"backoff_ms":10}`, `{"attempts":2}`},
		"skills":          {`["refunds"]`, `["returns"]`},
		"step_hook":       {`{"deadline_ms":5000,"fallback":"fail","hook":"guard"}`, `{"hook":"other"}`},
		"steps":           {`[{"system":"one","when":"step > 3"}]`, `[{"system":"two","when":"step > 4"}]`},
		"system":          {`"one"`, `"two"`},
		"tool_catalog":    {`"default"`, `"two"`},
		"tool_choice":     {`"required"`, `"none"`},
		"tool_refs":       {`["a","b"]`, `["b","c"]`}, // by their hashes
		"workspace":       {`"` + workspace + `"`, `"none"`},
	}
}

// doorsManifest is a workspace with two of each.
func doorsManifest() *space.Manifest {
	m, file := supportManifest(), 0
	a, b := []codec.Raw{space.Entry{Tool: "a"}.Raw()}, []codec.Raw{space.Entry{Tool: "b"}.Raw()}
	m.Catalogs = []space.Catalog{{ToolCatalog: "default", Tools: a}, {ToolCatalog: "two", Tools: b}}
	m.Prompts = []space.Prompt{{Parts: []space.Part{{File: &file}}, PromptPack: "default"}, {Parts: []space.Part{{File: &file}}, PromptPack: "short"}}
	m.Skills = []space.Skill{{Description: "Pays back.", Skill: "refunds"}, {Description: "Takes back.", Skill: "returns"}}
	return m
}

// doorsCase is a field with two values. They overlap if they are lists, and the
// first is smaller if they are numbers.
type doorsCase struct {
	t         *testing.T
	field     string
	a, b      any
	record    session.InstallRecord
	permitted bool // by the record's policy, beside the default fields
	inRecord  bool // the operator's config is the install record's, else the session's
}

// newDoorsCase returns the case of a field, in a session that has what its values
// name.
func newDoorsCase(t *testing.T, field string, values [2]string) *doorsCase {
	t.Helper()
	c := &doorsCase{t: t, field: field, permitted: true, record: session.InstallRecord{Rules: 1, V: 1}}
	for _, name := range []string{"a", "b", "c", "d"} {
		c.record.Tools = append(c.record.Tools, planner.ToolSpec{
			ArgsSchema: raw(t, `{"type":"object"}`), Executor: planner.Executor{Kind: planner.ExecutorEffect, Target: "t"}, ToolID: "t." + name, ToolName: name,
		})
	}
	switch field {
	case "profile":
		c.record.Profiles = []planner.Profile{{Profile: "one", Tools: []string{"a"}}, {Profile: "two", Tools: []string{"b"}}}
	case "enable", "force": // they add to what a profile has
		c.record.Profiles, c.record.DefaultProfile = []planner.Profile{{Profile: "one", Tools: []string{}}}, "one"
	case "prompt_pack", "skills", "tool_catalog", "workspace":
		c.record.Spaces = []spaces.Grant{{Manifest: doorsManifest().Bytes(), Space: "support"}}
	}
	c.a, c.b = c.value(values[0]), c.value(values[1])
	return c
}

// value reads a value. Names of tools become hashes for tool_refs.
func (c *doorsCase) value(text string) (v any) {
	c.t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		c.t.Fatalf("%s: %s: %v", c.field, text, err)
	}
	if c.field != "tool_refs" {
		return v
	}
	registry, err := planner.NewRegistry(c.record.Tools, nil, "", nil)
	if err != nil {
		c.t.Fatal(err)
	}
	for i, name := range asList(v) {
		tool, _ := registry.Lookup(name.(string))
		v.([]any)[i] = registry.Ref(tool).String()
	}
	return v
}

// config returns a config with the field, and with what every config needs; a nil
// value leaves the field out.
func (c *doorsCase) config(value any) map[string]any {
	config := map[string]any{"provider": "p", "model": "m"}
	outer, inner, isInner := strings.Cut(c.field, ".")
	switch {
	case value == nil:
		delete(config, c.field) // the model is no longer named
	case isInner:
		config[outer] = map[string]any{inner: value}
	default:
		config[outer] = value
	}
	return config
}

// requested returns what holds of the field in the run that is requested through a
// door, under an operator's config: a text for each value or entry. Of lists of
// tools it is the tools that are offered, or kept away. A request without a config
// has none.
func (c *doorsCase) requested(door session.Door, operators any, request map[string]any) []string {
	c.t.Helper()
	f := newFolding(c.t, c.payload(operators))
	say := func(door session.Door, typ string, data map[string]any) (code string) {
		_, notices := f.fold(door, jsonOf(c.t, map[string]any{"type": typ, "data": data}))
		for _, n := range notices {
			if rejected, ok := n.Data.(session.EventRejected); ok {
				return string(rejected.Code)
			}
		}
		return ""
	}
	if !c.inRecord {
		if code := say(session.DoorCtl, session.TypeSessionConfigured, c.config(operators)); code != "" {
			c.t.Fatalf("%s: %v is refused in an operator's config: %s", c.field, operators, code)
		}
	}
	data := map[string]any{"input": map[string]any{"text": "go"}}
	if request != nil {
		data["config"] = request
	}
	if code := say(door, session.TypeRunRequested, data); code != "" {
		return []string{"refused: " + code}
	}
	return c.holds(f)
}

// payload returns the install record, with the operator's config if it is there.
func (c *doorsCase) payload(operators any) []byte {
	c.t.Helper()
	record := c.record
	if c.permitted {
		record.Policy.Ingress = append(session.DefaultIngress(), strings.SplitN(c.field, ".", 2)[0])
	}
	// A record's config has a provider and a model, or there is none.
	if c.inRecord && (operators != nil || c.field != "provider" && c.field != "model") {
		record.Config = &session.RunConfig{}
		if err := codec.Decode(raw(c.t, string(jsonOf(c.t, c.config(operators)))), record.Config); err != nil {
			c.t.Fatal(err)
		}
	}
	payload, err := codec.Marshal(record)
	if err != nil {
		c.t.Fatal(err)
	}
	return payload
}

// holds returns what holds of the field in the run that has started.
func (c *doorsCase) holds(f *folding) (all []string) {
	c.t.Helper()
	switch c.field {
	case "active_tools", "tool_refs", "enable", "force", "disable":
		for _, tool := range f.state.View().Tools {
			if tool.Offered != (c.field == "disable") {
				all = append(all, tool.ToolName)
			}
		}
		return all
	}
	packed, err := codec.Marshal(f.state.Run.Config)
	if err != nil {
		c.t.Fatal(err)
	}
	text, err := codec.ToJSON(packed)
	if err != nil {
		c.t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		c.t.Fatal(err)
	}
	for _, key := range strings.Split(c.field, ".") {
		object, _ := v.(map[string]any)
		v = object[key]
	}
	if v == nil {
		return nil
	}
	return []string{string(jsonOf(c.t, v))}
}

// names returns the entries of a value, in the form of holds.
func (c *doorsCase) names(value any) (all []string) {
	switch c.field {
	case "tool_refs", "active_tools", "enable", "force", "disable":
		return c.requested(session.DoorCtl, nil, c.config(value))
	}
	return []string{string(jsonOf(c.t, value))}
}

// doorsRules are what a client's value b may do to an operator's a, by the word of
// the row.
var doorsRules = map[string]func(a, b []string, first bool) []string{
	"replaces":   func(_, b []string, _ bool) []string { return b },
	"operator's": func(a, _ []string, _ bool) []string { return a },
	"narrows": func(a, b []string, _ bool) []string {
		return slices.DeleteFunc(slices.Clone(a), func(one string) bool { return !slices.Contains(b, one) })
	},
	"adds": func(a, b []string, _ bool) []string {
		return slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(a), b...))))
	},
	"smaller": func(a, b []string, aIsSmaller bool) []string {
		if aIsSmaller {
			return a
		}
		return b
	},
}

// what returns the rules that explain what holds under a client's request.
func (c *doorsCase) what() (rules []string) {
	c.t.Helper()
	a, b := c.names(c.a), c.names(c.b)
	ab, ba := c.requested(session.DoorIn, c.a, c.config(c.b)), c.requested(session.DoorIn, c.b, c.config(c.a))
	for name, rule := range doorsRules {
		if slices.Equal(ab, rule(a, b, true)) && slices.Equal(ba, rule(b, a, false)) {
			rules = append(rules, name)
		}
	}
	slices.Sort(rules)
	if len(rules) == 0 {
		c.t.Errorf("%s: no rule explains that %q, and in the other order %q, hold of %q and %q", c.field, ab, ba, a, b)
	}
	return rules
}

// TestConfigFieldsByDoor: every field of a config has one row in the table of
// docs/semantics.md, and does what the row says: through `in`, by default, and
// through `ctl`. A field that a client leaves out is always the operator's.
func TestConfigFieldsByDoor(t *testing.T) {
	t.Parallel()
	s := readSchemas(t)
	rows, values := doorsRows(t), doorsValues(t)
	fields := configFieldNames(reflect.TypeFor[session.RunConfig](), "", rows)
	for row := range rows {
		if !slices.Contains(fields, row) {
			t.Errorf("docs/semantics.md has a row for %s, which is no field of a config", row)
		}
	}
	for _, field := range fields {
		row, ok := rows[field]
		if !ok {
			t.Errorf("docs/semantics.md: %s has no row in the table of what a client may change", field)
			continue
		}
		two := doorsValue(t, s, values, field)
		for _, inRecord := range []bool{false, true} {
			c := newDoorsCase(t, field, two)
			c.inRecord = inRecord
			c.compare(row)
		}
	}
}

// compare compares what a field does with its row.
func (c *doorsCase) compare(row doorsRow) {
	c.t.Helper()
	same := func(what string, got, want []string) {
		c.t.Helper()
		if !slices.Equal(got, want) {
			c.t.Errorf("%s (of the record: %v), %s: %q holds, want %q", c.field, c.inRecord, what, got, want)
		}
	}
	if got := c.what(); len(got) != 1 || !strings.Contains(" "+row.in+" ", " "+got[0]) {
		c.t.Errorf("%s (of the record: %v), through in: the client's value %q, the row says %q", c.field, c.inRecord, got, row.in)
	}
	a, b, none := c.names(c.a), c.names(c.b), c.requested(session.DoorCtl, nil, c.config(nil))
	another := map[string]any{"turns_max": 9}
	if c.field == "turns_max" {
		another = map[string]any{"system": "x"}
	}
	same("left out by a client", c.requested(session.DoorIn, c.a, another), a)
	first := b
	if strings.HasPrefix(row.in, "narrows") {
		first = doorsRules["narrows"](c.requested(session.DoorIn, nil, nil), b, true)
	}
	same("left out by the operator", c.requested(session.DoorIn, nil, c.config(c.b)), first)
	same("a client's request without a config", c.requested(session.DoorIn, c.a, nil), a)
	same("through ctl", c.requested(session.DoorCtl, c.a, c.config(c.b)), b)
	same("an operator's request without a config", c.requested(session.DoorCtl, c.a, nil), a)
	left := none
	if !c.inRecord && strings.Contains(row.ctl, "left out, the session's hold") {
		left = a
	}
	same("left out through ctl", c.requested(session.DoorCtl, c.a, c.config(nil)), left)
	if !strings.HasPrefix(row.ctl, "replaces") {
		c.t.Errorf("%s: through ctl the row says %q", c.field, row.ctl)
	}
	c.permitted = false
	refused := slices.Equal(c.requested(session.DoorIn, c.a, c.config(c.b)), []string{"refused: not_permitted"})
	if refused == row.permitted {
		c.t.Errorf("%s: the default policy refuses it: %v, the row says permitted: %v", c.field, refused, row.permitted)
	}
	c.permitted = true
}
