package refold_test

import (
	"fmt"

	"github.com/refold/refold"
	"github.com/refold/refold/refoldtest"
)

// A session goes on with a conversation of another system.
func ExampleSession_Import() {
	ctx, t := exampleContext()
	defer t.end()
	// The model counts the turns that it is shown: the imported one is its first.
	model := refoldtest.Model(refoldtest.Say("not asked for"), refoldtest.Say("2 m."))
	a, err := refoldtest.Open(t).Agent("gardener", refold.Model(model))
	check(err)
	s := a.Session("garden")
	check(s.Import(ctx, []byte(`[{"role": "user", "content": "How long is the fence?"}, {"role": "assistant", "content": "12 m."}]`)))
	run, err := s.Ask(ctx, "And how high?")
	check(err)
	_, err = run.Wait(ctx)
	check(err)
	conversation, err := s.Transcript(ctx)
	check(err)
	for _, e := range conversation.Entries {
		if e.Text != "" {
			fmt.Println(e.Kind, e.Text)
		}
	}
	// Output:
	// input How long is the fence?
	// text 12 m.
	// input And how high?
	// text 2 m.
}
