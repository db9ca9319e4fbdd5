package mcp

// Exact numbers in schemas: 9007199254740993 is the first integer that no float
// can represent.

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/refold/refold/codec"
)

// TestSchemasKeepExactNumbers: when imported, pinned and checked.
func TestSchemasKeepExactNumbers(t *testing.T) {
	t.Parallel()
	canonical, err := codec.FromJSON([]byte(schemaExact))
	must(t, err)
	over(t, append(slices.Clone(allWays), "json"), func(t *testing.T, w *world) {
		all := w.imports()
		if got, want := w.lock["mcp.peer.large"].Schema, codec.RefOf(canonical); got != want {
			t.Errorf("pinned is %s, want %s, the hash of what the server lists", got, want)
		}
		i := slices.IndexFunc(all.Tools, func(t *Tool) bool { return t.Name == "large" })
		if i < 0 {
			t.Fatal("no tool large was imported")
		}
		text, err := all.Tools[i].Function.Spec()
		must(t, err)
		var spec struct {
			ArgsSchema json.RawMessage `json:"args_schema"`
		}
		must(t, json.Unmarshal(text, &spec))
		if got, err := codec.FromJSON(spec.ArgsSchema); err != nil || !slices.Equal(got, canonical) {
			t.Errorf("imported is %s, %v; want %s", spec.ArgsSchema, err, schemaExact)
		}
		for _, c := range []struct{ takes, refuses string }{
			{`{"bound":9007199254740993}`, `{"bound":9007199254740994}`},
			{`{"bound":-9007199254740993}`, `{"bound":-9007199254740994}`},
			{`{"one":9007199254740993}`, `{"one":9007199254740992}`},
			{`{"some":18446744073709551615}`, `{"some":18446744073709551614}`},
			{`{"step":18014398509481986}`, `{"step":9007199254740992}`},
		} {
			w.want(w.call(t.Context(), "large", c.takes, true), "succeeded", "", c.takes)
			w.want(w.call(t.Context(), "large", c.refuses, true), "failed", "invalid_arguments", "")
		}
	})
}

// TestPinsCompareExactNumbers: a bound that changes by one changes the pin, and
// another spelling of a number does not.
func TestPinsCompareExactNumbers(t *testing.T) {
	t.Parallel()
	pin := func(bound, more string) Pin {
		t.Helper()
		message := `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a","inputSchema":{"type":"object","maxProperties":` + bound + `}` + more + `}]}}`
		r := &http.Response{Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(message))}
		exactly(r)
		var answer struct {
			Result sdk.ListToolsResult `json:"result"`
		}
		text, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(text, &answer)
		}
		must(t, err)
		p, err := pinOf(answer.Result.Tools[0])
		must(t, err)
		return p
	}
	want := pin("9007199254740993", "")
	if got := pin("9007199254740992", ""); got.Schema == want.Schema {
		t.Errorf("a bound of one less has the same pin %s", got.Schema)
	}
	if got := pin(" 9007199254740993 ", `,"_meta":{"a":1}`); got.Schema != want.Schema {
		t.Errorf("with metadata it is %s, want %s", got.Schema, want.Schema)
	}
	if a, b, c := pin("10", ""), pin("1e1", ""), pin("10.0", ""); a.Schema != b.Schema || a.Schema != c.Schema {
		t.Errorf("10, 1e1 and 10.0 are pinned as %s, %s and %s", a.Schema, b.Schema, c.Schema)
	}
}

// TestOtherMessagesAreUnchanged: also lists of tools without anything to keep.
func TestOtherMessagesAreUnchanged(t *testing.T) {
	t.Parallel()
	for _, message := range []string{
		`{"id":1,"result":{"inputSchema":{"maximum":9007199254740993}}}`,
		`{"id":1,"result":{"tools":"inputSchema","text":"\"inputSchema\""}}`,
		`{"id":1,"result":{"tools":[{"name":"a","_meta":7,"inputSchema":{}}]}}`,
		`{"id":1,"result":{"tools":[null,{"name":"inputSchema"}]}}`,
		`{"id":1,"method":"inputSchema","params":{"inputSchema":1}}`,
		`{"id":1,"result":{"tools":[{"inputSchema":{}}`,
	} {
		if got := string(exact([]byte(message))); got != message {
			t.Errorf("got %s, want %s", got, message)
		}
	}
	const list = `{"id":1,"result":{"tools":[null,{"_meta":null,"inputSchema":{"a":1.0}},{"name":"b"}]}}`
	const kept = `{"id":1,"result":{"tools":[null,{"_meta":{"refold/schema":"{\"a\":1.0}"},"inputSchema":{"a":1.0}},{"name":"b"}]}}`
	if got := string(exact([]byte(list))); got != kept {
		t.Errorf("got %s, want %s", got, kept)
	}
}
