package mcp

// The test server: this test binary, made with the SDK that the package uses
// too. It records its calls in a ledger.

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Variables that make the test binary a server.
const (
	envMode   = "MCP_TEST_MODE"
	envLedger = "MCP_TEST_LEDGER"
)

// Modes of the server.
const (
	modePlain  = "plain"  // as it should be
	modeFaulty = "faulty" // it ends at once, twice; then it is plain
	modeDeaf   = "deaf"   // it does not end with its input
	modeOdd    = "odd"    // it is made without an SDK, and its answers are odd
	modeMute   = "mute"   // it answers nothing
)

func TestMain(m *testing.M) {
	mode := os.Getenv(envMode)
	if mode == "" {
		os.Exit(m.Run())
	}
	if err := servePipes(mode); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func servePipes(mode string) error {
	switch mode {
	case modeOdd:
		return serveOdd(os.Stdin, os.Stdout)
	case modeMute:
		_, err := io.Copy(io.Discard, os.Stdin)
		return err
	}
	p := &peer{ledger: os.Getenv(envLedger), exit: os.Exit}
	starts := p.note("start " + strings.Join(os.Environ(), " "))
	switch {
	case mode == modeFaulty && starts <= 2:
		return errors.New("not today")
	case mode == modePlain:
		fmt.Println("Server is ready.") // as many do, and none should
	}
	err := p.server().Run(context.Background(), &sdk.StdioTransport{})
	if mode == modeDeaf {
		p.note("goes on")
		select {}
	}
	return err
}

// peer is what the server's tools do.
type peer struct {
	ledger  string
	exit    func(int)
	changed *sdk.Server
	over    chan struct{} // closed when the test ends; nil: the process ends then
}

// note adds a line to the ledger, and says how many begin with its first word.
func (p *peer) note(line string) (n int) {
	f, err := os.OpenFile(p.ledger, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = fmt.Fprintln(f, line)
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		panic(err)
	}
	word, _, _ := strings.Cut(line, " ")
	return countNotes(p.ledger, word)
}

// countNotes counts the lines of a ledger that begin with a word.
func countNotes(ledger, word string) (n int) {
	text, _ := os.ReadFile(ledger)
	for line := range strings.Lines(string(text)) {
		if first, _, _ := strings.Cut(strings.TrimSpace(line), " "); first == word {
			n++
		}
	}
	return n
}

const (
	schemaText  = `{"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"], "additionalProperties": false}`
	schemaOther = `{"type": "object", "properties": {"text": {"type": "string"}, "more": {"type": "string"}}, "required": ["text", "more"]}`
	schemaNone  = `{"type": "object"}`
	// schemaExact has numbers that no float holds.
	schemaExact = `{"type":"object","properties":{"bound":{"type":"integer","minimum":-9007199254740993,"maximum":9007199254740993},` +
		`"one":{"const":9007199254740993},"some":{"enum":[18446744073709551615,0.5]},"step":{"type":"integer","multipleOf":9007199254740993}}}`
)

// server returns a server of two tools a page.
func (p *peer) server() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "peer", Version: "1"}, &sdk.ServerOptions{PageSize: 2})
	p.changed = s
	no := false
	readOnly, idempotent, additive := &sdk.ToolAnnotations{ReadOnlyHint: true}, &sdk.ToolAnnotations{IdempotentHint: true, DestructiveHint: &no}, &sdk.ToolAnnotations{DestructiveHint: &no}
	for _, t := range []struct {
		name, schema string
		hints        *sdk.ToolAnnotations
		do           func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error)
	}{
		{"echo", schemaText, readOnly, p.echo},
		{"set", schemaText, idempotent, p.echo},
		{"add", schemaText, additive, p.echo},
		{"remove", schemaText, nil, p.echo},
		{"crash", schemaNone, additive, p.crash},
		{"crash_once", schemaNone, idempotent, p.crash},
		{"hang", schemaNone, additive, p.hang},
		{"steps", schemaNone, readOnly, p.steps},
		{"rich", schemaNone, readOnly, p.rich},
		{"large", schemaExact, readOnly, p.large},
		{"fail", schemaNone, readOnly, p.fail},
		{"refuse", schemaNone, readOnly, p.refuse},
		{"change", schemaNone, additive, p.change},
		{"drop", schemaNone, additive, p.drop},
		{"noise", schemaNone, readOnly, p.noise},
		{"spawn", schemaNone, additive, p.spawn},
		{"token", schemaNone, readOnly, p.token},
		{"look.ahead", `{"type": "object", "properties": {"a": {"type": "string", "pattern": "(?=a)b"}}}`, readOnly, p.echo},
		{"odd name", schemaNone, readOnly, p.echo},
		{"odd/name", schemaNone, readOnly, p.echo},
	} {
		s.AddTool(&sdk.Tool{Name: t.name, Description: "Does " + t.name + ".", InputSchema: json.RawMessage(t.schema), Annotations: t.hints}, t.do)
	}
	return s
}

func text(format string, args ...any) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprintf(format, args...)}}}
}

func (p *peer) echo(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	p.note(r.Params.Name)
	if parent, given := r.Params.Meta["traceparent"]; given {
		p.note(fmt.Sprint("traceparent ", parent))
	}
	return text("%s", r.Params.Arguments), nil
}

// token says what secret the server was given, plain and as a hash.
func (p *peer) token(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	given := os.Getenv("GIVEN")
	if r.Extra != nil && r.Extra.Header != nil {
		given = r.Extra.Header.Get("X-Token")
	}
	return text("%s is %x", given, sha256.Sum256([]byte(given))), nil
}

// crash ends the server, the first time.
func (p *peer) crash(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	if n := p.note(r.Params.Name); n > 1 {
		return text("call %d", n), nil
	}
	fmt.Fprintln(os.Stderr, "out of memory, or so")
	p.exit(3)
	return text("still there"), nil
}

func (p *peer) hang(ctx context.Context, _ *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	p.note("hangs")
	select {
	case <-ctx.Done():
		p.note("cancelled")
	case <-p.over:
		return text("over"), nil
	}
	return nil, ctx.Err()
}

func (p *peer) steps(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	for i := range 3 {
		err := r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{
			ProgressToken: r.Params.GetProgressToken(), Progress: float64(i + 1), Total: 3, Message: fmt.Sprint("step ", i+1),
		})
		if err != nil {
			return nil, err
		}
	}
	for beat := time.Tick(5 * time.Millisecond); countNotes(p.ledger, "heard") == 0; {
		select {
		case <-beat:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return text("done"), nil
}

func (p *peer) rich(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	return &sdk.CallToolResult{
		Content: []sdk.Content{
			&sdk.TextContent{Text: "a picture:"},
			&sdk.ImageContent{MIMEType: "image/png", Data: []byte("\x89PNG")},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///notes", Text: "some notes"}},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///bytes", MIMEType: "application/zip", Blob: []byte("PK")}},
			&sdk.ResourceLink{URI: "file:///there", Name: "there", MIMEType: "text/plain"},
		},
		StructuredContent: map[string]any{"count": 2, "tag": "<a>"},
	}, nil
}

// large answers with its arguments as structured content, and as text if told to.
func (p *peer) large(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	answer := &sdk.CallToolResult{Content: []sdk.Content{}, StructuredContent: r.Params.Arguments}
	if strings.Contains(string(r.Params.Arguments), "twice") {
		answer.Content = text("%s", r.Params.Arguments).Content
	}
	return answer, nil
}

func (p *peer) fail(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	r := text("no such file")
	r.IsError = true
	return r, nil
}

func (p *peer) refuse(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	return nil, errors.New("I would rather not")
}

// change gives echo another schema.
func (p *peer) change(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	p.changed.AddTool(&sdk.Tool{Name: "echo", InputSchema: json.RawMessage(schemaOther), Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true}}, p.echo)
	return text("changed"), nil
}

// drop takes set away, and says that add may not be repeated with care.
func (p *peer) drop(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	p.changed.RemoveTools("set")
	return text("dropped"), nil
}

func (p *peer) noise(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	fmt.Println("[info] noise\n{\"half\": ")
	return text("heard"), nil
}

// spawn starts a process that does not end by itself.
func (p *peer) spawn(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return text("%d", cmd.Process.Pid), nil
}
