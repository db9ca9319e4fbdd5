package session

// What is drawn for the tests of events that are read in one pass: bodies, and
// bytes that were malformed.

import (
	"bytes"

	"pgregory.net/rapid"

	"github.com/refold/refold/codec"
)

// drawing draws what stands in a body, often nothing.
type drawing struct{ *rapid.T }

func (d drawing) text() string {
	return rapid.OneOf(rapid.Just(""), rapid.SampledFrom([]string{"ok", "failed", "succeeded", "r1t2", "\xff"}), rapid.String()).Draw(d.T, "text")
}

func (d drawing) number() int64 {
	return rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(-3, 300), rapid.Int64()).Draw(d.T, "number")
}

func (d drawing) is() bool { return rapid.Bool().Draw(d.T, "is") }

func (d drawing) hash() (h codec.Hash) {
	copy(h[:], d.text())
	return h
}

func (d drawing) raw() codec.Raw {
	deep := bytes.Repeat([]byte{0x91}, codec.DepthMax) // arrays of one item
	all := []codec.Raw{nil, {0xc0}, {0x80}, {0x81, 0xa1, 'a', 0x91, 0x07}, {0xff, 0xff}, {0xc4, 0x01, 0x07}, {0x81, 0xa1, 'a', 0x91, 0xc4, 0x01, 0x07}}
	for n := codec.DepthMax - 3; n <= codec.DepthMax; n++ {
		all = append(all, append(bytes.Clone(deep[:n]), 0x07))
	}
	return rapid.SampledFrom(all).Draw(d.T, "raw")
}

func (d drawing) content() *Content {
	switch rapid.IntRange(0, 3).Draw(d.T, "content") {
	case 0:
		return nil
	case 1:
		return &Content{Blob: &codec.Ref{Hash: d.hash()}, Size: d.number(), MediaType: d.text()}
	case 2:
		return &Content{Parts: []Content{{Text: d.text()}}}
	}
	return &Content{Text: d.text()}
}

func (d drawing) fault() *Fault {
	if d.is() {
		return nil
	}
	return &Fault{Code: d.text(), Detail: d.text(), Retryable: d.is()}
}

func (d drawing) usage() *Usage {
	if d.is() {
		return nil
	}
	return &Usage{CacheWriteTokens: d.number(), CachedTokens: d.number(), InputTokens: d.number(), OutputTokens: d.number(), ReasoningTokens: d.number()}
}

func (d drawing) host() *HostSession {
	if d.is() {
		return nil
	}
	return &HostSession{ID: d.text(), Root: d.text(), Route: d.text(), Status: d.text()}
}

func (d drawing) calls() []ObservedCall {
	calls := make([]ObservedCall, rapid.IntRange(0, 3).Draw(d.T, "calls"))
	for i := range calls {
		calls[i] = ObservedCall{Arguments: d.text(), ProviderCallID: d.text(), ToolName: d.text()}
		if rapid.IntRange(0, 9).Draw(d.T, "apart") == 0 {
			calls[i].ArgumentsBlob, calls[i].Size = &codec.Ref{Hash: d.hash()}, d.number()
		}
	}
	return calls
}

func (d drawing) config() *RunConfig {
	if d.is() {
		return nil
	}
	return &RunConfig{Model: d.text(), Provider: d.text(), Params: d.raw(), TurnsMax: int(d.number())}
}

// bodies draws one of each type that is scanned.
func (d drawing) bodies() []any {
	return []any{
		&ToolCallsObserved{Calls: d.calls(), Effect: d.text(), FinishReason: d.text(), Model: d.text(), Opaque: d.raw(), Text: d.content(), Usage: d.usage()},
		&GenerationSettled{
			Effect: d.text(), Error: d.fault(), FinishReason: d.text(), Model: d.text(), Opaque: d.raw(), Status: d.text(), Text: d.content(), Usage: d.usage(),
		},
		&ToolCallSettled{
			DurationMS: d.number(), Effect: d.text(), Error: d.fault(), HostSession: d.host(), Output: d.content(), PlanHash: d.text(), Status: d.text(),
		},
		&RunRequested{Config: d.config(), Input: Content{Text: d.text()}, Roles: [][]string{nil, {}, {d.text()}}[rapid.IntRange(0, 2).Draw(d.T, "roles")],
			Submission: d.text(), WhenBusy: d.text()},
		&WakeSettled{Effect: d.text()},
	}
}

// usual are the settlements that are scanned.
func usual() []any {
	said, host := &Content{Text: "said"}, &HostSession{ID: "h", Root: "/w", Route: "r", Status: "ready"}
	return []any{
		&ToolCallsObserved{
			Calls: []ObservedCall{{Arguments: "{}", ProviderCallID: "call_1", ToolName: "look"}}, Effect: "r1t1", FinishReason: "length", Model: "m", Opaque: codec.Raw{0x80},
			Text: said, Usage: &Usage{InputTokens: 1, OutputTokens: 2},
		},
		&GenerationSettled{Effect: "r1t1", FinishReason: "stop", Model: "m", Status: "ok", Text: said, Usage: &Usage{CachedTokens: 1, ReasoningTokens: 3}},
		&GenerationSettled{Effect: "r1t1", Error: &Fault{Code: "rate_limit", Detail: "wait", Retryable: true}, Status: "failed"},
		&ToolCallSettled{DurationMS: 3, Effect: "r1t1c0", HostSession: host, Output: said, PlanHash: "00", Status: "succeeded"},
		&ToolCallSettled{Effect: "r1t1c0", Error: &Fault{Code: "exit_status"}, Output: &Content{}, Status: "failed"},
	}
}

// spoil changes, drops or doubles a byte.
func spoil(t *rapid.T, data []byte) []byte {
	at := rapid.IntRange(0, len(data)-1).Draw(t, "at")
	switch out := bytes.Clone(data); rapid.IntRange(0, 2).Draw(t, "how") {
	case 0:
		out[at] = rapid.Byte().Draw(t, "byte")
		return out
	case 1:
		return append(out[:at], out[at+1:]...)
	default:
		return append(out[:at], data[max(0, at-1):]...)
	}
}
