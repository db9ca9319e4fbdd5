package recorded_test

// Every recorded conversation runs again in memory: the tests build the messages
// that a session would send, one by one, and compare them with the file.

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/llm"
	"github.com/refold/refold/internal/llm/recorded"
)

// files returns the project's recordings, and those of REFOLD_RECORDINGS.
func files(t *testing.T) []string {
	t.Helper()
	all := []string{"../../../testdata/recordings/warehouse.jsonl"}
	if dir := os.Getenv("REFOLD_RECORDINGS"); dir != "" {
		more, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
		if err != nil || len(more) == 0 {
			t.Fatalf("REFOLD_RECORDINGS=%s has no recordings (%v)", dir, err)
		}
		all = append(all, more...)
	}
	return all
}

func load(t *testing.T, file string) *recorded.Recording {
	t.Helper()
	r, err := recorded.Load(file)
	must(t, err)
	return r
}

func openLedger(t *testing.T) (*recorded.Ledger, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ledger.jsonl")
	ledger, err := recorded.OpenLedger(path)
	must(t, err)
	t.Cleanup(func() {
		if err := ledger.Close(); err != nil {
			t.Error(err)
		}
	})
	return ledger, path
}

// held is a conversation being held again.
type held struct {
	conversation *recorded.Conversation
	session      string
	model        executor.Model
	executor     executor.Executor
	messages     []executor.Message
	ends         []recorded.End
}

// run holds one run, and returns how it ended.
func (h *held) run(t *testing.T, number int, input string) {
	h.messages = append(h.messages, executor.Message{Role: "user", Text: input})
	for turn := 1; ; turn++ {
		effect := fmt.Sprintf("r%dt%d", number, turn)
		var streamed strings.Builder
		answer, err := h.model.Generate(t.Context(), executor.Request{
			Session: h.session, Effect: effect, Start: "start", Messages: h.messages,
		}, func(text string) { streamed.WriteString(text) })
		if err != nil {
			var failure *executor.Error
			if !errors.As(err, &failure) {
				t.Fatalf("%s %s: %v", h.session, effect, err)
			}
			h.ends = append(h.ends, recorded.End{Lifecycle: "failed", Code: failure.Code})
			return
		}
		if streamed.String() != answer.Text {
			t.Errorf("%s %s: streamed %q, answered %q", h.session, effect, streamed.String(), answer.Text)
		}
		said := executor.Message{Role: "assistant", Text: answer.Text}
		for i, call := range answer.Calls {
			said.Calls = append(said.Calls, executor.MessageCall{ID: fmt.Sprintf("%sc%d", effect, i), Name: call.Name, Arguments: call.Arguments})
		}
		if answer.Text != "" || len(answer.Calls) > 0 {
			h.messages = append(h.messages, said)
		}
		if len(answer.Calls) == 0 {
			h.ends = append(h.ends, recorded.End{Lifecycle: "completed"})
			return
		}
		h.messages = append(h.messages, h.execute(t, said.Calls, answer.Calls)...)
	}
}

// execute carries out a turn's calls side by side.
func (h *held) execute(t *testing.T, calls []executor.MessageCall, observed []executor.AnswerCall) []executor.Message {
	results := make([]executor.Message, len(calls))
	var group sync.WaitGroup
	for i, call := range calls {
		group.Go(func() {
			r, err := h.executor.Execute(t.Context(), executor.Call{
				Session: h.session, Effect: call.ID, Start: "start", ToolID: recorded.Target + "." + call.Name, ToolName: call.Name,
				Arguments: json.RawMessage(call.Arguments), ProviderCallID: observed[i].ID, IdempotencyKey: h.session + "." + call.ID,
			})
			if err != nil || r.Error != nil {
				t.Errorf("%s %s: %v, %v", h.session, call.ID, err, r.Error)
			}
			results[i] = executor.Message{Role: "tool", CallID: call.ID, Text: r.Output}
			if r.Output == "" {
				results[i].Text = "(no output)"
			}
		})
	}
	group.Wait()
	return results
}

// counted is what a file holds, read without this package.
func counted(t *testing.T, file string) (conversations, users, calls int) {
	t.Helper()
	data, err := os.ReadFile(file)
	must(t, err)
	for line := range strings.Lines(string(data)) {
		var c struct {
			Messages []struct {
				Role  string            `json:"role"`
				Calls []json.RawMessage `json:"tool_calls"`
			} `json:"messages"`
		}
		must(t, json.Unmarshal([]byte(line), &c))
		conversations++
		for _, m := range c.Messages {
			if m.Role == "user" {
				users++
			}
			calls += len(m.Calls)
		}
	}
	return conversations, users, calls
}

func TestEveryConversationIsReplayed(t *testing.T) {
	t.Parallel()
	for _, file := range files(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			r := load(t, file)
			ledger, path := openLedger(t)
			model, executor := recorded.NewModel(r), recorded.NewExecutor(r, ledger)
			var want []recorded.Entry
			users := 0
			for _, c := range r.Conversations() {
				// A second session of the same conversation, with a longer name.
				for _, session := range []string{c.Session(), c.Session() + "--again"} {
					h := &held{conversation: c, session: session, model: model, executor: executor}
					for i, input := range c.Users() {
						h.run(t, i+1, input)
						if want := c.Runs[i].Ends(); h.ends[i] != want {
							t.Errorf("%s run %d ended %v, want %v", session, i+1, h.ends[i], want)
						}
					}
					if got, want := h.ends[len(h.ends)-1], c.Ends(); got != want {
						t.Errorf("%s ended %v, want %v", session, got, want)
					}
					want = append(want, c.Ledger(session)...)
				}
				users += len(c.Users())
			}
			got, err := recorded.ReadLedger(path)
			must(t, err)
			if err := recorded.Tally(want, got).Err(); err != nil {
				t.Error(err)
			}
			conversationsThere, usersThere, callsThere := counted(t, file)
			if len(r.Conversations()) != conversationsThere || users != usersThere || len(got) != 2*callsThere {
				t.Errorf("held %d conversations, %d user messages, %d calls; the file has %d, %d and 2 × %d",
					len(r.Conversations()), users, len(got), conversationsThere, usersThere, callsThere)
			}
		})
	}
}

// What the project's own recordings are for: their table in the README.
func TestProjectRecordings(t *testing.T) {
	t.Parallel()
	r := load(t, "../../../testdata/recordings/warehouse.jsonl")
	ended := recorded.End{Lifecycle: "failed", Code: llm.CodeRecordingEnded}
	for _, want := range []struct {
		id, session string
		runs, calls int
		groups      []int // calls of the turns of the longest run
		ends        recorded.End
	}{
		{"warehouse-restock", "warehouse-restock", 3, 9, []int{2, 3, 0}, recorded.End{Lifecycle: "completed"}},
		{"warehouse-stocktake", "warehouse-stocktake", 2, 30, []int{30, 0}, recorded.End{Lifecycle: "completed"}},
		{"warehouse-audit", "warehouse-audit", 2, 30, []int{1, 4, 8, 2, 10, 5, 0}, ended},
		{"warehouse-recount", "warehouse-recount", 2, 4, []int{1, 0}, ended},
		{"warehouse-überlauf", "warehouse-_berlauf", 2, 6, []int{3, 2, 0}, recorded.End{Lifecycle: "completed"}},
		{"warehouse-smalltalk", "warehouse-smalltalk", 4, 0, []int{0}, ended},
	} {
		c, ok := r.Conversation(want.id)
		if !ok {
			t.Errorf("no conversation %s", want.id)
			continue
		}
		var groups []int
		for _, turn := range c.Runs[0].Turns {
			groups = append(groups, len(turn.Calls))
		}
		if c.Session() != want.session || len(c.Runs) != want.runs || c.Calls() != want.calls || c.Ends() != want.ends {
			t.Errorf("%s: session %s, %d runs, %d calls, %v", c.ID, c.Session(), len(c.Runs), c.Calls(), c.Ends())
		}
		if !slices.Equal(groups, want.groups) {
			t.Errorf("%s: calls by turn of the first run: %v, want %v", c.ID, groups, want.groups)
		}
	}
	if restock, _ := r.Conversation("warehouse-restock"); !strings.HasPrefix(restock.System, "You keep the stock") {
		t.Errorf("warehouse-restock: system is %q", restock.System)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
