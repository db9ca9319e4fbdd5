package places_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// steps is how many commands a run of the model has.
const steps = 8

// asked finds the ledger that a person names in the latest input.
var asked = regexp.MustCompile(`write (\w+)`)

// serveModel serves OpenAI's Responses API at an address, and returns the base URL. Asked
// to write a ledger, the model appends the numbers up to steps to that file, one a
// command, and then tells how many commands it knows no outcome of. Otherwise it answers
// with the output of ls.
func serveModel(t testing.TB, address string) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(answer)}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	return fmt.Sprintf("http://%s/v1", l.Addr())
}

func answer(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Input []json.RawMessage `json:"input"`
	}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil || !strings.HasSuffix(r.URL.Path, "/responses") {
		http.Error(w, "want a request for a response", http.StatusBadRequest)
		return
	}
	outputs, unknown, ledger := 0, 0, ""
	for _, item := range request.Input {
		var head struct {
			Type   string          `json:"type"`
			Output json.RawMessage `json:"output"`
		}
		_ = json.Unmarshal(item, &head) // what is no output has none
		if head.Type == "function_call_output" {
			outputs++
			if strings.Contains(string(head.Output), "outcome_unknown") {
				unknown++
			}
		} else if m := asked.FindSubmatch(item); m != nil {
			ledger = string(m[1])
		}
	}
	type object = map[string]any
	call := func(tool string, arguments object) object {
		text, _ := json.Marshal(arguments)
		return object{"type": "function_call", "id": fmt.Sprint("fc", outputs), "call_id": fmt.Sprint("call", outputs), "name": tool, "arguments": string(text), "status": "completed"}
	}
	var item object
	switch {
	case outputs == 0:
		item = call("open_session", object{})
	case ledger == "" && outputs == 1:
		item = call("shell", object{"command": "ls"})
	case ledger != "" && outputs <= steps:
		item = call("shell", object{"command": fmt.Sprintf("echo %d >> %s; sleep 0.3", outputs, ledger)})
	default:
		text := fmt.Sprintf("The end, with %d unknown.", unknown)
		item = object{"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": []object{{"type": "output_text", "text": text, "annotations": []object{}}}}
	}
	response, _ := json.Marshal(object{"type": "response.completed", "response": object{
		"id": "r", "object": "response", "status": "completed", "model": "gpt-4.1", "output": []object{item},
		"usage": object{"input_tokens": 1, "output_tokens": 1, "total_tokens": 2},
	}})
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, "data: %s\n\n", response)
}
