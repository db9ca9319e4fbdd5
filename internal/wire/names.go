package wire

import (
	"maps"
	"strings"
)

// names are the definitions of parts/Names.json: the forms of names. None of them is a
// message. A text's length is in bytes. form fills in the classes.
var names = map[string]node{
	"session":    {"pattern": oneToken, "description": "A session: a token of a subject."},
	"token":      {"pattern": oneToken, "description": "A token of a subject: a provider, an executor, a profile."},
	"tool_id":    {"pattern": dotted, "maxLength": 128, "description": "A tool of a registry: tokens joined by dots."},
	"tool_name":  {"pattern": oneToken, "description": "What a model calls a tool."},
	"tool":       {"pattern": dotted, "maxLength": 128, "description": "A tool in a list: its tool_id or its tool_name. The registry must have the tool."},
	"hash":       {"pattern": "^[0-9a-f]{64}$", "description": "The SHA-256 of what it names. plan_hash, toolset, and the hash, chain and leaf of a View and a Snapshot are BLAKE2b-256. In JSON 64 lower-case hex digits, in msgpack a binary of 32 bytes (except plan_hash of a settlement, which is text)."},
	"blob":       {"pattern": "^sha256-[0-9a-f]{64}$", "description": "A blob: the name of its object in the store REFOLD_BLOBS."},
	"turn":       {"pattern": "^" + turn + "$", "description": "A turn of a run: r and the run, t and the turn. Both count from 1."},
	"generation": {"pattern": "^" + turn + "(a([2-9]|10)|k[1-9][0-9]{0,2})?$", "description": "A generation: its turn, and from the second attempt on a and the number of the attempt; of a compaction k and its number in the turn."},
	"call":       {"pattern": "^" + turn + call + "$", "description": "A tool call: its turn, c, and its position in the batch from 0."},
	"step":       {"pattern": "^" + turn + "s$", "description": "A step that an outside hook decides: its turn, and s."},
	"space":      {"pattern": oneToken, "description": "A space. Three names are reserved: refold, host and none."},
	"id":         {"pattern": oneToken, "description": "A prompt pack, catalog or context group of a space. One name is reserved: none."},
	"skill":      {"pattern": "^[a-z0-9]+(-[a-z0-9]+)*$", "maxLength": 64, "description": "A skill: lower-case letters, digits, and single hyphens between them."},
	"sync":       {"pattern": "^y[1-9][0-9]{0,9}$", "description": "A sync: y and its number from 1."},
	"wake":       {"pattern": "^w[1-9][0-9]{0,9}$", "description": "A wake: w and its number from 1."},
	"effect":     {"pattern": "^(" + turn + "(a([2-9]|10)|k[1-9][0-9]{0,2}|" + call + ")?|w[1-9][0-9]{0,9})$", "description": "A generation, a call or a wake that a session withdraws."},
	"target":     {"pattern": "^(" + classPlace + ")/[A-Za-z0-9_-]{1,64}$", "description": "Class and target of effects: class/target."},
	"run":        {"type": "integer", "minimum": 1, "maximum": int64(1<<32 - 1), "description": "The number of a run; runs count from 1."},
}

const (
	classPlace = "<classes>" // stands for the classes of effects, with | between

	oneToken = "^[A-Za-z0-9_-]{1,64}$"
	dotted   = "^[A-Za-z0-9_-]+([.][A-Za-z0-9_-]+)*$"
	turn     = "r[1-9][0-9]{0,9}t[1-9][0-9]{0,9}"
	call     = "c([0-9]|[1-5][0-9]|6[0-3])"
)

// form returns the definition of a name, nil if there is none.
func (s *source) form(name string) (node, error) {
	of := maps.Clone(names[name])
	pattern, _ := of["pattern"].(string)
	if !strings.Contains(pattern, classPlace) {
		return of, nil
	}
	p, err := s.load(module + "/" + sessionDir)
	if err != nil {
		return nil, err
	}
	of["pattern"] = strings.ReplaceAll(pattern, classPlace, strings.Join(p.values("Class"), "|"))
	return of, nil
}

// namesSchema returns the schema of names.
func (s *source) namesSchema() (node, error) {
	defs := node{}
	for name := range names {
		of, err := s.form(name)
		if err != nil {
			return nil, err
		}
		def := node{"type": "string"}
		merge(def, of)
		defs[name] = def
	}
	return node{
		"$schema": dialect, "$id": "Names.json", "title": "Names",
		"description": "The names that messages contain. None of them is a message.", "$defs": defs,
	}, nil
}
