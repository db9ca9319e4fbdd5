package scenario

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// Kind is what a step does.
type Kind string

const (
	KindInstall Kind = "install" // Payload is the record; nil is the built-in one
	KindEvent   Kind = "event"   // publish Payload through Door
	KindClock   Kind = "clock"   // move the time by Clock
	KindShow    Kind = "show"    // print Show
)

// Action is the parsed input of a step.
type Action struct {
	Kind    Kind
	Door    session.Door
	Payload []byte // JSON, except for `bytes`
	Settles string // the effect or batch that a settlement names
	Clock   int64  // milliseconds
	Show    string // the argument of Show
}

// Read parses the input of a step. reg has the tools of calls with short arguments;
// nil if there is none yet. view is the session's view before the step: it gives
// the plan hash of a batch settlement, also for plan_hash=plan, and the args_hash
// of a decision. Without a view, a batch or such a call these are empty.
func Read(input string, reg *planner.Registry, view ...session.View) (Action, error) {
	first, rest := cutWord(input)
	switch first {
	case "install":
		if rest == "builtin" {
			return Action{Kind: KindInstall}, nil
		}
		return Action{Kind: KindInstall, Payload: []byte(rest)}, nil
	case "clock":
		ms, err := parseSpan(rest)
		return Action{Kind: KindClock, Clock: ms}, err
	case "show":
		return Action{Kind: KindShow, Show: rest}, nil
	case "event", "bytes":
		return readRaw(first, rest)
	case "settle":
		if effect, said := cutWord(rest); strings.HasPrefix(effect, "y") {
			return readSyncSettlement(effect, said, view)
		}
		return readSettlement(rest, reg, planOf(view))
	case "configure":
		return event(session.DoorCtl, session.TypeSessionConfigured, json.RawMessage(rest))
	case "registry":
		return readRegistry(rest)
	case "schedule":
		return readSchedule(rest, view)
	case "fire":
		return readFired(rest, view)
	case "approve", "deny":
		return readDecision(first, rest, view)
	case "reply":
		return readReply(rest, view)
	}
	return readRequest(first, rest)
}

func readRaw(verb, rest string) (Action, error) {
	door, payload := cutWord(rest)
	a := Action{Kind: KindEvent, Door: session.Door(door), Payload: []byte(payload)}
	if verb == "bytes" {
		b, err := hex.DecodeString(payload)
		if err != nil {
			return Action{}, fmt.Errorf("scenario: bytes: %w", err)
		}
		a.Payload = b
		return a, nil
	}
	var env struct {
		Data struct {
			Effect string `json:"effect"`
			Batch  string `json:"batch"`
		} `json:"data"`
	}
	if json.Unmarshal(a.Payload, &env) == nil {
		a.Settles = cmp.Or(env.Data.Effect, env.Data.Batch)
	}
	return a, nil
}

func planOf(view []session.View) string {
	if len(view) == 0 || view[0].Batch == nil {
		return ""
	}
	return view[0].Batch.PlanHash
}

// readRegistry parses a registry: the built-in one, or JSON.
func readRegistry(rest string) (Action, error) {
	if rest != "builtin" {
		return event(session.DoorCtl, session.TypeToolRegistrySet, json.RawMessage(rest))
	}
	packed, err := codec.Marshal(planner.Builtin())
	if err != nil {
		return Action{}, fmt.Errorf("scenario: registry builtin: %w", err)
	}
	text, err := codec.ToJSON(packed)
	if err != nil {
		return Action{}, fmt.Errorf("scenario: registry builtin: %w", err)
	}
	return event(session.DoorCtl, session.TypeToolRegistrySet, json.RawMessage(text))
}

func event(door session.Door, typ string, data any) (Action, error) {
	payload, err := json.Marshal(struct {
		Type string `json:"type"`
		Data any    `json:"data"`
	}{typ, data})
	return Action{Kind: KindEvent, Door: door, Payload: payload}, err
}

// parseSpan parses a duration: +10m, +1500ms.
func parseSpan(text string) (int64, error) {
	digits := strings.TrimLeft(strings.TrimPrefix(text, "+"), "0123456789")
	n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimPrefix(text, "+"), digits), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("scenario: clock +10m: %w", err)
	}
	switch digits {
	case "ms":
		return n, nil
	case "s":
		return n * 1000, nil
	case "m":
		return n * 60_000, nil
	case "h":
		return n * 3_600_000, nil
	}
	return 0, fmt.Errorf("scenario: clock: ms, s, m or h, not %q", digits)
}

func span(ms int64) string {
	sign := "+"
	if ms < 0 {
		sign, ms = "-", -ms
	}
	switch {
	case ms != 0 && ms%60_000 == 0:
		return sign + strconv.FormatInt(ms/60_000, 10) + "m"
	case ms%1000 == 0:
		return sign + strconv.FormatInt(ms/1000, 10) + "s"
	}
	return sign + strconv.FormatInt(ms, 10) + "ms"
}
