package cli

// What: commands, arguments, flags and the fields of --json are those that the release
// promises (docs/stability.md).
//
// How: the commands are those of the parser, and the fields those of the types that
// printJSON is given. They are compared with refold.txt in the directory api.

import (
	"io"
	"testing"

	"github.com/refold/refold/internal/api"
	"github.com/refold/refold/internal/bus/bustest"
)

func TestCommandsArePromised(t *testing.T) {
	t.Parallel()
	const root = "../../.."
	printed, err := api.Printed(root, "cmd/refold/cli", "printJSON")
	bustest.OK(t, err)
	parser, err := newParser(&cli{}, nil, io.Discard, io.Discard)
	bustest.OK(t, err)
	api.Check(t, root, "refold.txt", api.Commands(parser.Model, printed))
}
