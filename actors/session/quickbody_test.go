package session

// The bodies and effects that read and write themselves, against types of the
// same fields that codec walks: see quick_test.go.

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/refold/refold/codec"
)

type (
	walkedCalls      ToolCallsObserved
	walkedGeneration GenerationSettled
	walkedCall       ToolCallSettled
	walkedRun        RunRequested
	walkedWake       WakeSettled
	walkedAsk        Generation
	walkedTool       ToolCall
	walkedDue        Wake
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
	return rapid.SampledFrom([]codec.Raw{nil, {0xc0}, {0x80}, {0x81, 0xa1, 'a', 0x91, 0x07}, {0xff, 0xff}}).Draw(d.T, "raw")
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
	return &Usage{CachedTokens: d.number(), InputTokens: d.number(), OutputTokens: d.number(), ReasoningTokens: d.number()}
}

func (d drawing) host() *HostSession {
	if d.is() {
		return nil
	}
	return &HostSession{ID: d.text(), Route: d.text(), Status: d.text()}
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

// bodies draws one of each type that reads itself.
func (d drawing) bodies() []any {
	return []any{
		&ToolCallsObserved{Calls: d.calls(), Effect: d.text(), Model: d.text(), Opaque: d.raw(), Text: d.content(), Usage: d.usage()},
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

// effects draws one of each type that writes itself.
func (d drawing) effects() []any {
	return []any{
		&Generation{
			At: d.number(), Class: Class(d.text()), Effect: d.text(), Items: []Item{drawItem(d.T), {Role: RoleUser, Seq: 2}}, Model: d.text(), Params: d.raw(),
			Provider: d.text(), ResponseFormat: d.raw(), RunMS: d.number(), Session: d.text(), StartBy: d.number(), System: d.text(), ToolChoice: d.text(),
			Tools: [][]codec.Hash{nil, {}, {d.hash()}}[rapid.IntRange(0, 2).Draw(d.T, "tools")], Toolset: d.hash(), V: int(d.number()),
		},
		&ToolCall{
			Arguments: d.text(), At: d.number(), Batch: d.text(), Call: int(d.number()), Class: Class(d.text()), Context: d.raw(), Effect: d.text(),
			HostSession: d.host(), IdempotencyKey: d.text(), PlanHash: d.hash(), ProviderCallID: d.text(), RetrySafe: d.is(), RunMS: d.number(),
			Session: d.text(), StartBy: d.number(), ToolID: d.text(), ToolName: d.text(), V: int(d.number()),
		},
		&Wake{At: d.number(), Class: Class(d.text()), Due: d.number(), Effect: d.text(), Session: d.text(), StartBy: d.number(), V: int(d.number())},
	}
}

// walked are the types that codec walks, by those that it need not.
func walked(v any) reflect.Value {
	types := map[reflect.Type]reflect.Type{
		reflect.TypeFor[*ToolCallsObserved](): reflect.TypeFor[*walkedCalls](),
		reflect.TypeFor[*GenerationSettled](): reflect.TypeFor[*walkedGeneration](),
		reflect.TypeFor[*ToolCallSettled]():   reflect.TypeFor[*walkedCall](),
		reflect.TypeFor[*RunRequested]():      reflect.TypeFor[*walkedRun](),
		reflect.TypeFor[*WakeSettled]():       reflect.TypeFor[*walkedWake](),
		reflect.TypeFor[*Generation]():        reflect.TypeFor[*walkedAsk](),
		reflect.TypeFor[*ToolCall]():          reflect.TypeFor[*walkedTool](),
		reflect.TypeFor[*Wake]():              reflect.TypeFor[*walkedDue](),
	}
	return reflect.ValueOf(v).Convert(types[reflect.TypeOf(v)])
}

func TestEffectsAreWrittenAsWalked(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		for _, v := range (drawing{t}).effects() {
			got, gotErr := codec.Marshal(v)
			want, wantErr := codec.Marshal(walked(v).Interface())
			if !bytes.Equal(got, want) || fmt.Sprint(gotErr) != fmt.Sprint(wantErr) {
				t.Fatalf("%T: got %x, %v\nwant %x, %v", v, got, gotErr, want, wantErr)
			}
		}
	})
}

func TestBodiesAreReadAsWalked(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		for _, v := range (drawing{t}).bodies() {
			data, err := codec.Marshal(v)
			if err != nil {
				continue // it holds text that is none
			}
			for range rapid.IntRange(0, 2).Draw(t, "faults") {
				data = spoil(t, data)
			}
			for name, decode := range map[string]func([]byte, any) error{"unmarshal": codec.Unmarshal, "decode": codec.Decode} {
				got := reflect.New(reflect.TypeOf(v).Elem()).Interface()
				want := walked(reflect.New(reflect.TypeOf(v).Elem()).Interface())
				gotErr, wantErr := decode(data, got), decode(data, want.Interface())
				if fmt.Sprint(gotErr) != fmt.Sprint(wantErr) {
					t.Fatalf("%s %T %x: got %v, want %v", name, v, data, gotErr, wantErr)
				}
				if back := want.Convert(reflect.TypeOf(v)).Interface(); !reflect.DeepEqual(got, back) {
					t.Fatalf("%s %x: got %+v, want %+v", name, data, got, back)
				}
			}
		}
	})
}

// TestUsualBodiesReadThemselves: what is usual is not left to the walk.
func TestUsualBodiesReadThemselves(t *testing.T) {
	t.Parallel()
	said := &Content{Text: "said"}
	for _, v := range []interface {
		ReadCanonical(data []byte) (n int, ok bool)
	}{
		&ToolCallsObserved{
			Calls: []ObservedCall{{Arguments: "{}", ProviderCallID: "call_1", ToolName: "look"}}, Effect: "r1t1", Model: "m", Opaque: codec.Raw{0x80},
			Text: said, Usage: &Usage{InputTokens: 1, OutputTokens: 2},
		},
		&GenerationSettled{Effect: "r1t1", FinishReason: "stop", Model: "m", Status: "ok", Text: said, Usage: &Usage{CachedTokens: 1, ReasoningTokens: 3}},
		&GenerationSettled{Effect: "r1t1", Error: &Fault{Code: "rate_limit", Detail: "wait", Retryable: true}, Status: "failed"},
		&ToolCallSettled{
			DurationMS: 3, Effect: "r1t1c0", HostSession: &HostSession{ID: "h", Route: "r", Status: "ready"}, Output: said, PlanHash: "00", Status: "succeeded",
		},
		&ToolCallSettled{Effect: "r1t1c0", Error: &Fault{Code: "exit_status"}, Output: &Content{}, Status: "failed"},
		&RunRequested{Config: &RunConfig{Model: "m"}, Input: *said, Submission: "s", WhenBusy: BusyQueue},
		&WakeSettled{Effect: "w1"},
	} {
		data, err := codec.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if n, ok := v.ReadCanonical(data); !ok || n != len(data) {
			t.Errorf("%T reads %d of its %d bytes, %v", v, n, len(data), ok)
		}
	}
}
