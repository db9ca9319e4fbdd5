package web_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/web"
)

// wordy is a model that writes half a megabyte in each turn.
type wordy struct{}

func (wordy) Generate(_ context.Context, _ executor.Request, delta func(string)) (executor.Answer, error) {
	word := strings.Repeat("word ", 6_500)
	for range 16 {
		delta(word)
	}
	return executor.Answer{Text: strings.Repeat(word, 16)}, nil
}

// rest reads updates until the end of a run or of the stream, and returns the position of
// the last one.
func (w *world) rest(s *events, until uint32) (all []web.Update, position string) {
	w.t.Helper()
	for {
		e, err := s.next()
		if err != nil {
			return all, position
		}
		var u web.Update
		if err := json.Unmarshal([]byte(e.data), &u); err != nil || e.kind != "" {
			w.t.Fatalf("%+v: %v", e, err)
		}
		position = e.id
		if all = append(all, u); u.Type == "run_ended" && u.Run == until {
			return all, position
		}
	}
}

// A reader that takes nothing is dropped, so that it holds nothing of the server, and goes
// on where it was.
func TestSlowReaderIsDroppedAndGoesOn(t *testing.T) {
	t.Parallel()
	w := serve(t, web.Options{Limits: web.Limits{SlowReader: time.Second, Streams: 1}},
		refold.Model(refold.ModelRef{Provider: "wordy", Model: "wordy", Open: func() (executor.Model, error) { return wordy{}, nil }}))
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.(*net.TCPConn).SetReadBuffer(64 << 10); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprint(conn, "GET /v1/sessions/s/updates?after=start HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer all\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	const runs = 12
	for range runs {
		w.want(http.StatusOK, nil, "all", "POST", "/v1/sessions/s/runs", `{"agent": "helper", "input": "Talk."}`, "Prefer", "wait=60")
	}
	// The caller may have one stream: another one opens when the slow one has ended.
	follow := func(after string) []web.Update {
		for { // w.ctx bounds it
			r, err := http.DefaultClient.Do(w.request("all", "GET", "/v1/sessions/s/updates?after="+after, ""))
			if err != nil {
				t.Fatal(err)
			}
			if r.StatusCode == http.StatusOK {
				all, _ := w.rest(&events{body: r.Body, in: bufio.NewReader(r.Body)}, runs)
				r.Body.Close()
				return all
			}
			r.Body.Close()
		}
	}
	want := told(follow("start"))
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	got, position := w.rest(&events{body: answer.Body, in: bufio.NewReader(answer.Body)}, runs)
	if position == "" || got[len(got)-1].Type == "run_ended" && got[len(got)-1].Run == runs {
		t.Fatalf("the slow reader got all of %d updates: it was not dropped", len(got))
	}
	got = append(got, follow(position)...)
	if !slices.Equal(told(got), want) || len(want) != 3*runs {
		t.Errorf("the slow reader has %d lines, want the %d of another reader", len(told(got)), len(want))
	}
}
