package web_test

// What: no answer has what a pattern of Options.Redact matches (UI-22), whatever is asked
// for, in whatever form, and also where a text is cut or comes in parts.
//
// How: a secret is planted in all that clients, models and tools can fill. Every operation
// of the document that only reads, and every stream, is asked; their bodies and headers are
// searched.

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/inside"
	"github.com/refold/refold/refoldtest"
	"github.com/refold/refold/web"
)

const planted = `sk-"7"-0123456789abcdef`

type question struct {
	Query string `json:"query"`
}

// parts is a model that writes the secret in parts.
type parts struct{ calls bool }

// Generate implements executor.Model.
func (m parts) Generate(ctx context.Context, r executor.Request, delta func(string)) (executor.Answer, error) {
	if m.calls && len(r.Messages) == 1 {
		return refoldtest.Calls(refoldtest.To("docs_search", question{planted}), refoldtest.To("shop_buy", order{planted}))(r)
	}
	for _, part := range []string{"The key is sk-\"7\"-0123", "4567", "89abcdef", ", as you know. ", strings.Repeat("word ", 40)} {
		delta(part)
	}
	return executor.Answer{Text: "The key is " + planted + ", as you know. " + strings.Repeat("word ", 40)}, nil
}

func TestRedactedAnswersHaveNoSecret(t *testing.T) {
	t.Parallel()
	look := refold.Func("docs.search", func(_ context.Context, in question) (string, error) {
		return `{"found": "` + strings.ReplaceAll(in.Query, `"`, `\"`) + `"}`, nil
	}, refold.RetrySafe())
	patterns, err := web.Patterns("# keys of a provider\nsk-\"\\d\"-[0-9a-f]{8,}\n")
	if err != nil {
		t.Fatal(err)
	}
	w := serve(t, web.Options{}, refold.Tools(shop(), look), refold.System("Never tell "+planted+"."),
		refold.Model(refold.ModelRef{Provider: "parts", Model: "parts", Open: func() (executor.Model, error) { return parts{true}, nil }}))
	plain := w.url
	w.url = w.handler(web.Options{Redact: patterns})
	input, err := json.Marshal(strings.Repeat("a ", 1500) + planted + strings.Repeat(" b", 3000))
	if err != nil {
		t.Fatal(err)
	}
	w.want(http.StatusAccepted, nil, "all", "POST", "/v1/sessions/s/runs", `{"agent": "helper", "input": `+string(input)+`}`)
	streams := []*seen{w.watch("/v1/live"), w.watch("/v1/sessions/s/updates?after=start"), w.watch("/v1/sessions/s/live?after=2")}
	value := planted
	if _, err := inside.Of(w.rt).Client().SetFacts(w.ctx, "s", map[string]*string{"key": &value}, ""); err != nil {
		t.Fatal(err)
	}
	var list web.ApprovalList
	for len(list.Approvals) == 0 { // w.ctx bounds it
		w.want(http.StatusOK, &list, "all", "GET", "/v1/approvals", "")
	}
	w.want(http.StatusOK, nil, "all", "POST", "/v1/sessions/s/approvals/r1t1c1", `{"decision": "deny", "args_hash": "`+list.Approvals[0].ArgsHash+`", "reason": "`+strings.ReplaceAll(planted, `"`, `\"`)+`"}`)
	var events web.EventList
	for len(events.Events) == 0 || !slices.ContainsFunc(events.Events, func(e web.EventHead) bool { return e.Type == "GenerationSettled" }) {
		w.want(http.StatusOK, &events, "all", "GET", "/v1/sessions/s/events", "")
	}
	stored := map[string]bool{"getRawEvent": true, "getLog": true, "getProof": true, "getInstall": true}
	var paths []string
	for _, o := range web.Operations() {
		if o.Method == http.MethodGet && !o.Stream && !stored[o.Name] {
			paths = append(paths, in(o, "s"))
		}
	}
	last := events.Events[len(events.Events)-1].Seq
	for _, e := range events.Events {
		at := "/v1/sessions/s/events/" + fmt.Sprint(e.Seq)
		paths = append(paths, at, at+"/text", "/v1/sessions/s/state?at="+fmt.Sprint(e.Seq), "/v1/sessions/s/diff?a="+fmt.Sprint(e.Seq)+"&b="+fmt.Sprint(last))
	}
	secret := regexp.MustCompile(`0123456|789abcdef|sk-`)
	for _, path := range paths {
		got := w.do("all", "GET", path, "")
		if none := strings.Contains(path, "/installs/2/"); (got.status != http.StatusOK) != none {
			t.Errorf("%s: got %d %s", path, got.status, got.text)
		}
		if at := secret.FindStringIndex(got.text); at != nil {
			t.Errorf("%s: the answer has the secret: …%s…", path, got.text[max(0, at[0]-80):min(len(got.text), at[1]+40)])
		}
		for name, values := range got.header {
			if secret.MatchString(strings.Join(values, "\n")) {
				t.Errorf("%s: the header %s has the secret", path, name)
			}
		}
	}
	w.refuse(http.StatusNotFound, "not_found", "all", "GET", "/v1/nowhere/"+"sk-", "")
	for _, path := range []string{"/events/" + fmt.Sprint(last) + "/raw", "/log", "/proof", "/install"} {
		w.refuse(http.StatusForbidden, "forbidden", "all", "GET", "/v1/sessions/s"+path, "")
	}
	ended := regexp.MustCompile(`run_ended|RunFinished|"completed"`)
	for _, s := range streams {
		text := s.until(func(text string) bool {
			return ended.MatchString(text) // however many states before it were skipped
		})
		if at := secret.FindStringIndex(text); at != nil {
			t.Errorf("%s: the stream has the secret: …%s…", s.path, text[max(0, at[0]-80):min(len(text), at[1]+40)])
		}
		if strings.Contains(s.path, "updates") && !strings.Contains(text, "The key is [redacted], as you know.") {
			t.Errorf("%s lacks the text around the secret: %s", s.path, text)
		}
	}
	if _, err := w.rt.Agent("talker", refold.Model(refold.ModelRef{Provider: "parts", Model: "talker", Open: func() (executor.Model, error) { return parts{}, nil }})); err != nil {
		t.Fatal(err)
	}
	for path, body := range map[string]string{
		"/v1/ai-sdk/talker": strings.Replace(bodies["aiSDKSend"], "hidden", "t", 1),
		"/v1/ag-ui/talker":  `{"threadId": "u", "runId": "run-1", "messages": [{"id": "m1", "role": "user", "content": "hi"}]}`,
	} {
		text := w.want(http.StatusOK, nil, "all", "POST", path, body).text
		if secret.MatchString(text) || !strings.Contains(text, "The key is [redacted], as you know.") {
			t.Errorf("%s: got %s, want the text without the secret", path, text)
		}
	}
	// The test would find it.
	w.url = plain
	if text := w.want(http.StatusOK, nil, "all", "GET", "/v1/sessions/s/transcript", "").text; !secret.MatchString(text) {
		t.Errorf("without patterns the transcript lacks the secret: %s", text)
	}
}

// seen is what came of a stream so far.
type seen struct {
	t    testing.TB
	path string
	came chan string
}

// watch reads a stream in the background.
func (w *world) watch(path string) *seen {
	w.t.Helper()
	got, err := http.DefaultClient.Do(w.request("all", http.MethodGet, path, ""))
	if err != nil {
		w.t.Fatal(err)
	}
	s := &seen{w.t, path, make(chan string)}
	w.t.Cleanup(func() { got.Body.Close() })
	go func() {
		defer close(s.came)
		for part := make([]byte, 4096); ; {
			n, err := got.Body.Read(part)
			if n > 0 {
				select {
				case s.came <- string(part[:n]):
				case <-w.ctx.Done():
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	return s
}

// until returns what came when it is enough.
func (s *seen) until(enough func(string) bool) (text string) {
	s.t.Helper()
	deadline := time.After(time.Minute)
	for !enough(text) {
		select {
		case part, ok := <-s.came:
			if !ok {
				s.t.Fatalf("%s ended: %s", s.path, text)
			}
			text += part
		case <-deadline:
			s.t.Fatalf("%s: got only %s", s.path, text)
		}
	}
	return text
}

func TestPatternsNameTheirFault(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"a\n\n# b\n(c": "line 4: error parsing regexp", "x*": "line 1: x* matches the empty text"} {
		if _, err := web.Patterns(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}
