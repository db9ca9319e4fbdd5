package mcp_test

// The MCP server of the tests: this test binary, over its standard input and output. It
// is made without an SDK, and writes its starts and calls, with its process, to a
// ledger.

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// Variables that make the test binary a server.
const (
	ledgerVar = "TOOLS_MCP_LEDGER" // path of its ledger
	extraVar  = "TOOLS_MCP_EXTRA"  // makes it list another tool, and another schema of "look"
)

func TestMain(m *testing.M) {
	ledger := os.Getenv(ledgerVar)
	if ledger == "" {
		goleak.VerifyTestMain(m)
		return
	}
	if err := serve(ledger); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// note adds a line to a ledger.
func note(ledger, what string) error {
	f, err := os.OpenFile(ledger, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = fmt.Fprintln(f, what, os.Getpid())
	return err
}

// noted returns the processes of a ledger's lines that begin with what.
func noted(t *testing.T, ledger, what string) (pids []int) {
	t.Helper()
	text, err := os.ReadFile(ledger)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if first, pid, _ := strings.Cut(strings.TrimSpace(line), " "); first == what {
			n, err := strconv.Atoi(pid)
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, n)
		}
	}
	return pids
}

// request is a message of the client.
type request struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		ProtocolVersion string `json:"protocolVersion"`
		Name            string `json:"name"`
	} `json:"params"`
}

func serve(ledger string) error {
	if err := note(ledger, "start"); err != nil {
		return err
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var r request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return err
		}
		if r.ID == nil {
			continue // a notification
		}
		answer, err := answerTo(ledger, r)
		if err != nil {
			return err
		}
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,%s}`+"\n", r.ID, answer)
	}
	return nil
}

func answerTo(ledger string, r request) (string, error) {
	switch r.Method {
	case "initialize":
		return fmt.Sprintf(`"result":{"protocolVersion":%q,"capabilities":{"tools":{}},"serverInfo":{"name":"peer","version":"1"}}`, r.Params.ProtocolVersion), nil
	case "tools/list":
		schema, extra := `{"type":"object"}`, ""
		if os.Getenv(extraVar) != "" {
			schema = `{"type":"object","properties":{"at":{"type":"string"}}}`
			extra = `,{"name":"new","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`
		}
		return `"result":{"tools":[{"name":"look","inputSchema":` + schema + `,"annotations":{"readOnlyHint":true}},` +
			`{"name":"die_once","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}` + extra + `]}`, nil
	case "tools/call":
		if err := note(ledger, r.Params.Name); err != nil {
			return "", err
		}
		if text, err := os.ReadFile(ledger); err != nil || r.Params.Name == "die_once" && strings.Count(string(text), "die_once ") == 1 {
			os.Exit(3)
		}
		return `"result":{"content":[{"type":"text","text":"seen"}]}`, nil
	}
	return `"error":{"code":-32601,"message":"no such method"}`, nil
}
