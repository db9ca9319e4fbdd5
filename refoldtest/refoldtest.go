// Package refoldtest tests agents without a key and without a network: a runtime in a
// directory of the test, and models that say what the test says.
//
//	func TestHelper(t *testing.T) {
//		helper, err := refoldtest.Open(t).Agent("helper", refold.Tools(weather), refold.Model(refoldtest.Model(
//			refoldtest.Calls(refoldtest.To("weather_get", `{"city":"Bergen"}`)),
//			refoldtest.Say("It rains."),
//		)))
//		if err != nil {
//			t.Fatal(err)
//		}
//		if got := refoldtest.Ask(t, helper, "Weather in Bergen?"); got.Calls[0].Status != "succeeded" {
//			t.Errorf("got %+v", got)
//		}
//	}
//
// The runtime is a real one. Package bridge/bridgetest kills a bridge in the middle of a
// call.
package refoldtest

import (
	"context"
	"io"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/refold/refold"
	"github.com/refold/refold/bridge/bridgetest"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/embedded"
	"github.com/refold/refold/internal/llm/recorded"
)

// T is the part of *testing.T that this package uses.
type T = bridgetest.T

// patience is how long Ask waits for an answer.
const patience = time.Minute

// Open opens a runtime in a new directory, and closes it when the test ends.
func Open(t T, o ...refold.Option) *refold.Runtime {
	t.Helper()
	rt, err := refold.Open(t.Context(), Dir(t.TempDir()), append([]refold.Option{refold.Grace(time.Second)}, o...)...)
	if err != nil {
		t.Fatalf("open a runtime: %v", err)
	}
	t.Cleanup(func() {
		if err := rt.Close(); err != nil {
			t.Errorf("close the runtime: %v", err)
		}
	})
	return rt
}

// Dir is embedded.Dir for tests: no test outlives a power failure, so the log syncs
// rarely.
func Dir(path string) refold.Source { return embedded.Dir(path, embedded.SyncInterval(time.Minute)) }

// Ask asks a new session of an agent, and returns the answer. Any other end, and none
// within a minute, fails the test.
func Ask(t T, a *refold.Agent, text string) *refold.Answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	run, err := a.Session(ulid.Make().String()).Ask(ctx, text)
	var answer *refold.Answer
	if err == nil {
		answer, err = run.Wait(ctx)
	}
	if err != nil {
		t.Fatalf("ask %s %q: %v", a.Name(), text, err)
	}
	return answer
}

// Turn is one turn of a Model.
type Turn = bridgetest.Turn

// Say is a turn that answers with text, which ends the run.
func Say(text string) Turn { return bridgetest.Say(text) }

// Calls is a turn that calls tools, all in one batch.
func Calls(calls ...executor.AnswerCall) Turn { return bridgetest.Calls(calls...) }

// To is a call of a tool, by the name that the model knows. arguments are JSON text, or
// a value that encoding/json encodes.
func To(tool string, arguments any) executor.AnswerCall { return bridgetest.To(tool, arguments) }

// Fail is a turn that fails: the run ends failed, with this code.
func Fail(code, detail string) Turn { return bridgetest.Fail(code, detail) }

// providerName is the provider of the models of this package.
const providerName = "refoldtest"

// Model is a model of these turns: of each session the first request gets the first one,
// whatever process asks. A session that needs more fails with turns_ended.
func Model(turns ...Turn) refold.ModelRef {
	return ref("turns", func() (executor.Model, error) { return bridgetest.Model(turns...), nil })
}

// Recorded is a model that answers as recorded: conversations in the form of OpenAI's
// chat API, {"id", "messages"}, one a line. A session gets the conversation of its own
// id. name is the file's name in errors.
func Recorded(name string, from io.Reader) refold.ModelRef {
	return ref(recorded.ModelName, func() (executor.Model, error) {
		recording, err := recorded.Read(name, from)
		if err != nil {
			return nil, err
		}
		return recorded.NewModel(recording), nil
	})
}

func ref(name string, open func() (executor.Model, error)) refold.ModelRef {
	return refold.ModelRef{Provider: providerName, Model: name, Open: open, Account: ulid.Make().String()}
}
