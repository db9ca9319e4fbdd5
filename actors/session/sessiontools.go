package session

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// reservedLayer names the layer of the session's own tools, and begins their
// tool_ids.
const reservedLayer = "refold"

const reservedID = "refold.* is kept for the session's own tools: choose another"

// isSessionTool reports whether a tool_id is kept for the session's own tools.
func isSessionTool(id string) bool { return strings.HasPrefix(id, reservedLayer+".") }

// sessionToolsJSON holds the session's own tools in the form that an install
// record has them.
//
//go:embed sessiontools.json
var sessionToolsJSON []byte

// sessionLayer is read once, when the program starts.
var sessionLayer = readSessionTools()

func readSessionTools() planner.Layer {
	raw, err := codec.FromJSON(sessionToolsJSON)
	var specs []planner.ToolSpec
	if err == nil {
		err = codec.Unmarshal(raw, &specs)
	}
	if err != nil {
		panic(fmt.Sprintf("session: sessiontools.json: %v", err))
	}
	tools, bad := planner.SessionTools(specs)
	if bad != nil {
		panic("session: sessiontools.json: " + bad.Error())
	}
	return planner.Layer{Name: reservedLayer, Tools: tools}
}
