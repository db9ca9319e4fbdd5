package client_test

// Requesting runs, and following them.

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/natsio"
)

func TestEndWaitsForItsRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t).host()
	from, err := w.LastNotice(w.ctx)
	bustest.OK(t, err)
	seq := w.ask("s1", "hi")
	w.answer("s1", 1, "hello")
	var said []string
	end, err := w.End(w.ctx, "s1", seq, from+1, func(n client.Notice) { said = append(said, n.Type) })
	bustest.OK(t, err)
	if end.Run != 1 || end.Lifecycle != session.Completed || end.Output == nil || end.Output.Text != "hello" {
		t.Errorf("end: got %+v, want run 1 completed with hello", end)
	}
	if want := []string{"SessionOpened", "RunStarted", "RunFinished"}; !slices.Equal(said, want) {
		t.Errorf("notices: got %v, want %v", said, want)
	}
	v, err := w.View(w.ctx, "s1")
	if err != nil || v.Lifecycle != session.Completed || v.Count != 2 {
		t.Errorf("view: got %+v (%v), want 2 events, completed", v, err)
	}
}

// Runs are told apart by their request.
func TestEndsOfSeveralRunsAreNotMixedUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t).host()
	first, second := w.ask("s1", "one"), w.ask("s1", "two")
	w.answer("s1", 1, "1")
	w.answer("s1", 2, "2")
	if end := w.end("s1", second); end.Run != 2 || end.Output.Text != "2" {
		t.Errorf("end of the second: got %+v", end)
	}
	if end := w.end("s1", first); end.Run != 1 || end.Output.Text != "1" {
		t.Errorf("end of the first: got %+v", end)
	}
}

// Closing a session ends several runs, whose notices are one message.
func TestEndsOfOneEventAreReadOneByOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t).host()
	first, second := w.ask("s1", "one"), w.ask("s1", "two")
	_, err := w.CloseSession(w.ctx, "s1", "")
	bustest.OK(t, err)
	from := uint64(0)
	for i, seq := range []uint64{first, second} {
		end, err := w.End(w.ctx, "s1", seq, from+1, func(n client.Notice) { from = n.StreamSeq })
		if err != nil || end.Run != uint32(i+1) || end.Lifecycle != session.Cancelled {
			t.Errorf("run %d: the end is %+v (%v)", i+1, end, err)
		}
	}
}

func TestRepeatedRequestIDRunsOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := client.RunOptions{ID: "id-1"}
	first, err := w.Run(w.ctx, "s1", "hi", o)
	bustest.OK(t, err)
	if again, err := w.Run(w.ctx, "s1", "hi", o); err != nil || again != first {
		t.Errorf("the same again: got %d (%v), want %d", again, err, first)
	}
	if _, err := w.Run(w.ctx, "s1", "other", o); !errors.Is(err, journal.ErrIDTaken) {
		t.Errorf("another request with the same id: got %v", err)
	}
}

func TestLargeTextIsStoredAsBlob(t *testing.T) {
	t.Parallel()
	w := newWorld(t).host()
	text := strings.Repeat("0123456789abcdef", session.TextBytesMax/8)
	seq := w.ask("s1", text)
	w.answer("s1", 1, "ok")
	w.end("s1", seq)
	for e, err := range w.Events(w.ctx, "s1", seq) {
		bustest.OK(t, err)
		var content *session.Content
		bustest.OK(t, decodeInput(e, &content))
		if content.Blob == nil || content.Size != int64(len(text)) {
			t.Fatalf("input: got %+v, want a blob of %d bytes", content, len(text))
		}
		if got, err := w.Blob(w.ctx, *content.Blob); err != nil || string(got) != text {
			t.Errorf("blob: got %d bytes (%v), want the text", len(got), err)
		}
		break
	}
}

// The answer is too large for a notice.
func TestLargeAnswerIsReadFromTheLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t).host()
	seq := w.ask("s1", "hi")
	text := strings.Repeat("\x01", session.TextBytesMax/2-1000) // six bytes each in JSON
	payload, err := packed(session.TypeGenerationSettled, session.GenerationSettled{Effect: "r1t1", Status: "ok", Text: &session.Content{Text: text}})
	bustest.OK(t, err)
	if _, err := w.Publish(w.ctx, session.DoorLLM, "s1", payload, ""); err != nil {
		t.Fatal(err)
	}
	if end := w.end("s1", seq); end.Output == nil || end.Output.Text != text {
		t.Errorf("the answer is not that of the model: %.200v", end)
	}
}

func TestEndReportsWhyRunDoesNotEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t).host()
	w.ask("s1", "hi")
	refused, err := w.Run(w.ctx, "s1", "more", client.RunOptions{WhenBusy: "reject"})
	bustest.OK(t, err)
	var rejected *client.RejectedError
	if _, err := w.End(w.ctx, "s1", refused, 0, nil); !errors.As(err, &rejected) || rejected.Code != session.RejectRunActive {
		t.Errorf("a busy session: got %v, want run_active", err)
	}
	w.forge("s2", "r1t1", []byte{0x80})
	var stopped *client.QuarantinedError
	if _, err := w.End(w.ctx, "s2", w.ask("s2", "hi"), 0, nil); !errors.As(err, &stopped) || !strings.Contains(stopped.Reason, "s2.r1t1") {
		t.Errorf("a quarantined session: got %v, want the reason", err)
	}
	bustest.Until(t, "the view has the reason", func() bool { // the quarantine is stored after its notice
		v, err := w.View(w.ctx, "s2")
		return err == nil && v.Quarantined != nil && strings.Contains(v.Quarantined.Reason, "s2.r1t1")
	})
}

func TestInvalidRequestsAreNotSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before, err := w.LastEvent(w.ctx)
	bustest.OK(t, err)
	for want, ask := range map[string]func() (uint64, error){
		"UTF-8": func() (uint64, error) { return w.Run(w.ctx, "s1", "\xff", client.RunOptions{}) },
		"no_such_field": func() (uint64, error) {
			return w.Run(w.ctx, "s1", "hi", client.RunOptions{Config: []byte(`{"no_such_field":1}`)})
		},
		"config": func() (uint64, error) { return w.Run(w.ctx, "s1", "hi", client.RunOptions{Config: []byte(`{`)}) },
		"a b":    func() (uint64, error) { return w.Run(w.ctx, "a b", "hi", client.RunOptions{}) },
		"768 KiB": func() (uint64, error) {
			return w.Publish(w.ctx, session.DoorIn, "s1", make([]byte, session.EventBytesMax+1), "")
		},
		"door \"x": func() (uint64, error) { return w.Publish(w.ctx, "x", "s1", []byte("{}"), "") },
	} {
		if _, err := ask(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error that names %q", err, want)
		}
	}
	if after, err := w.LastEvent(w.ctx); err != nil || after != before {
		t.Errorf("the log ends at %d (%v), want %d: nothing is sent", after, err, before)
	}
}

// After a restart of the server, following continues, and yields nothing twice.
func TestFollowingSurvivesARestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t).host()
	w.ask("s1", "one")
	w.stored("s1", "r1t1")
	said, events := make(chan client.Notice, 16), make(chan session.Event, 16)
	go func() {
		for n, err := range w.Notices(w.ctx, "s1", 0) {
			if err != nil {
				close(said)
				return
			}
			said <- n
		}
	}()
	go func() {
		for e, err := range w.Events(w.ctx, "", 1) {
			if err != nil {
				close(events)
				return
			}
			events <- e
		}
	}()
	for range 2 {
		<-said
		<-events
	}
	w.node.Stop()
	w.node.Start()
	w.answer("s1", 1, "1")
	w.ask("s1", "two")
	for n := uint64(3); n <= 4; n++ {
		if got := <-said; got.N != n {
			t.Errorf("notice: got %d %s, want %d", got.N, got.Type, n)
		}
	}
	last := uint64(2)
	for range 2 {
		if e := <-events; e.Seq <= last {
			t.Errorf("event %d comes after %d", e.Seq, last)
		} else {
			last = e.Seq
		}
	}
}

func TestViewWithoutSessionActorIsAnError(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, err := w.View(w.ctx, "s1"); !errors.Is(err, natsio.ErrNoView) {
		t.Errorf("view: got %v, want %v", err, natsio.ErrNoView)
	}
}

// A session-actor hangs, and another one answers.
func TestViewIsRetriedAfterTimeout(t *testing.T) {
	t.Parallel()
	w := newWorld(t).host()
	seq := w.ask("s1", "hi")
	w.answer("s1", 1, "hello")
	w.end("s1", seq)
	nc, _ := testbus.JS(t, w.node)
	hung := make(chan struct{}, 64)
	// That of the services of the same name.
	sub, err := nc.QueueSubscribe(w.bus.Names().ViewAll(), "q", func(*nats.Msg) { hung <- struct{}{} })
	if err == nil {
		err = nc.FlushWithContext(w.ctx)
	}
	bustest.OK(t, err)
	for len(hung) == 0 {
		if v, err := w.View(w.ctx, "s1"); err != nil || v.Count != 2 {
			t.Fatalf("view: got %+v (%v)", v, err)
		}
	}
	bustest.OK(t, sub.Unsubscribe())
}

func TestLiveYieldsDeltas(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	deltas := make(chan client.Delta, 16)
	bustest.OK(t, w.Live(w.ctx, "s1", func(d client.Delta) { deltas <- d }))
	for _, payload := range []string{`no JSON`, `{"effect":"r1t1","start":"a","n":0,"text":"he"}`, `{"effect":"r1t1","start":"a","n":1,"text":"llo"}`} {
		bustest.OK(t, w.bus.PublishLive("s1", []byte(payload)))
	}
	if got, want := (<-deltas).Text+(<-deltas).Text, "hello"; got != want {
		t.Errorf("deltas: got %q, want %q", got, want)
	}
}

func TestConnectSaysWhatToDo(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t)
	url := node.URL()
	node.Stop()
	_, err := client.Connect(t.Context(), client.Options{URL: url})
	if !errors.Is(err, natsio.ErrNoServer) || !strings.Contains(err.Error(), "start one") {
		t.Errorf("connect: got %v", err)
	}
	if _, err := client.Connect(t.Context(), client.Options{Prefix: "No!"}); err == nil {
		t.Error("a bad prefix is taken")
	}
}
