package cli_test

import (
	"github.com/refold/refold/cmd/refold/cli"
	"github.com/refold/refold/cmd/refold/full"
)

func init() { cli.Parts = full.Parts() }
