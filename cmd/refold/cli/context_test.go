package cli

// The context of new records, and what people see of a conversation that a model is
// shown in part.

import (
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/llm/provider"
)

func TestInstallGivesAConfigItsContext(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	record := func(config string) string { return file(t, `{"v":1,"rules":1,"tools":[],"config":{`+config+`}}`) }
	known := record(`"provider":"p","model":"gpt-5"`)
	const added = `(?m)^config\.context: \{"tokens": 272000\} is added, for gpt-5; --as-is publishes the record as it is$`
	out, errOut := w.does(0, "install", "--dry-run", known)
	like(t, "dry run", errOut, added)
	like(t, "dry run", out, `^valid: hash [0-9a-f]{64}`)
	out, errOut = w.does(0, "install", known)
	like(t, "published", out, `^published at 2: `)
	like(t, "published", errOut, added)
	shown, _ := w.does(0, "install", "--show")
	like(t, "shown", shown, `(?s)"config": \{\s*"context": \{\s*"tokens": 272000\s*\},\s*"model": "gpt-5"`)
	w.prints(0, `nothing published: the record at 2 is the same`, "install", known)
	w.prints(0, `^nothing published: the record at 2 is the same`, "install", file(t, shown))

	// As it is, if that is what the operator wants, or the log has it.
	w.prints(0, `^published at 3: `, "install", known, "--as-is")
	w.prints(0, `^nothing published: the record at 3 is the same`, "install", known)
	w.prints(0, `^published at 4: `, "install", record(`"provider":"p","model":"gpt-5","context":{"tokens":9000}`))
	w.prints(0, added, "install", "--dry-run", record(`"provider":"p","model":"gpt-5","context":{}`)) // the built-in record's

	// A model that is not in the table, and a record without a config.
	for _, path := range []string{record(`"provider":"p","model":"mine"`), file(t, `{"v":1,"rules":1,"tools":[]}`)} {
		_, errOut := w.does(0, "install", path)
		like(t, "unknown", errOut, `^$`)
	}
}

// The record of refold dev has a context if a provider serves the model.
func TestRecordOfDevHasAContext(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		provider, model string
		want            *session.ContextConfig
	}{
		{provider.All[0].Kind, "gpt-4o", &session.ContextConfig{Tokens: 111_616}},
		{provider.All[1].Kind, "llama3.1", &session.ContextConfig{}},
		{"scripted", "scripted", nil},
	} {
		record, err := withConfig(c.provider, c.model)
		bustest.OK(t, err)
		install, err := session.ParseInstall(record)
		bustest.OK(t, err)
		got := install.Record.Config.Context
		if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s of %s: got %+v, want %+v", c.model, c.provider, got, c.want)
		}
	}
}

func TestReadersTellWhatLeftTheWindow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.does(0, "install", file(t, `{"v":1,"rules":1,"config":{"provider":"p","model":"m","context":{"tokens":1000,"keep_turns":1}},"tools":[
		{"tool_id":"a.look","tool_name":"look","args_schema":{"type":"object"},"executor":{"kind":"effect","target":"a"},"parallel_safe":true,"access":"read"}]}`))
	w.does(0, "run", "s1", "look twice", "--no-follow")
	w.waits("s1", 1)
	for _, turn := range []string{"r1t1", "r1t2"} {
		w.says(session.DoorLLM, "s1", session.TypeToolCallsObserved, `{"effect":"`+turn+`","calls":[{"tool_name":"look"}]}`)
		w.reaches("s1", "a call is open", func(v session.View) bool { return v.WaitsFor == "tools" && v.Turn.Effect == turn })
		w.says(session.DoorTool, "s1", session.TypeToolCallSettled, `{"effect":"`+turn+`c0","status":"succeeded","output":{"text":"`+strings.Repeat("x", 1_200)+`"}}`)
		w.reaches("s1", "the next turn", func(v session.View) bool { return v.WaitsFor == "model" && v.Turn.Effect != turn })
	}
	const left = `rom here on the model is not shown 1 result of earlier calls any more: about \d+ tokens, before \d+`
	results := "(?s)Result of `look` r1t1c0.*\nx{1000}x{200}\n.*Result of `look` r1t2c0.*\nx{1000}x{200}\n```\n\n"
	w.prints(0, results+`\*F`+left+`\.\*\n$`, "transcript", "s1")
	w.prints(0, `\n\{"kind":"window","run":1,"seq":\d+,"time":\d+,"status":"ContextCleared","detail":"f`+left+`"\}\n$`, "transcript", "s1", "--json")
	w.prints(0, `^\[\n\{"role":"user",.*\n\{"role":"assistant",.*\n\{"role":"tool","content":"x{1000}x*".*\n\{"role":"assistant",.*\n\{"role":"tool",.*\n\]\n$`, "transcript", "s1", "--format", "openai")
	w.prints(0, `run 1: f`+left, "replay", "s1", "--events")

	// The window is what the bridge shows the model.
	const cleared = `\[The result of r1t1c0, 1200 bytes of look, is cleared; read_result reads it again\.\]`
	w.prints(0, `before the transcript\n`, "prompt", "s1")
	w.prints(0, `^turn r1t3 of session s1: .*\n\n--- message 1, user, 10 bytes\nlook twice\n\n--- message 2, assistant, 0 bytes\ncall r1t1c0 of look: \{\}\n`+
		`\n--- message 3, tool r1t1c0, \d+ bytes\n`+cleared+`\n\n--- message 4, assistant, 0 bytes\ncall r1t2c0 of look: \{\}\n`+
		`\n--- message 5, tool r1t2c0, 1200 bytes\nx{1000}x{200}\n$`, "prompt", "s1", "--window")
	w.prints(0, `\n--- message 3, tool r1t1c0, 1200 bytes\nx{1000}x{200}\n$`, "prompt", "s1", "r1t2", "--window")
	w.prints(0, `(?m)^\{"session":"s1","turn":"r1t3","part":"message 3, tool r1t1c0, \d+ bytes","text":"`+cleared+`"\}$`, "prompt", "s1", "--window", "--json")

	// A summary takes the place of what left, and stands there.
	w.settle("s1", "r1t3", map[string]any{"text": map[string]any{"text": "Done."}})
	w.reaches("s1", "its run is over", func(v session.View) bool { return v.Run == nil && v.Last != nil })
	w.does(0, "compact", "s1", "--keep-turns", "0")
	w.does(0, "run", "s1", "again", "--no-follow")
	w.reaches("s1", "a summary is asked", func(v session.View) bool {
		return slices.ContainsFunc(v.Open, func(e session.ViewEffect) bool { return e.Effect == "r2t1k1" })
	})
	w.settle("s1", "r2t1k1", map[string]any{"text": map[string]any{"text": "They looked twice."}})
	w.reaches("s1", "its turn is asked", turnOf("r2t1"))
	const place = `rom here on the model is shown a summary \(event \d+\) in the place of 6 earlier messages: about \d+ tokens, before \d+`
	w.prints(0, `(?s)Done\..*\*F`+place+`\.\*\n\n\*\*Summary\*\*\n\n> They looked twice\.\n`, "transcript", "s1")
	w.prints(0, `"kind":"window",.*"text":"They looked twice\.","status":"ContextCompacted","detail":"f`+place+`"`, "transcript", "s1", "--json", "--run", "2")
	w.prints(0, `(?s)\n--- message 1, user, \d+ bytes\n\[This conversation began earlier.*They looked twice\..*\n--- message 2, user, 5 bytes\nagain\n$`, "prompt", "s1", "--window")
}
