package main

import (
	"testing"

	"github.com/alecthomas/kong"

	"github.com/refold/refold/internal/api"
)

// TestFlagsArePromised: the flags are those that the release promises
// (docs/stability.md). The keys of the config file are the same names.
func TestFlagsArePromised(t *testing.T) {
	t.Parallel()
	parser, err := kong.New(&flags{}, kong.Name(program.Name), kong.Vars{"version": ""}, program.Vars)
	if err != nil {
		t.Fatal(err)
	}
	api.Check(t, "../..", program.Name+".txt", api.Commands(parser.Model, nil))
}
