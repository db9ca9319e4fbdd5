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
	walkedEnvelope   Envelope
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
		reflect.TypeFor[*Envelope]():          reflect.TypeFor[*walkedEnvelope](),
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

func TestBodiesAreWrittenAsWalked(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := drawing{t}
		for _, v := range d.bodies() {
			got, gotErr := codec.Marshal(v)
			want, wantErr := codec.Marshal(walked(v).Interface())
			if !bytes.Equal(got, want) || fmt.Sprint(gotErr) != fmt.Sprint(wantErr) {
				t.Fatalf("%T: got %x, %v\nwant %x, %v", v, got, gotErr, want, wantErr)
			}
			e := Envelope{At: d.number(), By: d.text(), ID: d.text(), Type: d.text(), V: int(d.number())}
			got, gotErr = e.With(v)
			want, wantErr = e.With(walked(v).Interface())
			if !bytes.Equal(got, want) || fmt.Sprint(gotErr) != fmt.Sprint(wantErr) {
				t.Fatalf("an envelope with %T: got %x, %v\nwant %x, %v", v, got, gotErr, want, wantErr)
			}
		}
	})
}

func TestBodiesAreReadAsWalked(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) { readAsWalked(t, drawing{t}.bodies()) })
}

func TestEnvelopesAreReadAsWalked(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := drawing{t}
		readAsWalked(t, []any{&Envelope{At: d.number(), By: d.text(), Data: d.raw(), ID: d.text(), Type: d.text(), V: int(d.number())}})
	})
}

func TestEffectsAreReadAsWalked(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) { readAsWalked(t, drawing{t}.effects()) })
}

// readAsWalked encodes each, spoils that, and compares what is read of it.
func readAsWalked(t *rapid.T, all []any) {
	for _, v := range all {
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
}

// usual are the bodies and effects that are not left to the walk.
func usual() []quick {
	said, host := &Content{Text: "said"}, &HostSession{ID: "h", Root: "/w", Route: "r", Status: "ready"}
	return []quick{
		&ToolCallsObserved{
			Calls: []ObservedCall{{Arguments: "{}", ProviderCallID: "call_1", ToolName: "look"}}, Effect: "r1t1", Model: "m", Opaque: codec.Raw{0x80},
			Text: said, Usage: &Usage{InputTokens: 1, OutputTokens: 2},
		},
		&GenerationSettled{Effect: "r1t1", FinishReason: "stop", Model: "m", Status: "ok", Text: said, Usage: &Usage{CachedTokens: 1, ReasoningTokens: 3}},
		&GenerationSettled{Effect: "r1t1", Error: &Fault{Code: "rate_limit", Detail: "wait", Retryable: true}, Status: "failed"},
		&ToolCallSettled{DurationMS: 3, Effect: "r1t1c0", HostSession: host, Output: said, PlanHash: "00", Status: "succeeded"},
		&ToolCallSettled{Effect: "r1t1c0", Error: &Fault{Code: "exit_status"}, Output: &Content{}, Status: "failed"},
		&Generation{
			At: 1, Class: ClassLLM, Effect: "r1t1", Items: []Item{{Role: RoleUser, Seq: 2}, {Role: RoleTool, Seq: 3, Call: 1, Code: "denied", Detail: "no"}},
			Model: "m", Params: codec.Raw{0x80}, Provider: "p", ResponseFormat: codec.Raw{0x80}, RunMS: 1, Session: "s", StartBy: 1 << 40,
			System: "be brief", ToolChoice: "none", Tools: []codec.Hash{{1}, {2}}, Toolset: codec.Hash{3}, V: Version,
		},
		&Generation{Class: ClassLLM, Items: []Item{}, Tools: []codec.Hash{}},
		&ToolCall{
			Arguments: "{}", At: 1, Batch: "r1t1", Call: 2, Class: ClassTool, Context: codec.Raw{0x80}, Effect: "r1t1c2", HostSession: host,
			IdempotencyKey: "s.r1t1c2", PlanHash: codec.Hash{1}, ProviderCallID: "call_2", RetrySafe: true, RunMS: 300_000, Session: "s", StartBy: 1 << 40,
			ToolID: "host.fs.stat", ToolName: "stat", V: Version,
		},
		&ToolCall{},
	}
}

// TestEffectBufferIsLargeEnough: effects are written without growing, and not into much more room
// than they take.
func TestEffectBufferIsLargeEnough(t *testing.T) {
	t.Parallel()
	for _, v := range usual() {
		effect, is := v.(interface{ room() int })
		if !is {
			continue
		}
		body, _ := v.AppendCanonical(nil)
		if room := effect.room(); room < len(body) || room > len(body)+256 {
			t.Errorf("%T takes %d bytes, and gets %d", v, len(body), room)
		}
	}
}

// quick reads and writes itself.
type quick interface {
	quickBody
	ReadCanonical(data []byte) (n int, ok bool)
}

// TestCommonBodiesAreWrittenDirectly: what is usual is not left to the walk.
func TestCommonBodiesAreWrittenDirectly(t *testing.T) {
	t.Parallel()
	for _, v := range usual() {
		data, err := codec.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if written, ok := v.AppendCanonical(nil); !ok || !bytes.Equal(written, data) {
			t.Errorf("%T writes %x, %v, want %x", v, written, ok, data)
		}
		if n, ok := v.ReadCanonical(data); !ok || n != len(data) {
			t.Errorf("%T reads %d of its %d bytes, %v", v, n, len(data), ok)
		}
	}
	for _, v := range []interface {
		ReadCanonical(data []byte) (n int, ok bool)
	}{
		&RunRequested{Config: &RunConfig{Model: "m"}, Input: Content{Text: "said"}, Submission: "s", WhenBusy: BusyQueue},
		&WakeSettled{Effect: "w1"},
		&Envelope{At: 1, By: "me", Data: codec.Raw{0x80}, ID: "1", Type: TypeRunRequested, V: Version},
		&Envelope{},
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
