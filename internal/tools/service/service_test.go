package service

// Calls of tools that are services, in virtual time, with a fake of NATS in memory.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/presence"
	"github.com/refold/refold/subjects"
)

// world is a wire to services that the test makes.
type world struct {
	mu       sync.Mutex
	services []presence.FoundService
	down     error // of Services
	requests []presence.ServiceRequest
	answer   func(ctx context.Context, n int) (presence.ServiceReply, error) // to the nth request, from 1
}

func (w *world) Services(context.Context) ([]presence.FoundService, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.services, w.down
}

func (w *world) Request(ctx context.Context, r presence.ServiceRequest) (presence.ServiceReply, error) {
	w.mu.Lock()
	w.requests = append(w.requests, r)
	n := len(w.requests)
	w.mu.Unlock()
	return w.answer(ctx, n)
}

func (w *world) offer(services ...presence.FoundService) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.services = services
}

// start returns Tools that know w, and what they log.
func start(t *testing.T, w *world) (*Tools, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	tools, err := New(Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	stop, err := tools.Start(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return tools, &log
}

func callOf(toolID, arguments string, safe bool) executor.Call {
	return executor.Call{
		ToolID: toolID, Arguments: json.RawMessage(arguments), RetrySafe: safe, Session: "s1", Effect: "r1t1c0",
		IdempotencyKey: "s1.r1t1c0",
	}
}

func reply(code, text, data string) func(context.Context, int) (presence.ServiceReply, error) {
	return func(context.Context, int) (presence.ServiceReply, error) {
		return presence.ServiceReply{ErrorCode: code, Error: text, Data: []byte(data)}, nil
	}
}

func fails(err error) func(context.Context, int) (presence.ServiceReply, error) {
	return func(context.Context, int) (presence.ServiceReply, error) { return presence.ServiceReply{}, err }
}

func TestCallEnds(t *testing.T) {
	t.Parallel()
	nobody := fmt.Errorf("x: %w", presence.ErrNobodyServes)
	hangs := func(ctx context.Context, _ int) (presence.ServiceReply, error) {
		<-ctx.Done()
		return presence.ServiceReply{}, ctx.Err()
	}
	for _, c := range []struct {
		name         string
		answer       func(context.Context, int) (presence.ServiceReply, error)
		unsafe, safe string // status code retryable, requests
	}{
		{"answers", reply("", "", "done"), "succeeded  false 1", "succeeded  false 1"},
		{"says 400", reply("400", "what?", ""), "failed bad_request false 1", "failed bad_request false 1"},
		{"says 500", reply("500", "oops", ""), "failed service_error false 1", "failed service_error false 1"},
		{"says 429", reply("429", "slow down", ""), "failed rate_limited true 3", "failed rate_limited true 3"},
		{"says 503", reply("503", "later", ""), "failed unavailable true 3", "failed unavailable true 3"},
		{"says 504", reply("504", "no answer", ""), "outcome_unknown outcome_unknown false 1", "failed timeout true 3"},
		{"says 418", reply("418", "teapot", ""), "failed service_error false 1", "failed service_error false 1"},
		{"says a word", reply("no_stock", "none left", ""), "failed no_stock false 1", "failed no_stock false 1"},
		{"says nonsense", reply("No Stock", "none left", ""), "failed service_error false 1", "failed service_error false 1"},
		{"says try_again", reply("try_again", "", ""), "failed try_again true 3", "failed try_again true 3"},
		{"can't tell", reply("outcome_unknown", "", ""), "outcome_unknown outcome_unknown false 1", "outcome_unknown outcome_unknown false 1"},
		{"no code", reply("", "oops", ""), "failed service_error false 1", "failed service_error false 1"},
		{"is busy, then not", func(ctx context.Context, n int) (presence.ServiceReply, error) {
			return reply([]string{"503", "429", ""}[n-1], "", "done")(ctx, n)
		}, "succeeded  false 3", "succeeded  false 3"},
		// Tried after 0, 0.2, 0.6, 1.4, 3 s, and then every two seconds up to 29.
		{"is not there", fails(nobody), "failed service_missing true 18", "failed service_missing true 18"},
		{"comes back", func(ctx context.Context, n int) (presence.ServiceReply, error) {
			if n < 5 {
				return fails(nobody)(ctx, n)
			}
			return reply("", "", "done")(ctx, n)
		}, "succeeded  false 5", "succeeded  false 5"},
		{"hangs", hangs, "outcome_unknown outcome_unknown false 1", "failed deadline_exceeded false 1"},
		{"the answer is lost", func(ctx context.Context, n int) (presence.ServiceReply, error) {
			if n == 1 {
				return fails(presence.ErrAnswerLost)(ctx, n)
			}
			return reply("", "", "done")(ctx, n)
		}, "outcome_unknown outcome_unknown false 1", "succeeded  false 2"},
		{"may not be asked", fails(&natsio.PermissionError{Op: "publish", Subject: "x"}), "failed not_allowed false 1", "failed not_allowed false 1"},
		{"may not answer", fails(&natsio.PermissionError{Op: "subscribe", Subject: "x"}), "outcome_unknown outcome_unknown false 1", "failed not_allowed false 1"},
		{"takes less", fails(&natsio.MaxPayloadError{Subject: "x"}), "failed request_too_large false 1", "failed request_too_large false 1"},
		{"the connection is closed", fails(natsio.ErrClosed), "outcome_unknown outcome_unknown false 1", "failed service_error false 1"},
	} {
		for _, safe := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/retry_safe=%v", c.name, safe), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					w := &world{answer: c.answer, services: []presence.FoundService{offering("orders", "1", with(fmt.Sprintf(`"retry_safe": %v`, safe)))}}
					tools, _ := start(t, w)
					want := c.unsafe
					if safe {
						want = c.safe
					}
					r := bridge.Rehearse(t.Context(), tools, callOf("orders.do", "{}", safe), bridge.Rehearsal{RunTime: time.Minute})
					if got := fmt.Sprint(r.Status, " ", r.Code, " ", r.Retryable, " ", len(w.requests)); got != want {
						t.Errorf("got %q (%s), want %q", got, r.Detail, want)
					}
					if r.Code == CodeServiceMissing && !strings.Contains(r.Detail, "service orders is not there: nobody listens on orders.do") {
						t.Errorf("it does not say who is missing: %s", r.Detail)
					}
				})
			})
		}
	}
}

// The result is known before the end of the call's run time: no service
// received it.
func TestMissingServiceFailsBeforeTheDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &world{answer: fails(presence.ErrNobodyServes), services: []presence.FoundService{offering("orders", "1", plain)}}
		tools, _ := start(t, w)
		r := bridge.Rehearse(t.Context(), tools, callOf("orders.do", "", false), bridge.Rehearsal{RunTime: 5 * time.Second})
		if r.Status != "failed" || r.Code != CodeServiceMissing {
			t.Errorf("got %+v", r)
		}
	})
}

func TestRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &world{answer: reply("", "", "a\xffb"), services: []presence.FoundService{offering("orders", "1", plain)}}
		tools, _ := start(t, w)
		r := bridge.Rehearse(t.Context(), tools, callOf("orders.do", "", false), bridge.Rehearsal{RunTime: 5 * time.Second})
		if r.Shown != "a\uFFFDb" {
			t.Errorf("shown %q", r.Shown)
		}
		if r := bridge.Rehearse(t.Context(), tools, callOf("orders.do", `{"a":1}`, false), bridge.Rehearsal{}); r.Code != "invalid_arguments" {
			t.Errorf("arguments that don't fit: got %+v", r)
		}
		if len(w.requests) != 1 {
			t.Fatalf("got %d requests, want 1", len(w.requests))
		}
		got := w.requests[0]
		if got.Subject != "orders.do" || string(got.Data) != "{}" || !got.Patient {
			t.Errorf("got %+v", got)
		}
		for key, want := range map[string]string{
			subjects.HeaderSession: "s1", subjects.HeaderEffect: "r1t1c0", subjects.HeaderTool: "orders.do",
			subjects.HeaderIdempotencyKey: "s1.r1t1c0", subjects.HeaderTimeoutMS: "5000", subjects.HeaderContentType: "application/json",
		} {
			if got.Header[key] != want {
				t.Errorf("%s: got %q, want %q", key, got.Header[key], want)
			}
		}
		if len(got.Header[subjects.HeaderStart]) != 26 {
			t.Errorf("start: got %q", got.Header[subjects.HeaderStart])
		}
	})
}

func TestServicesAreGivenTheTraceContext(t *testing.T) {
	t.Parallel()
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	synctest.Test(t, func(t *testing.T) {
		w := &world{answer: reply("", "", "ok"), services: []presence.FoundService{offering("orders", "1", plain)}}
		tools, _ := start(t, w)
		for _, given := range []string{parent, ""} {
			call := callOf("orders.do", "", false)
			call.Traceparent = given
			if _, err := tools.Execute(t.Context(), call); err != nil {
				t.Fatal(err)
			}
			header := w.requests[len(w.requests)-1].Header
			if got, has := header[subjects.HeaderTraceParent]; got != given || has != (given != "") {
				t.Errorf("given %q, the service is sent %q", given, got)
			}
		}
	})
}

// Services appear, change, fall silent, disappear and return; each change is
// logged once.
func TestServicesComeAndGo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &world{answer: reply("", "", "done")}
		tools, log := start(t, w)
		step := func(what, want string, services ...presence.FoundService) {
			t.Helper()
			synctest.Wait()
			log.Reset()
			w.offer(services...)
			<-time.After(everyDefault + time.Second)
			synctest.Wait()
			var said []string
			for line := range strings.Lines(log.String()) {
				_, line, _ = strings.Cut(line, "msg=")
				name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
				if _, changed, ok := strings.Cut(rest, "changed="); ok {
					changed, _, _ = strings.Cut(changed, " do=")
					name += " " + changed
				}
				said = append(said, name)
			}
			if got := strings.Join(said, ", "); got != want {
				t.Errorf("%s: said %q, want %q", what, got, want)
			}
		}
		one := offering("orders", "1", with(`"retry_safe": true`))
		step("one comes", "service_tool_found", one)
		step("nothing new", "", one)
		step("another spelling of its schema", "", offering("orders", "1", `{"retry_safe": true, "schema": { "type" : "object" } }`))
		step("it is silent", "")
		step("it is heard", "", one)
		step("it is silent again", "")
		step("it is gone", "service_tool_gone")
		step("still", "")
		step("it is back, with another schema", "service_tool_back, service_tool_changed schema", offering("orders", "1", `{"retry_safe": true, "schema": {"type": "object", "maxProperties": 1}}`))
		step("it is less safe", `service_tool_changed "schema retry_safe"`, offering("orders", "1", plain))
		r := bridge.Rehearse(t.Context(), tools, callOf("orders.do", "", true), bridge.Rehearsal{})
		if r.Code != CodeToolChanged || len(w.requests) != 0 {
			t.Errorf("a session that holds it for safe: got %+v after %d requests", r, len(w.requests))
		}
		step("what it says is wrong", "service_tool_refused", offering("orders", "1", "{}"))
		step("still wrong", "", offering("orders", "1", "{}"))
		if got := len(tools.Known()); got != 0 {
			t.Errorf("%d tools are known, want none", got)
		}
		r = bridge.Rehearse(t.Context(), tools, callOf("orders.do", "", false), bridge.Rehearsal{})
		if r.Code != CodeServiceRefused || !strings.Contains(r.Detail, "service orders, endpoint do: refold.tool: schema: is missing") {
			t.Errorf("got %+v", r)
		}
		w.mu.Lock()
		w.down = errors.New("no")
		w.mu.Unlock()
		step("they can't be asked", "services_not_asked", one)
	})
}

// A call of a tool that no service has offered yet.
func TestCallWaitsForALateService(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &world{answer: reply("", "", "done")}
		tools, _ := start(t, w)
		time.AfterFunc(12*time.Second, func() { w.offer(offering("orders", "1", plain)) })
		if r := bridge.Rehearse(t.Context(), tools, callOf("orders.do", "", false), bridge.Rehearsal{}); r.Shown != "done" {
			t.Errorf("got %+v", r)
		}
		began := time.Now()
		r := bridge.Rehearse(t.Context(), tools, callOf("mail.do", "", false), bridge.Rehearsal{})
		if r.Code != CodeServiceMissing || !strings.Contains(r.Detail, "no service offers mail.do") || time.Since(began) > patienceDefault {
			t.Errorf("got %+v after %v", r, time.Since(began))
		}
	})
}

func TestOptions(t *testing.T) {
	t.Parallel()
	_, err := New(Options{Target: "a.b", Every: -1, Only: []string{""}})
	for _, want := range []string{"a.b", "not negative", "is empty"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
	tools, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tools.Start(t.Context(), &world{down: errors.New("not allowed")}); err == nil || !strings.Contains(err.Error(), "not allowed") {
		t.Errorf("services that can't be asked: got %v", err)
	}
}

// In a pack, the pack's name precedes the tool_id, unless the tool_id begins
// with it.
func TestPackNamePrecedesTheToolID(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &world{answer: reply("", "", "done"), services: []presence.FoundService{offering("orders", "1", with(`"retry_safe": true`))}}
		tools, _ := start(t, w)
		for pack, id := range map[string]string{"shop": "shop.orders.do", "orders": "orders.do"} {
			call := callOf(id, "{}", true)
			call.Spaces = []executor.CallSpace{{Space: pack, Kind: "pack"}}
			got, err := tools.Execute(t.Context(), call)
			if err != nil || got.Error != nil || got.Output != "done" || w.requests[len(w.requests)-1].Header[subjects.HeaderTool] != "orders.do" {
				t.Errorf("%s: got %+v, %v", id, got, err)
			}
		}
	})
}

// vault has one secret, whose value may change.
type vault struct{ value string }

func (v *vault) Secret(_ context.Context, pack, name string) (string, error) {
	if pack != "crm" || name != "CRM_KEY" {
		return "", nil
	}
	return v.value, nil
}

// TestServicesAreGivenSecrets: a request has the secret in its header, read
// again for each call; without it nothing is sent, and no result contains it.
func TestServicesAreGivenSecrets(t *testing.T) {
	t.Parallel()
	w := &world{}
	w.offer(offering("crm", "1", with(`"tool_id": "crm.find", "retry_safe": true`)))
	w.answer = func(context.Context, int) (presence.ServiceReply, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		return presence.ServiceReply{Data: []byte(`"with ` + w.requests[len(w.requests)-1].Header["Crm-Key"] + `"`)}, nil
	}
	v := &vault{value: "first-secret"}
	tools, err := New(Options{Headers: map[string]string{"Crm-Key": "CRM_KEY"}, Secrets: v})
	if err != nil {
		t.Fatal(err)
	}
	stop, err := tools.Start(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	call := callOf("crm.find", `{}`, true)
	call.Spaces = []executor.CallSpace{{Space: "crm", Kind: "pack"}}
	for _, value := range []string{"first-secret", "second-secret"} {
		v.value = value
		bridge.Rehearse(t.Context(), newExecutor{tools, call.Spaces}, call, bridge.Rehearsal{RunTime: time.Minute})
		if got := w.requests[len(w.requests)-1].Header["Crm-Key"]; got != value {
			t.Errorf("the header: got %q, want %q", got, value)
		}
	}
	if r := bridge.Rehearse(t.Context(), newExecutor{tools, call.Spaces}, call, bridge.Rehearsal{RunTime: time.Minute}); r.Shown != `"with *****"` {
		t.Errorf("shown: got %q", r.Shown)
	}
	v.value = ""
	asked := len(w.requests)
	if r := bridge.Rehearse(t.Context(), newExecutor{tools, call.Spaces}, call, bridge.Rehearsal{RunTime: time.Minute}); r.Code != CodeSecretMissing || len(w.requests) != asked {
		t.Errorf("without the secret: got %s (%s), and %d requests", r.Code, r.Detail, len(w.requests)-asked)
	}
	for _, bad := range []map[string]string{{"Refold-Session": "A"}, {"nats-x": "A"}, {"A B": "A"}, {"A": "x y"}} {
		if _, err := New(Options{Headers: bad}); err == nil {
			t.Errorf("%v is taken", bad)
		}
	}
}

// newExecutor adds to a call the spaces that a rehearsal leaves out.
type newExecutor struct {
	*Tools
	spaces []executor.CallSpace
}

func (e newExecutor) Execute(ctx context.Context, call executor.Call) (executor.Result, error) {
	call.Spaces = e.spaces
	return e.Tools.Execute(ctx, call)
}
