package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// world is what the bridges of TestUpgrade act on: a model with the API of chat
// completions, and the place where calls are carried out. It counts, and lets wait what
// the test wants.
type world struct {
	t      *testing.T
	url    string
	ledger *os.File // of calls, as bridges write it

	mu    sync.Mutex
	turns map[string]int // requests of the model, by session, ".", turn
	calls map[string]int // likewise, of calls
	from  map[string]int // requests of each bridge
	waits []*waiting
}

// deed is one request of a bridge.
type deed struct{ by, sid, effect, tool string } // tool is "" for a turn

// waiting lets the first deed wait that it wants.
type waiting struct {
	wants    func(deed) bool
	began    chan deed     // has it, once it waits
	released chan struct{} // closed: it goes on
	broken   chan struct{} // closed: the bridge has given it up
}

// startWorld starts one that ends with the test.
func startWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, turns: map[string]int{}, calls: map[string]int{}, from: map[string]int{}}
	var err error
	if w.ledger, err = os.Create(filepath.Join(t.TempDir(), "ledger.jsonl")); err != nil {
		t.Fatal(err)
	}
	paths := http.NewServeMux()
	paths.HandleFunc("POST /{bridge}/v1/chat/completions", w.turn)
	paths.HandleFunc("POST /{bridge}/call", w.call)
	server := httptest.NewServer(paths)
	w.url = server.URL
	t.Cleanup(func() {
		server.CloseClientConnections() // what waits
		server.Close()
		w.ledger.Close()
	})
	return w
}

// wait lets the first deed that comes from now on wait, of those that it wants.
func (w *world) wait(wants func(deed) bool) *waiting {
	held := &waiting{wants: wants, began: make(chan deed, 1), released: make(chan struct{}), broken: make(chan struct{})}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waits = append(w.waits, held)
	return held
}

// done counts a deed, and returns once it may go on.
func (w *world) done(ctx context.Context, d deed) {
	w.mu.Lock()
	w.from[d.by]++
	if d.tool == "" {
		w.turns[d.sid+"."+d.effect]++
	} else {
		w.calls[d.sid+"."+d.effect]++
		if _, err := fmt.Fprintf(w.ledger, `{"session":%q,"effect":%q,"by":%q}`+"\n", d.sid, d.effect, d.by); err != nil {
			w.t.Error(err)
		}
	}
	var held *waiting
	for i, one := range w.waits {
		if one.wants(d) {
			held = one
			w.waits = append(w.waits[:i:i], w.waits[i+1:]...)
			break
		}
	}
	w.mu.Unlock()
	if held == nil {
		return
	}
	held.began <- d
	select {
	case <-held.released:
	case <-ctx.Done():
		close(held.broken)
	}
}

// deeds is how much a bridge has done.
func (w *world) deeds(by string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.from[by]
}

// call carries a call out.
func (w *world) call(out http.ResponseWriter, asked *http.Request) {
	var call struct{ Session, Effect, Tool string }
	if err := json.NewDecoder(asked.Body).Decode(&call); err != nil {
		http.Error(out, err.Error(), http.StatusBadRequest)
		return
	}
	w.done(asked.Context(), deed{asked.PathValue("bridge"), call.Session, call.Effect, call.Tool})
}

// requestedRun is what clients ask for.
var requestedRun = regexp.MustCompile(`run (\d+) of ([A-Za-z0-9_-]+)`)

// turn answers as loadTurns says.
func (w *world) turn(out http.ResponseWriter, asked *http.Request) {
	body, err := io.ReadAll(asked.Body)
	var request struct {
		Stream   bool `json:"stream"`
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if err == nil {
		err = json.Unmarshal(body, &request)
	}
	run, sid, turn := 0, "", 0
	for _, m := range request.Messages {
		switch m.Role {
		case "user":
			if parts := requestedRun.FindSubmatch(m.Content); parts != nil {
				run, _ = strconv.Atoi(string(parts[1])) // the pattern has digits only
				sid, turn = string(parts[2]), 1
			}
		case "assistant":
			turn++
		}
	}
	if err != nil || run < 1 || run > loadRuns || turn > len(loadTurns[run-1])+1 {
		w.t.Errorf("the model is asked for turn %d of run %d of %q (%v): %s", turn, run, sid, err, tail(string(body), 2000))
		http.Error(out, "nobody asks for that", http.StatusBadRequest)
		return
	}
	w.done(asked.Context(), deed{by: asked.PathValue("bridge"), sid: sid, effect: fmt.Sprintf("r%dt%d", run, turn)})
	if err := answerTurn(out, run, turn, request.Stream); err != nil {
		w.t.Logf("answer turn %d of run %d of %s: %v", turn, run, sid, err) // the bridge has gone
	}
}

// answerTurn writes a turn of the load.
func answerTurn(out io.Writer, run, turn int, stream bool) error {
	message, reason := object{"role": "assistant", "content": "ended"}, "stop"
	if turns := loadTurns[run-1]; turn <= len(turns) {
		var calls list
		for i, tool := range turns[turn-1] {
			calls = append(calls, object{
				"index": i, "id": fmt.Sprint("call_", run, turn, i), "type": "function",
				"function": object{"name": tool, "arguments": "{}"},
			})
		}
		message, reason = object{"role": "assistant", "content": nil, "tool_calls": calls}, "tool_calls"
	}
	as, key := "chat.completion", "message"
	if stream {
		as, key = "chat.completion.chunk", "delta"
	}
	text, err := json.Marshal(object{
		"id": "a", "object": as, "created": 1, "model": "m", "choices": list{object{"index": 0, key: message, "finish_reason": reason}},
		"usage": object{"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
	})
	if err != nil {
		return err
	}
	if stream {
		_, err = fmt.Fprintf(out, "data: %s\n\ndata: [DONE]\n\n", text)
	} else {
		_, err = out.Write(text)
	}
	return err
}

// others returns the turns that the model was not asked for once, and the calls that may
// not run twice and did not run once.
func (w *world) others() (all []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, n := range w.turns {
		if n != 1 {
			all = append(all, fmt.Sprintf("the model was asked %d times for %s", n, key))
		}
	}
	for key, n := range w.calls {
		sid, effect, _ := strings.Cut(key, ".")
		if n != 1 && !loadSafe[toolOf(effect)] {
			all = append(all, fmt.Sprintf("%s of %s ran %d times", effect, sid, n))
		}
	}
	return all
}

// toolOf returns the tool of a call of the load.
func toolOf(effect string) string { return expected(loadRuns)[effect] }
