"""Tools of Refold sessions: an MCP server over standard input and output."""
import json
import sys

ARGUMENTS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False}
TOOLS = {
    "forecast": ("The weather in a city.", {"readOnlyHint": True}, lambda city: f"rain in {city}"),
    "warn": ("Warns all people in a city.", {}, lambda city: f"{city} is warned"),
}

for line in sys.stdin:
    request = json.loads(line)
    params = request.get("params", {})
    match request["method"]:
        case "initialize":
            result = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "weather", "version": "1"}}
        case "tools/list":
            result = {"tools": [{"name": n, "description": d, "annotations": a, "inputSchema": ARGUMENTS} for n, (d, a, _) in TOOLS.items()]}
        case "tools/call":
            _, _, call = TOOLS[params["name"]]
            result = {"content": [{"type": "text", "text": call(**params["arguments"])}]}
        case _:
            result = {}
    if "id" in request:
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
