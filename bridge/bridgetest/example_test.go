package bridgetest_test

import (
	"context"
	"fmt"

	"github.com/refold/refold/bridge/bridgetest"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/bridge/function"
)

// forecast has the arguments of the examples' tool.
type forecast struct {
	City string `json:"city" minLength:"1"`
}

// weather is the tool of the examples.
func weather() *function.Function {
	return function.New("weather.get", func(_ context.Context, in forecast) (string, error) {
		if in.City != "Bergen" {
			return "", &executor.Error{Code: "unknown_city", Detail: "ask for Bergen"}
		}
		return "rain", nil
	}, function.Description("The weather of a city."), function.ReadOnly(), function.RetrySafe())
}

// One call, and its result as the model would be shown it.
func ExampleCall() {
	t, end := newT() // in a test: the *testing.T
	defer end()

	for _, arguments := range []any{forecast{City: "Bergen"}, forecast{City: "Oslo"}, `{"town":"Bergen"}`} {
		r := bridgetest.Call(t, weather(), arguments)
		fmt.Println(r.Status+":", r.Shown)
	}

	// Output:
	// succeeded: rain
	// failed: error: unknown_city: ask for Bergen
	// failed: error: invalid_arguments: there is no "town" here
}

// A whole session with a scripted model.
func ExampleNew() {
	t, end := newT() // in a test: the *testing.T
	defer end()

	s := bridgetest.New(t, bridgetest.Options{
		Tools: []*function.Function{weather()},
		Turns: []bridgetest.Turn{
			bridgetest.Calls(bridgetest.To("weather_get", forecast{City: "Bergen"}), bridgetest.To("weather_set", nil)),
			bridgetest.Say("It rains in Bergen."),
		},
	})
	run := s.Run("What's the weather?")
	fmt.Println(run.Lifecycle, run.Answer)
	for _, call := range run.Calls {
		fmt.Println(call, "->", call.Shown)
	}
	fmt.Println("identical:", s.Replay().Identical())

	// Output:
	// completed It rains in Bergen.
	// r1t1c0 weather_get succeeded -> rain
	// r1t1c1 weather_set ignored tool_unknown -> error: tool_unknown: there is no tool "weather_set"
	// identical: true
}

// A process dies in the middle of a call: the tool is retry-safe, so another
// process executes the call again, with the same idempotency key.
func ExampleSession_Crash() {
	t, end := newT() // in a test: the *testing.T
	defer end()

	var s *bridgetest.Session
	counted := function.New("shop.count", func(ctx context.Context, _ struct{}) (string, error) {
		call, _ := function.CallOf(ctx)
		if s.Starts(call.Effect) == 1 {
			s.Crash(ctx) // the process is gone, as after kill -9
		}
		return "counted with the key " + call.IdempotencyKey, nil
	}, function.RetrySafe())
	s = bridgetest.New(t, bridgetest.Options{
		Tools: []*function.Function{counted},
		Turns: []bridgetest.Turn{bridgetest.Calls(bridgetest.To("shop_count", nil)), bridgetest.Say("Done.")},
	})
	call := s.Run("Count.").Call("r1t1c0")
	fmt.Println(call.Status, "after", call.Starts, "starts:", call.Shown)

	// Output:
	// succeeded after 2 starts: counted with the key test.r1t1c0
}
