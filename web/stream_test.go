package web_test

// Streams that are cut at random, at two servers of one log.

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/refold/refold"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/refoldtest"
	"github.com/refold/refold/web"
)

// chatty is a model that calls a tool in every first turn, and then writes in many deltas.
type chatty struct{}

func (chatty) Generate(_ context.Context, r executor.Request, delta func(string)) (executor.Answer, error) {
	if strings.HasSuffix(r.Effect, "t1") {
		return executor.Answer{Calls: []executor.AnswerCall{refoldtest.To("a_count", "{}")}}, nil
	}
	var all strings.Builder
	for i := range 20 {
		word := fmt.Sprintf("word %d of %s, ", i, r.Effect)
		delta(word)
		all.WriteString(word)
	}
	return executor.Answer{Text: all.String()}, nil
}

func talking() []refold.AgentOption {
	return []refold.AgentOption{
		refold.Model(refold.ModelRef{Provider: "chatty", Model: "chatty", Open: func() (executor.Model, error) { return chatty{}, nil }}),
		refold.Tools(refold.Func("a.count", func(context.Context, struct{}) (int, error) { return 1, nil }, refold.RetrySafe())),
	}
}

// told returns updates as a reader shows them in the end: texts of a turn as one, without
// what became void, and without what is no event of the log.
func told(all []web.Update) (lines []string) {
	for _, u := range all {
		last := len(lines) - 1
		turn := fmt.Sprintf("text %d.%d ", u.Run, u.Turn)
		continues := last >= 0 && strings.HasPrefix(lines[last], turn)
		switch {
		case u.Type == "waiting":
		case u.Type == "text" && continues:
			lines[last] += u.Delta
		case u.Type == "text":
			lines = append(lines, turn+u.Delta)
		case u.Type == "text_restarted" && continues:
			lines = lines[:last]
		case u.Type == "text_restarted":
		case u.Call != nil:
			lines = append(lines, fmt.Sprintf("%s %s %s", u.Type, u.Call.Call, u.Call.Status))
		default:
			lines = append(lines, fmt.Sprintf("%s %d %s", u.Type, u.Run, u.Lifecycle))
		}
	}
	return lines
}

// reader reads a session's updates until the end of a run, over connections that are cut
// after a random number of bytes. The even ones are at another server.
func (w *world) reader(urls []string, until uint32, seed uint64) (all []web.Update, cuts int, err error) {
	random := rand.New(rand.NewPCG(seed, 1))
	position := "start"
	for {
		r := w.request("all", http.MethodGet, urls[cuts%len(urls)]+"/v1/sessions/s/updates?after="+position, "")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return nil, cuts, err
		}
		if answer.StatusCode != http.StatusOK {
			text, _ := io.ReadAll(answer.Body)
			return nil, cuts, fmt.Errorf("after %s: %d %s", position, answer.StatusCode, text)
		}
		bytes := int64(60 + random.IntN(500))
		if cuts >= 50 && position != "start" {
			bytes = 1 << 30 // the rest in one go
		}
		s := &events{body: answer.Body, in: bufio.NewReader(io.LimitReader(answer.Body, bytes))}
		for {
			e, err := s.next()
			if err != nil {
				break
			}
			var u web.Update
			if err := json.Unmarshal([]byte(e.data), &u); err != nil || e.kind != "" {
				return nil, cuts, fmt.Errorf("%+v: %w", e, err)
			}
			all, position = append(all, u), e.id
			if u.Type == "run_ended" && u.Run == until {
				answer.Body.Close()
				return all, cuts, nil
			}
		}
		answer.Body.Close()
		if w.ctx.Err() != nil {
			return nil, cuts, w.ctx.Err()
		}
		cuts++
	}
}

// FD-05, FD-12: two readers whose streams are cut get each update of the log once, in its
// order, at either of two servers.
func TestCutStreamsGoOnWhereTheyWere(t *testing.T) {
	t.Parallel()
	w := serve(t, web.Options{}, talking()...)
	urls := []string{w.url, w.handler(web.Options{})}
	const runs = 25
	var reading sync.WaitGroup
	got := make([][]string, 2)
	for i := range got {
		seed := rand.Uint64()
		reading.Go(func() {
			all, cuts, err := w.reader(urls, runs, seed)
			if err != nil || cuts < 50 {
				t.Errorf("seed %d: %d cuts, want 50 (%v)", seed, cuts, err)
			}
			if got[i] = told(all); t.Failed() {
				t.Logf("seed %d", seed)
			}
		})
	}
	for i := range runs {
		w.want(http.StatusOK, nil, "all", "POST", "/v1/sessions/s/runs", `{"agent": "helper", "input": "Talk."}`, "Prefer", "wait=60", "Idempotency-Key", fmt.Sprint(i))
	}
	reading.Wait()
	var all []web.Update
	s := w.follow("all", "/v1/sessions/s/updates?after=start")
	for len(all) == 0 || all[len(all)-1].Type != "run_ended" || all[len(all)-1].Run != runs {
		u, _ := w.update(s)
		all = append(all, u)
	}
	want := told(all)
	for i := range got {
		for at := range max(len(got[i]), len(want)) {
			if at >= len(got[i]) || at >= len(want) || got[i][at] != want[at] {
				t.Errorf("reader %d: from line %d on got\n%s\nwant\n%s", i, at, beginning(got[i], at), beginning(want, at))
				break
			}
		}
	}
	if len(want) != runs*5 {
		t.Errorf("%d lines of %d runs, want 5 each: %s", len(want), runs, strings.Join(want, "\n"))
	}
}

// beginning returns some lines from one on.
func beginning(lines []string, from int) string {
	return strings.Join(lines[min(from, len(lines)):min(from+3, len(lines))], "\n")
}

// A stream without a position says where it begins, so that a client whose connection
// is lost before the first update misses nothing.
func TestStreamSaysWhereItBegins(t *testing.T) {
	t.Parallel()
	w := serve(t, web.Options{}, talking()...)
	s := w.follow("all", "/v1/sessions/s/updates")
	for s.id == "" {
		line, err := s.in.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		s.id, _ = strings.CutPrefix(strings.TrimSuffix(line, "\n"), "id: ")
		if !strings.HasPrefix(line, "id: ") {
			s.id = ""
		}
	}
	s.body.Close()
	w.want(http.StatusOK, nil, "all", "POST", "/v1/sessions/s/runs", `{"agent": "helper", "input": "Talk."}`, "Prefer", "wait=60")
	if u, _ := w.update(w.follow("all", "/v1/sessions/s/updates", "Last-Event-ID", s.id)); u.Type != "run_started" {
		t.Errorf("after %s got %+v, want run_started", s.id, u)
	}
}

// FD-12: one key at two servers at once is one run.
func TestOneKeyAtTwoServersIsOneRun(t *testing.T) {
	t.Parallel()
	w := serve(t, web.Options{}, talking()...)
	urls := []string{w.url, w.handler(web.Options{})}
	var asking sync.WaitGroup
	var mu sync.Mutex
	runs := map[uint32]int{}
	for i := range 8 {
		asking.Go(func() {
			var got web.RunAccepted
			w.want(http.StatusAccepted, &got, "all", "POST", urls[i%2]+"/v1/sessions/s/runs", `{"agent": "helper", "input": "Talk."}`, "Idempotency-Key", "k")
			mu.Lock()
			defer mu.Unlock()
			runs[got.Run]++
		})
	}
	asking.Wait()
	if len(runs) != 1 || runs[1] != 8 {
		t.Errorf("got %v, want 8 times run 1", runs)
	}
}

// FD-12: one control, sent to two servers at once with one key, takes effect once: each
// answer has the same run, or event. Another control with that key is another one.
func TestOneKeyAtTwoServersIsOneControl(t *testing.T) {
	t.Parallel()
	w := serve(t, web.Options{}, talking()...)
	urls := []string{w.url, w.handler(web.Options{})}
	w.want(http.StatusOK, nil, "all", "POST", "/v1/sessions/s/runs", `{"agent": "helper", "input": "Talk."}`, "Prefer", "wait=60")
	for _, control := range []struct{ path, body string }{
		{"/v1/sessions/s/steer", `{"input": "More."}`}, {"/v1/sessions/s/end", ``},
	} {
		var asking sync.WaitGroup
		var mu sync.Mutex
		events := map[uint64]int{}
		for i := range 8 {
			asking.Go(func() {
				got := w.do("all", "POST", urls[i%2]+control.path, control.body, "Idempotency-Key", "k", "Content-Type", "application/json")
				var of struct{ Seq, Run uint64 }
				if got.into(t, &of); got.status/100 != 2 || of.Seq == 0 {
					t.Errorf("%s: got %d %s", control.path, got.status, got.text)
				}
				mu.Lock()
				defer mu.Unlock()
				events[cmp.Or(of.Run, of.Seq)]++
			})
		}
		asking.Wait()
		if len(events) != 1 {
			t.Errorf("%s: the answers have the runs or events %v, want one", control.path, events)
		}
	}
}
