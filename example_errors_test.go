package refold_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold"
	"github.com/refold/refold/refoldtest"
)

// explain tells what a program may do about an error.
func explain(err error) string {
	var (
		run         *refold.RunError
		refused     *refold.RejectedError
		quarantined *refold.QuarantinedError
		decoded     *refold.DecodeError
		inUse       *refold.InUseError
	)
	switch {
	case errors.As(err, &run):
		return fmt.Sprintf("run %d is %s (%s)", run.Answer.Run, run.Lifecycle, run.Code)
	case errors.As(err, &refused):
		return "the session refused it: " + string(refused.Code)
	case errors.As(err, &quarantined):
		return "call an operator: " + quarantined.Reason
	case errors.As(err, &decoded):
		return "no number: " + decoded.Text
	case errors.As(err, &inUse):
		return filepath.Base(inUse.Dir) + " belongs to another runtime"
	case errors.Is(err, refold.ErrNoRun):
		return "there is no such run"
	}
	return err.Error()
}

// What can go wrong, and how a program tells it apart.
func ExampleRunError() {
	ctx, t := exampleContext()
	defer t.end()
	dir := filepath.Join(t.TempDir(), "data")
	rt, err := refold.Open(ctx, refoldtest.Dir(dir))
	check(err)
	defer rt.Close()
	_, err = refold.Open(ctx, refoldtest.Dir(dir))
	fmt.Println(explain(err))

	helper, err := rt.Agent("helper", refold.Model(refoldtest.Model(
		refoldtest.Say("ten"), refoldtest.Fail("content_filter", "the provider refused it"))))
	check(err)
	s := helper.Session("hello")
	_, err = s.Run(7).Wait(ctx)
	fmt.Println(explain(err))
	run, err := s.Ask(ctx, "How many?", refold.Submission("order-7"))
	check(err)
	answer, err := run.Wait(ctx)
	check(err)
	_, err = refold.Decode[int](answer)
	fmt.Println(explain(err))
	_, err = s.Ask(ctx, "How much?", refold.Submission("order-7"))
	fmt.Println(explain(err))
	run, err = s.Ask(ctx, "How long?")
	check(err)
	_, err = run.Wait(ctx)
	fmt.Println(explain(err))
	// Output:
	// data belongs to another runtime
	// there is no such run
	// no number: ten
	// the session refused it: duplicate_submission
	// run 2 is failed (content_filter)
}

// A program that serves its agents until it is told to end.
func ExampleRuntime_Wait() {
	ctx, t := exampleContext()
	defer t.end()
	rt := refoldtest.Open(t)
	_, err := rt.Agent("helper", refold.Model(refoldtest.Model(refoldtest.Say("It rains."))))
	check(err)
	ended := make(chan error)
	go func() { ended <- rt.Wait(ctx) }() // an error: the runtime failed
	check(rt.Close())                     // such as at SIGTERM
	fmt.Println(<-ended)
	// Output: <nil>
}

// The same program on servers. Here they are those of an embedded runtime, which any
// program of the machine may join.
func ExampleNATS() {
	ctx, t := exampleContext()
	defer t.end()
	first := refoldtest.Open(t)
	nc, err := connect(first.ContextFile())
	check(err)
	defer nc.Close()

	rt, err := refold.Open(ctx, refold.NATS(nc))
	check(err)
	defer rt.Close()
	helper, err := rt.Agent("helper", refold.Model(refoldtest.Model(refoldtest.Say("It rains."))))
	check(err)
	run, err := helper.Session("hello").Ask(ctx, "Weather in Bergen?")
	check(err)
	_, err = run.Wait(ctx)
	check(err)
	answer, err := first.Session("hello").Run(1).Wait(ctx)
	check(err)
	fmt.Println(answer.Text)
	// Output: It rains.
}

// connect connects as a context file of the nats tool says.
func connect(file string) (*nats.Conn, error) {
	var says struct{ URL, NKey string }
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &says)
	}
	if err != nil {
		return nil, err
	}
	key, err := nats.NkeyOptionFromSeed(says.NKey)
	if err != nil {
		return nil, err
	}
	return nats.Connect(says.URL, key)
}
