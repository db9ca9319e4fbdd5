package session

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// reservedLayer is the name of the layer of the session's own tools, and the prefix
// of their tool_ids.
const reservedLayer = "refold"

const reservedID = "refold.* is kept for the session's own tools: choose another"

// isSessionTool reports whether a tool_id is reserved for the session's own tools.
func isSessionTool(id string) bool { return strings.HasPrefix(id, reservedLayer+".") }

// sessionToolsJSON is the session's own tools, in the form of an install record.
//
//go:embed sessiontools.json
var sessionToolsJSON []byte

// sessionLayer is decoded once, when the program starts.
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
