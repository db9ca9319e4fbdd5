package docs_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/spaces"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/space"
)

// byShape are the rejections of what is no message of its schema. An open
// effect is settled as bad_settlement then.
var byShape = []session.Rejection{
	session.RejectUndecodable, session.RejectUnsupportedVersion, session.RejectUnknownType, session.RejectInvalidData,
	session.RejectLimitExceeded, session.RejectInvalidRule, session.RejectInvalidRegistry,
	session.CodeBadSettlement,
}

// byName are the rejections of names of nothing. A name that could name nothing
// (parts/Names) is refused in the same way.
var byName = []session.Rejection{
	session.RejectMissingModel, session.RejectMissingProvider, // the operator's config may have them
	session.RejectUnknownEffect, session.RejectUnknownCall, session.RejectUnknownTool, session.RejectUnknownProfile,
	session.RejectApprovalStale, session.RejectPlanMismatch, session.RejectStale, session.RejectUnknownSpace, session.RejectWorkspaceInvalid, session.RejectNothingStaged,
	session.RejectUnknownSchedule,
}

// unsaid are refusals by shape that a schema has no words for, by what they say.
var unsaid = map[string]string{
	"there is no tool":                "names are looked up in the registry",
	"there is no profile":             "names are looked up in the registry",
	"no tool has the descriptor":      "names are looked up in the registry",
	"the registry binds no":           "names are looked up in the registry",
	"a tool of the registry, not":     "names are looked up in the registry",
	"the registry has no":             "names are looked up in the registry",
	"lists could not tell them apart": "two tools have one name",
	"is that of ":                     "two tools or profiles have one name",
	"is listed before":                "two names of one tool",
	"is the same as":                  "two descriptors are one",
	"the descriptor's is":             "the hash of a descriptor",
	".when: ":                         "a language of its own",
	"a condition: it":                 "a language of its own",
	"resource_key: ":                  "a language of its own",
	"args_schema: ":                   "a language of its own",
	"arguments: ":                     "the schema of the tool, or no JSON",
	"is the name of":                  "names that are kept",
	"none name no space":              "names that are kept",
	"dry: stages nothing":             "two fields that exclude each other",
	"or declined in its place":        "two fields that exclude each other",
	"says who answers a call":         "the kind of executor",
	"of the answer to a call":         "the kind of executor",
	"is of a run of another session":  "the kind of executor",
	"grant.manifest: is only":         "who says it",
	"is no public nkey":               "a checksum",
	"1, 1.4 or 1.4.2":                 "a language of its own",
	"be the workspace of the request": "two names of one space",
	"is a workspace, not a pack":      "names are looked up in the grants",
	"is a pack, not a workspace":      "names are looked up in the grants",
	"bytes of text, at most":          "a sum over parts",
	"those of all models are at most": "a sum over entries",
	"prices.models has no price of":   "names are looked up in the prices",
	"is no need of the manifest":      "the manifest is looked into",
	"known":                           "the hash of a manifest",
	".manifest: ":                     "the manifest is looked into",
	"has no prompt pack":              "the manifest is looked into",
	"has no catalog":                  "the manifest is looked into",
	"no manifest of the session has":  "the hash of a manifest",
	"the wake is of revision":         "looked up in the schedules",
	"or a later time that has come":   "two times",
	"must be after at":                "two times",
	"be at least a minute after at":   "two times",
	"no workspace is applied":         "the manifest is looked into",
	"is not the hash of this batch":   "the hash of a plan",
	"no applied space has a skill":    "the manifest is looked into",
	"would be shown before the":       "the manifest is looked into",
	"nested ones included":            "parts inside parts",
	"limit_exceeded at output.parts":  "parts inside parts",
	"limit_exceeded at text.parts":    "parts inside parts",
	"invalid_data at plan_hash":       "the hash of a plan",
	"is too small: ":                  "what was used",
	"is there twice: upper and lower": "two providers have one name",
	"where the message before ends":   "a sum over entries",
	"the messages add up to":          "a sum over entries",
	"must be a user's":                "the order of messages",
	"only a message of role":          "two fields that exclude each other",
	"before it is without a result":   "the order of messages",
	"before it have no result":        "the order of messages",
	"calls have no result":            "the order of messages",
	"must follow one of another role": "the order of messages",
}

// agreement compares the schema of a message with who takes it.
type agreement struct {
	grammar
	root   []located
	base   any
	start  *folding // nil: it is no event
	door   session.Door
	goType reflect.Type
	all    map[string]bool // occurrences of keywords
	places map[string]bool // where they are
	looked map[string]bool // places where something was tried
	hit    map[string]bool // those that were violated alone, and refused
	tried  int
}

// newAgreement begins with a message that has all its fields.
func newAgreement(t *testing.T, s *schemas, typ string) *agreement {
	t.Helper()
	a := &agreement{
		grammar: grammar{schemas: s, typ: typ, inner: map[string][]located{}, sampled: map[string][]any{}},
		goType:  reflect.TypeFor[session.InstallRecord](), all: map[string]bool{}, places: map[string]bool{}, looked: map[string]bool{}, hit: map[string]bool{},
	}
	name := "Envelope"
	var text []byte
	if slices.Contains(session.EventTypes(), typ) {
		a.start = reach(t, typ)
		doors := s.doors(typ)
		a.door = doors[len(doors)-1] // what clients may say operators may say in full
		body := full(t, typ, a.start)
		a.goType = reflect.TypeOf(body)
		packed, err := codec.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		data, err := codec.ToJSON(packed)
		if err != nil {
			t.Fatal(err)
		}
		text = jsonOf(t, map[string]any{"v": 1, "id": "01K", "type": typ, "at": 1, "by": "ann", "data": json.RawMessage(data)})
	} else {
		name = typ
		packed, err := codec.Marshal(fullInstall(t))
		if err != nil {
			t.Fatal(err)
		}
		if text, err = codec.ToJSON(packed); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if a.base, err = jsonschema.UnmarshalJSON(bytes.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	a.root = a.applied(located{file: name, node: s.docs[name]})
	a.strings = textsOf(a.base)
	if a.start != nil {
		a.strings = append([]string{a.start.install.Registry.Ref(0).String()}, a.strings...)
	}
	if err := a.occurrences("", a.root, nil, a.all); err != nil {
		t.Fatal(err)
	}
	for name := range a.all {
		at, _, _ := strings.Cut(name, " <- ")
		a.places[at] = true
	}
	return a
}

// told is what becomes of a message: the code of its refusal, empty if it was
// taken or changed nothing, and what else was said.
type told struct {
	code   session.Rejection
	detail string
}

func (o told) byShape() bool { return slices.Contains(byShape, o.code) }

// fold says what becomes of a payload.
func (a *agreement) fold(payload []byte) told {
	if a.start == nil {
		if _, err := session.ParseInstall(payload); err != nil {
			return told{session.RejectInvalidData, err.Error()}
		}
		return told{}
	}
	f := *a.start
	var err error
	if f.state, err = session.Restore(f.state.Snapshot(), pinned{f.install}); err != nil {
		panic(err)
	}
	_, notices := f.fold(a.door, payload)
	for _, n := range notices {
		switch said := n.Data.(type) {
		case session.EventRejected:
			return told{said.Code, said.Detail}
		case spaces.WorkspaceFailed:
			if said.Code == session.CodeBadSettlement {
				return told{session.CodeBadSettlement, said.Detail}
			}
		case session.SchedulePaused:
			if said.Code == session.CodeBadSettlement {
				return told{session.CodeBadSettlement, said.Detail}
			}
		case session.RunFinished:
			if said.Code == session.CodeBadSettlement {
				return told{session.CodeBadSettlement, said.Detail}
			}
		}
	}
	if f.bad(notices) || f.badAttempt(payload) {
		return told{code: session.CodeBadSettlement, detail: f.why()}
	}
	return told{}
}

// why returns what was wrong with a settlement that ended no run.
func (f *folding) why() string {
	if t := f.state.Turn; t != nil && t.Step != nil && t.Step.Code == session.CodeBadSettlement {
		return t.Step.Detail.String()
	}
	for _, it := range f.state.Items {
		if it.Code == session.CodeBadSettlement {
			return it.Detail.String()
		}
	}
	return ""
}

// pinned is the source of a session that has one install record.
type pinned struct{ install *session.Install }

func (p pinned) Install(codec.Hash) (*session.Install, error) { return p.install, nil }
func (p pinned) Registry(uint64, codec.Hash) (*planner.Registry, error) {
	return nil, errors.New("there is none")
}
func (p pinned) Space(uint64, codec.Hash) (*space.Manifest, error) { return stagedManifest(), nil }

// try compares what schema and fold make of a message, and returns what they
// disagree in. shape demands that what the schema refuses is refused by shape.
func (a *agreement) try(message any, shape bool) (outcome told, complaint string) {
	a.tried++
	payload, err := json.Marshal(message)
	if err != nil {
		return told{}, err.Error()
	}
	if packed, err := packedOf(message); err == nil && a.tried%2 == 0 {
		payload = packed
	}
	outcome = a.fold(payload)
	plain := a.plain(message, a.root, a.goType, "")
	bad := a.refused(plain)
	if len(bad) == 0 {
		if outcome.byShape() && !a.unsaid(outcome) {
			return outcome, fmt.Sprintf("the schema takes it, the fold refuses it: %s: %s", outcome.code, outcome.detail)
		}
		return outcome, ""
	}
	if !reflect.DeepEqual(plain, message) {
		if exact := a.refused(message); len(exact) == 1 {
			bad = exact // of what was left out, more may be missing
		}
	}
	named := !slices.ContainsFunc(bad, func(all []string) bool { return !strings.Contains(all[0], "/"+partsDir+"/Names.json#/$defs/") })
	switch {
	case outcome.code == "" && a.lenient(bad), named && slices.Contains(byName, outcome.code):
		outcome.code = session.RejectInvalidData // as good as that
	case outcome.code == "":
		return outcome, fmt.Sprintf("the fold takes it, the schema refuses it: %s", bad)
	case shape && !outcome.byShape() && !slices.Contains(byName, outcome.code): // it may be looked up first
		return outcome, fmt.Sprintf("the schema refuses it (%s), the fold by another thing than its shape: %s: %s", bad, outcome.code, outcome.detail)
	}
	if len(bad) == 1 && outcome.byShape() {
		for _, hit := range bad[0] {
			a.hit[a.known(hit)] = true
		}
	}
	return outcome, ""
}

// lenient are the ways in which the fold takes what the schema refuses: a wake
// has come, whatever else its settlement says.
func (a *agreement) lenient(bad [][]string) bool {
	return a.typ == session.TypeWakeSettled && !slices.ContainsFunc(bad, func(all []string) bool { return !strings.HasPrefix(all[0], "/data <- ") })
}

// refused returns what of a message its schema refuses, lengths by bytes.
func (a *agreement) refused(message any) [][]string {
	schema := a.compiled[a.root[0].file]
	if bad := violations(schema.Validate(message)); len(bad) > 0 || isASCII(message) {
		return bad
	}
	var bad [][]string
	for _, all := range violations(schema.Validate(byBytes(message))) {
		if strings.HasSuffix(all[0], " maxLength") {
			bad = append(bad, all)
		}
	}
	return bad
}

// unsaid reports whether a refusal is one that a schema can't tell.
func (a *agreement) unsaid(o told) bool {
	for text := range unsaid {
		if strings.Contains(o.detail, text) {
			return true
		}
	}
	return false
}

// known returns the name of an occurrence that occurrences found: a field
// without a name of its own is *.
func (a *agreement) known(name string) string {
	if a.all[name] {
		return name
	}
	at, rest, _ := strings.Cut(name, " <- ")
	for known := range a.all { // the library loses the place of an object whose names are at fault
		if strings.Contains(rest, "/propertyNames ") && strings.HasSuffix(known, " <- "+rest) {
			return known
		}
	}
	if i := strings.LastIndexByte(at, '/'); i >= 0 && a.all[at[:i]+"/* <- "+rest] {
		return at[:i] + "/* <- " + rest
	}
	return name
}

// agreeing are the messages that schemas and readers must agree in.
func agreeing() []string { return append(session.EventTypes(), "InstallRecord") }

// inviolable is what no message can violate, or not alone: an optional text that is
// empty counts as absent; no registry has needs at all; a pack's grant may lack one
// of three; what a pack may bring is listed twice; a reply with an output does not
// decline.
var inviolable = regexp.MustCompile(`/ApprovalDecided\.json#/properties/arguments minLength$|/ReplyGiven\.json#/properties/declined |/ToolSpec\.json#/properties/needs|/Grant\.json#/then/anyOf/|^/data/grant/may/\* .* type$`)

// onceInside takes from the places of later messages what lies deeper in a schema
// that an earlier one has, too: the checks of one type are one function. The
// object itself and its fields are tried in each message.
func onceInside(all []*agreement) {
	tried := map[string]bool{} // urls of keywords
	for _, a := range all {
		first, own := map[string]bool{}, map[string]bool{}
		for name := range a.all {
			at, keyword, _ := strings.Cut(name, " <- ")
			if !tried[keyword] {
				first[at] = true
			}
			if strings.HasPrefix(keyword, schemaBase+a.typ+".json#") || strings.HasPrefix(keyword, schemaBase+"Envelope.json#") {
				own[at] = true
			}
		}
		for at := range a.places {
			if !first[at] && !own[at] && !own[path.Dir(at)] {
				delete(a.places, at)
			}
		}
		for name := range a.all {
			_, keyword, _ := strings.Cut(name, " <- ")
			tried[keyword] = true
		}
	}
}

// TestSchemasRejectViolations: every keyword of every schema is violated, alone, at
// every place (but see onceInside), and the fold refuses that by its shape; and what
// is drawn on the way and violates nothing is not refused by its shape.
func TestSchemasRejectViolations(t *testing.T) {
	t.Parallel()
	s := readSchemas(t)
	var all []*agreement
	for _, typ := range agreeing() {
		all = append(all, newAgreement(t, s, typ))
	}
	onceInside(all)
	for _, a := range all {
		t.Run(a.typ, func(t *testing.T) {
			t.Parallel()
			if outcome, complaint := a.try(a.base, true); outcome.code != "" || complaint != "" {
				t.Fatalf("%s: %s %s", outcome.code, outcome.detail, complaint)
			}
			for bases := []any{a.base}; len(bases) > 0; bases = bases[1:] {
				for _, p := range a.fresh(bases[0]) {
					for _, v := range a.variants(p) {
						changed := p.set(v)
						if a.isOther(changed) {
							continue
						}
						outcome, complaint := a.try(changed, true)
						if complaint != "" {
							t.Errorf("%s = %.200s: %s", p.at, jsonOf(t, v), complaint)
						} else if (outcome.code == "" || outcome.code == session.RejectNotPermitted || strings.HasPrefix(outcome.detail, "grant.manifest: is only")) && a.leads(changed) {
							bases = append(bases, changed)
						}
					}
				}
			}
			for name := range a.all {
				if at, _, _ := strings.Cut(name, " <- "); !a.places[at] {
					continue
				}
				if !a.hit[name] && !inviolable.MatchString(name) {
					t.Errorf("nothing violated %s", name)
				}
			}
			t.Logf("%d messages, %d places", a.tried, len(a.places))
		})
	}
}

// isOther reports whether a message is of another type.
func (a *agreement) isOther(message any) bool {
	object, _ := message.(map[string]any)
	typ, _ := object["type"].(string)
	return a.start != nil && typ != a.typ && slices.Contains(session.EventTypes(), typ)
}

// spotsOf returns the places of a message that schemas speak of.
func (a *agreement) spotsOf(message any) []spot {
	return a.spots("", message, a.root, func(v any) any { return v })
}

// leads reports whether a message has places that nothing was tried at.
func (a *agreement) leads(message any) bool {
	return slices.ContainsFunc(a.spotsOf(message), func(p spot) bool { return a.places[p.at] && !a.looked[p.at] })
}

// fresh returns the places of a message that nothing was tried at, and what they
// stand in: at most two that are alike. From then on they were tried.
func (a *agreement) fresh(message any) (all []spot) {
	spots, alike := a.spotsOf(message), map[string]int{}
	for _, p := range spots {
		alike[p.at]++
		if alike[p.at] <= 2 && slices.ContainsFunc(spots, func(q spot) bool {
			return a.places[q.at] && !a.looked[q.at] && (q.at == p.at || path.Dir(q.at) == p.at)
		}) {
			all = append(all, p)
		}
	}
	for _, p := range all {
		a.looked[p.at] = true
	}
	return all
}
