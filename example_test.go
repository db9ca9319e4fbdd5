package refold_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/refold/refold"
	"github.com/refold/refold/embedded"
	"github.com/refold/refold/refoldtest"
	"github.com/refold/refold/tools/host"
)

type city struct {
	Name string `json:"name"`
}

func weather(_ context.Context, in city) (string, error) { return "rain in " + in.Name, nil }

// A program that owns an agent. With a real model it is the same, but for the model:
// refold.Model(openai.Model("gpt-4.1")).
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "refold-example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)

	rt, err := refold.Open(ctx, embedded.Dir(dir))
	if err != nil {
		panic(err)
	}
	defer rt.Close()
	helper, err := rt.Agent("helper",
		refold.Model(refoldtest.Model(refoldtest.Calls(refoldtest.To("weather_get", city{"Bergen"})), refoldtest.Say("It rains."))),
		refold.System("You know the weather."),
		refold.Tools(refold.Func("weather.get", weather, refold.RetrySafe())))
	if err != nil {
		panic(err)
	}
	run, err := helper.Session("hello").Ask(ctx, "Weather in Bergen?", refold.Submission("order-7"))
	if err != nil {
		panic(err)
	}
	for u, err := range run.Updates(ctx) {
		if err != nil {
			panic(err)
		}
		if u, ok := u.(refold.ToolEnded); ok {
			fmt.Println(u.Call.Tool, u.Call.Status)
		}
	}
	answer, err := run.Wait(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println(answer.Text)
	// Output:
	// weather_get succeeded
	// It rains.
}

// A call that waits for a person: the answer goes on when the person has decided.
func ExampleSession_Approve() {
	ctx, t := exampleContext()
	defer t.end()
	helper, err := refoldtest.Open(t).Agent("helper",
		refold.Model(refoldtest.Model(refoldtest.Calls(refoldtest.To("weather_get", city{"Bergen"})), refoldtest.Say("It rains."))),
		refold.Tools(refold.Func("weather.get", weather, refold.NeedsApproval())))
	if err != nil {
		panic(err)
	}
	s := helper.Session("hello")
	run, err := s.Ask(ctx, "Weather in Bergen?")
	if err != nil {
		panic(err)
	}
	for u, err := range run.Updates(ctx) {
		if err != nil {
			panic(err)
		}
		if _, waits := u.(refold.ApprovalAsked); !waits {
			continue
		}
		calls, err := s.Approvals(ctx)
		if err != nil {
			panic(err)
		}
		for _, call := range calls {
			fmt.Println("approve", call.ToolName, call.Arguments)
			if err := s.Approve(ctx, call); err != nil {
				panic(err)
			}
		}
	}
	answer, err := run.Wait(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println(answer.Text)
	// Output:
	// approve weather_get {"name":"Bergen"}
	// It rains.
}

// Tools that are no Go functions: here the built-in ones, on a directory of this program.
func ExampleToolsFrom() {
	_, t := exampleContext()
	defer t.end()
	work := t.TempDir()
	writes := refoldtest.Calls(refoldtest.To("write_file", map[string]string{"path": "list.txt", "content": "tea"}))
	helper, err := refoldtest.Open(t).Agent("helper",
		refold.Model(refoldtest.Model(refoldtest.Calls(refoldtest.To("open_session", nil)), writes, refoldtest.Say("It is written down."))),
		refold.ToolsFrom(host.Dir(work, host.Only("read_file", "write_file"))))
	if err != nil {
		panic(err)
	}
	for _, call := range refoldtest.Ask(t, helper, "Write down: tea.").Calls {
		fmt.Println(call.Tool, call.Status)
	}
	files, err := filepath.Glob(filepath.Join(work, "*", "*.txt"))
	if err != nil {
		panic(err)
	}
	fmt.Println(filepath.Base(files[0]))
	// Output:
	// open_session succeeded
	// write_file succeeded
	// list.txt
}

type forecastOf struct {
	City string `json:"city"`
	Rain int    `json:"rain" minimum:"0" maximum:"100"`
}

// An answer that is a Go value.
func ExampleReplyAs() {
	ctx, t := exampleContext()
	defer t.end()
	helper, err := refoldtest.Open(t).Agent("helper", refold.Model(refoldtest.Model(refoldtest.Say(`{"city":"Bergen","rain":90}`))))
	if err != nil {
		panic(err)
	}
	run, err := helper.Session("hello").Ask(ctx, "Weather in Bergen?", refold.ReplyAs[forecastOf]())
	if err != nil {
		panic(err)
	}
	answer, err := run.Wait(ctx)
	if err != nil {
		panic(err)
	}
	forecast, err := refold.Decode[forecastOf](answer)
	if err != nil {
		panic(err)
	}
	fmt.Println(forecast.City, forecast.Rain)
	// Output: Bergen 90
}

// A reader in another place, or of another day, goes on where it was.
func ExampleSession_Updates() {
	ctx, t := exampleContext()
	defer t.end()
	rt := refoldtest.Open(t)
	helper, err := rt.Agent("helper", refold.Model(refoldtest.Model(refoldtest.Say("It rains."))))
	if err != nil {
		panic(err)
	}
	run, err := helper.Session("hello").Ask(ctx, "Weather in Bergen?")
	if err != nil {
		panic(err)
	}
	position := ""
	for u, err := range run.Updates(ctx) {
		if err != nil {
			panic(err)
		}
		if _, started := u.(refold.RunStarted); started {
			position = u.Position()
			break
		}
	}
	for u, err := range rt.Session("hello").Updates(ctx, position) {
		if err != nil {
			panic(err)
		}
		switch u := u.(type) {
		case refold.Text:
			fmt.Println(u.Text)
		case refold.RunEnded:
			fmt.Println("run", u.Run, u.Lifecycle)
			return
		}
	}
	// Output:
	// It rains.
	// run 1 completed
}

// A file that a program received: the model is shown it with the request.
func ExampleNewFile() {
	ctx, t := exampleContext()
	defer t.end()
	helper, err := refoldtest.Open(t).Agent("helper", refold.Model(refoldtest.Model(refoldtest.Say("Three lines."))))
	if err != nil {
		panic(err)
	}
	upload := strings.NewReader("one\ntwo\nthree\n") // such as the body of a request
	file, err := refold.NewFile(upload, "list.txt", "text/plain")
	if err != nil {
		panic(err)
	}
	run, err := helper.Session("hello").Ask(ctx, "How long is the list?", refold.Files(file))
	if err != nil {
		panic(err)
	}
	answer, err := run.Wait(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println(answer.Text)
	// Output: Three lines.
}

// The conversation, for people and in the forms of providers' APIs.
func ExampleSession_Transcript() {
	ctx, t := exampleContext()
	defer t.end()
	helper, err := refoldtest.Open(t).Agent("helper", refold.Model(refoldtest.Model(refoldtest.Say("It rains."))))
	if err != nil {
		panic(err)
	}
	s := helper.Session("hello")
	run, err := s.Ask(ctx, "Weather in Bergen?")
	if err != nil {
		panic(err)
	}
	if _, err := run.Wait(ctx); err != nil {
		panic(err)
	}
	transcript, err := s.Transcript(ctx)
	if err != nil {
		panic(err)
	}
	for _, e := range transcript.Entries {
		fmt.Println(strings.TrimSpace(e.Kind + " " + e.Text))
	}
	fmt.Print(string(transcript.OpenAI()))
	// Output:
	// run
	// input Weather in Bergen?
	// text It rains.
	// end
	// [
	// {"role":"user","content":"Weather in Bergen?"},
	// {"role":"assistant","content":"It rains."}
	// ]
}

// A run that its budget paused goes on with a larger one.
func ExampleWithBudget() {
	ctx, t := exampleContext()
	defer t.end()
	helper, err := refoldtest.Open(t).Agent("helper",
		refold.Config(refold.RunConfig{Budget: &refold.Budget{Tokens: 1}}),
		refold.Model(refoldtest.Model(refoldtest.Say("It rains."))))
	if err != nil {
		panic(err)
	}
	s := helper.Session("hello")
	run, err := s.Ask(ctx, "Weather in Bergen?")
	if err != nil {
		panic(err)
	}
	for u, err := range run.Updates(ctx) {
		if err != nil {
			panic(err)
		}
		switch u := u.(type) {
		case refold.RunPaused:
			fmt.Println("the budget is spent")
			if err := s.Resume(ctx, refold.WithBudget(refold.Budget{Tokens: 100_000})); err != nil {
				panic(err)
			}
		case refold.Text:
			fmt.Println(u.Text)
		}
	}
	// Output:
	// the budget is spent
	// It rains.
}

// exampleT is what refoldtest needs of a test.
type exampleT struct {
	ctx      context.Context
	cleanups []func()
}

func exampleContext() (context.Context, *exampleT) {
	ctx := context.Background()
	return ctx, &exampleT{ctx: ctx}
}

func (t *exampleT) end() {
	for i := len(t.cleanups) - 1; i >= 0; i-- {
		t.cleanups[i]()
	}
}

func (t *exampleT) Helper()                        {}
func (t *exampleT) Context() context.Context       { return t.ctx }
func (t *exampleT) Cleanup(f func())               { t.cleanups = append(t.cleanups, f) }
func (t *exampleT) Errorf(format string, a ...any) { fmt.Printf(format+"\n", a...) }
func (t *exampleT) Fatalf(format string, a ...any) { panic(fmt.Sprintf(format, a...)) }
func (t *exampleT) TempDir() string {
	dir, err := os.MkdirTemp("", "refold-example")
	if err != nil {
		panic(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
