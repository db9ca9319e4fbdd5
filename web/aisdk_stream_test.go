package web_test

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/web"
)

// led is a model that does what the test says: it writes a text, breaks off so that the
// turn begins again, fails, or ends its turn.
type led struct {
	say chan string // a delta; again, fail or end
}

func (m led) Generate(ctx context.Context, _ executor.Request, delta func(string)) (executor.Answer, error) {
	var all strings.Builder
	for {
		select {
		case <-ctx.Done():
			return executor.Answer{}, ctx.Err()
		case say := <-m.say:
			switch say {
			case "again":
				return executor.Answer{}, &executor.Error{Code: "broken_off", Detail: "the connection is lost", Retryable: true}
			case "fail":
				return executor.Answer{}, &executor.Error{Code: "refused", Detail: "I may not say that"}
			case "end":
				return executor.Answer{Text: all.String()}, nil
			}
			delta(say)
			all.WriteString(say)
		}
	}
}

func (m led) agent() refold.AgentOption {
	return refold.Model(refold.ModelRef{Provider: "led", Model: "led", Open: func() (executor.Model, error) { return m, nil }})
}

// live is a stream that is open.
type live struct {
	w  *world
	in *events
	t  *testing.T
}

func (w *world) live(t *testing.T, method, path, body string) *live {
	t.Helper()
	got, err := http.DefaultClient.Do(w.request("all", method, path, body))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { got.Body.Close() })
	if got.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: got %d", method, path, got.StatusCode)
	}
	return &live{w, &events{body: got.Body, in: bufio.NewReader(got.Body)}, t}
}

// next returns the next chunk; transient ones don't count.
func (l *live) next() (c chunk) {
	l.t.Helper()
	for {
		e, err := l.in.next()
		if err != nil {
			l.t.Fatal(err)
		}
		if e.data == "[DONE]" {
			return chunk{Type: "[DONE]"}
		}
		c = chunk{}
		answer{text: e.data}.into(l.t, &c)
		if !c.Transient {
			return c
		}
	}
}

// want reads chunks until they are these.
func (l *live) want(lines ...string) {
	l.t.Helper()
	var all []chunk
	for {
		all = append(all, l.next())
		got, want := shownAs(all), strings.Join(lines, "\n")
		switch {
		case got == want:
			return
		case !strings.HasPrefix(want, got):
			l.t.Fatalf("got\n%s\nwant\n%s", got, want)
		}
	}
}

// Rows "resume", "stop" and "history": a page that was reloaded gets the whole answer again,
// a lost connection stops nothing, and a cancelled run says so.
func TestAISDKResumeAndCancel(t *testing.T) {
	t.Parallel()
	m := led{make(chan string)}
	w := serve(t, web.Options{}, m.agent())
	first := w.live(t, "POST", aiSDK, says("s", "m1", "Tell me.").String())
	first.want("start run-1")
	m.say <- "Once "
	first.want("start-step", "text-start r1t1", "text Once ")
	first.in.body.Close() // stop() of useChat
	again := w.live(t, "GET", aiSDK+"/s/stream", "")
	again.want("start run-1", "start-step", "text-start r1t1", "text Once ")
	m.say <- "upon "
	again.want("text upon ")
	var history []message
	w.want(http.StatusOK, &history, "all", "GET", aiSDK+"/s/messages", "")
	if len(history) != 1 || history[0].ID != "m1" {
		t.Errorf("got %+v, want the question: the turn has no answer in the log", history)
	}

	// A message to a busy session waits its turn, and is the current answer then.
	queued := w.live(t, "POST", aiSDK, says("s", "m2", "And you?").String())
	queued.want("start run-2")
	w.want(http.StatusOK, &history, "all", "GET", aiSDK+"/s/messages", "")
	if len(history) != 2 || history[1].ID != "m2" || history[1].Parts[0].Text != "And you?" {
		t.Errorf("got %+v, want the queued question", history)
	}
	w.live(t, "GET", aiSDK+"/s/stream", "").want("start run-2")

	w.want(http.StatusNoContent, nil, "all", "DELETE", aiSDK+"/s", "")
	again.want("text-end r1t1", "finish-step", "message-metadata", "abort cancelled", "[DONE]")
	queued.want("message-metadata", "abort cancelled", "[DONE]")
	w.want(http.StatusNoContent, nil, "all", "GET", aiSDK+"/s/stream", "")
	w.want(http.StatusNoContent, nil, "all", "DELETE", aiSDK+"/s", "") // nothing is open
	w.want(http.StatusNoContent, nil, "all", "DELETE", aiSDK+"/nowhere", "")
	w.want(http.StatusOK, &history, "all", "GET", aiSDK+"/s/messages", "")
	if len(history) < 2 || !strings.Contains(string(history[1].Metadata), `"lifecycle":"cancelled"`) {
		t.Errorf("got %+v, want a cancelled answer", history)
	}
	w.want(http.StatusOK, &history, "all", "GET", aiSDK+"/nowhere/messages", "")
	if len(history) != 0 {
		t.Errorf("a session that does not exist has %+v", history)
	}
}

// Row "a turn begins again": reset-step for version 7, else an error that tells the page
// to resume; and a run that fails.
func TestAISDKTurnBeginsAgain(t *testing.T) {
	t.Parallel()
	m := led{make(chan string)}
	w := serve(t, web.Options{}, m.agent())
	seven := w.live(t, "POST", aiSDK+"?ui=7", says("s", "m1", "Tell me.").String())
	six := w.live(t, "POST", aiSDK, says("s", "m1", "Tell me.").String())
	m.say <- "Half"
	for _, page := range []*live{seven, six} {
		page.want("start run-1", "start-step", "text-start r1t1", "text Half")
	}
	m.say <- "again"
	m.say <- "Whole"
	seven.want("reset-step", "text-start r1t1", "text Whole")
	six.want("error turn_restarted: the model began its turn again: call resumeStream()", "[DONE]")
	resumed := w.live(t, "GET", aiSDK+"/s/stream", "")
	resumed.want("start run-1", "start-step", "text-start r1t1", "text Whole")
	m.say <- "end"
	for _, page := range []*live{seven, resumed} {
		page.want("text-end r1t1", "finish-step", "finish stop", "[DONE]")
	}
	failing := w.live(t, "POST", aiSDK, says("s", "m2", "And?").String())
	m.say <- "fail"
	failing.want("start run-2", "message-metadata", "error refused: I may not say that", "[DONE]")
}

// A bridge that is lost in the middle of a turn: another one begins the turn again.
func TestAISDKBridgeIsLost(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t)
	stop := carry(t, node)
	defer func() { stop() }()
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	open := func(o ...nats.Option) *refold.Runtime {
		nc, err := nats.Connect(node.URL(), o...)
		bustest.OK(t, err)
		t.Cleanup(nc.Close)
		rt, err := refold.Open(ctx, refold.NATS(nc), refold.Grace(time.Millisecond))
		bustest.OK(t, err)
		t.Cleanup(func() { _ = rt.Close() }) // the lost one can't give back what it has
		return rt
	}
	serves := func(rt *refold.Runtime, m led, o ...refold.AgentOption) {
		_, err := rt.Agent("helper", append(o, m.agent())...)
		bustest.OK(t, err)
	}
	lost, other := led{make(chan string)}, led{make(chan string)}
	w := &world{t: t, ctx: ctx, rt: open()}
	serves(w.rt, lost, refold.ServedElsewhere())
	w.url = w.handler(web.Options{})
	line := &line{}
	serves(open(nats.SetCustomDialer(line)), lost)
	page := w.live(t, "POST", aiSDK+"?ui=7", says("s", "m1", "Tell me.").String())
	lost.say <- "Half"
	page.want("start run-1", "start-step", "text-start r1t1", "text Half")
	line.cut()
	serves(open(), other)
	other.say <- "Whole"
	page.want("reset-step", "text-start r1t1", "text Whole")
	other.say <- "end"
	page.want("text-end r1t1", "finish-step", "finish stop", "[DONE]")
}

// line is how a process reaches its server, until it is cut.
type line struct {
	mu    sync.Mutex
	conns []net.Conn
	isCut bool
}

var errCut = errors.New("the line is cut")

// Dial implements nats.CustomDialer.
func (l *line) Dial(network, address string) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isCut {
		return nil, errCut
	}
	conn, err := net.Dial(network, address)
	if err == nil {
		l.conns = append(l.conns, conn)
	}
	return conn, err
}

func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isCut = true
	for _, conn := range l.conns {
		conn.Close()
	}
}

// Row "approval": a call that runs keeps the response open, and one that waits its turn
// behind an approval is not shown before.
func TestAISDKApprovalAmongOtherCalls(t *testing.T) {
	t.Parallel()
	hold := map[string]chan string{"slow": make(chan string), "later": make(chan string)}
	tool := func(id string, o ...refold.ToolOption) *refold.Tool {
		return refold.Func(id, func(ctx context.Context, _ struct{}) (string, error) {
			wait := hold[id[2:]]
			if wait == nil {
				return "signed", nil
			}
			select {
			case text := <-wait:
				return text, nil
			case <-ctx.Done():
				return "", ctx.Err()
			}
		}, o...)
	}
	m := scripted{calls: []executor.AnswerCall{{Name: "t_slow"}, {Name: "t_sign"}, {Name: "t_later"}}}
	w := serve(t, web.Options{}, refold.Tools(tool("t.slow", refold.ParallelSafe()), tool("t.sign", refold.ParallelSafe(), refold.NeedsApproval()), tool("t.later")), m.agent())
	page := w.live(t, "POST", aiSDK, says("s", "m1", "Sign it.").String())
	page.want("start run-1", "start-step", "tool-input-available r1t1c0 t_slow {}", "tool-input-available r1t1c1 t_sign {}", "tool-approval-request r1t1c1")
	hold["slow"] <- "slowly"
	page.want(`tool-output-available r1t1c0 "slowly"`, "finish-step", "finish tool-calls", "[DONE]")
	var history []message
	w.want(http.StatusOK, &history, "all", "GET", aiSDK+"/s/messages", "")
	yes := true
	sign := &history[1].Parts[2]
	sign.State, sign.Approval.Approved = "approval-responded", &yes
	page = w.live(t, "POST", aiSDK, chat{ID: "s", Messages: history, MessageID: "run-1"}.String())
	page.want("start run-1")
	both := []string{shownAs([]chunk{page.next()}), shownAs([]chunk{page.next()})} // t_later begins when t_sign ends
	slices.Sort(both)
	if want := []string{"tool-input-available r1t1c2 t_later {}", `tool-output-available r1t1c1 "signed"`}; !slices.Equal(both, want) {
		t.Errorf("got %q, want %q", both, want)
	}
	hold["later"] <- "at last"
	page.want(`tool-output-available r1t1c2 "at last"`, "finish-step", "start-step", "text-start r1t2", "text Done.", "text-end r1t2", "finish-step", "finish stop", "[DONE]")
}

// scripted is a model that makes calls, and then says that it is done.
type scripted struct{ calls []executor.AnswerCall }

func (m scripted) Generate(_ context.Context, r executor.Request, _ func(string)) (executor.Answer, error) {
	if strings.HasSuffix(r.Effect, "t1") {
		return executor.Answer{Calls: m.calls}, nil
	}
	return executor.Answer{Text: "Done."}, nil
}

func (m scripted) agent() refold.AgentOption {
	return refold.Model(refold.ModelRef{Provider: "scripted", Model: "scripted", Open: func() (executor.Model, error) { return m, nil }})
}
