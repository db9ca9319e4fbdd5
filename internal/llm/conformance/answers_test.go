package conformance

// Answers as public reports describe them, from testdata/answers: every form is
// read, or refused with a sentence, and nothing complete is requested twice.

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/llm/endpoint"
)

// reportedCase is a case of testdata/answers.
type reportedCase struct {
	name, body string
	fields     map[string]string
}

func reportedCases(t *testing.T, file string) []reportedCase {
	t.Helper()
	archive, err := txtar.ParseFile("testdata/answers/" + file)
	must(t, err)
	var cases []reportedCase
	for _, f := range archive.Files {
		if strings.HasPrefix(f.Name, "words of ") {
			continue
		}
		head, body, ok := strings.Cut(string(f.Data), "\n\n")
		c := reportedCase{name: f.Name, body: body, fields: map[string]string{}}
		for line := range strings.Lines(head) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			c.fields[name] = value
		}
		if !ok || !strings.HasPrefix(c.fields["source"], "https://") || c.fields["api"] == "" {
			t.Fatalf("%s: %s has no body, no source or no api", file, f.Name)
		}
		cases = append(cases, c)
	}
	return cases
}

// reply returns an HTTP response.
func reply(status, media, header, body string) string {
	head := "HTTP/1.1 " + cmp.Or(status, "200") + " -\r\nConnection: close\r\n"
	if media != "" {
		head += "Content-Type: " + media + "\r\n"
	}
	if header != "" {
		head += header + "\r\n"
	}
	return head + "\r\n" + body
}

// eventsOf returns lines as events.
func eventsOf(lines string) string {
	var b strings.Builder
	for line := range strings.Lines(lines) {
		fmt.Fprintf(&b, "data: %s\n\n", strings.TrimSpace(line))
	}
	return b.String()
}

// answerOf is an answer as the cases write it.
type answerOf struct {
	Text   string   `json:"text"`
	Finish string   `json:"finish"`
	Calls  []string `json:"calls"`
}

func shortAnswer(a *executor.Answer) answerOf {
	short := answerOf{Text: a.Text, Finish: a.FinishReason}
	for _, c := range a.Calls {
		short.Calls = append(short.Calls, c.Name+" "+c.Arguments)
	}
	return short
}

// play plays a case to the clients that it names.
func (c *reportedCase) play(t *testing.T, response string) {
	for _, a := range apis() {
		if !slices.Contains(strings.Fields(c.fields["api"]), a.name) {
			continue
		}
		text := a.answers(t)["text"]
		got := a.ask(t, hello, 0, response, text)
		short, requests := shortAnswer(&got.answer), len(got.server.got())
		switch {
		case c.fields["want"] != "":
			var want answerOf
			must(t, json.Unmarshal([]byte(c.fields["want"]), &want))
			if got.err != nil || !reflect.DeepEqual(short, want) || requests != 1 || strings.Join(got.pieces, "") != want.Text && want.Finish != "refusal" {
				t.Errorf("%s, %s: got %+v, %v after %d requests, streamed %q; want %+v", a.name, c.name, short, got.err, requests, got.pieces, want)
			}
		case c.fields["fail"] != "":
			code, detail, _ := strings.Cut(c.fields["fail"], " ")
			if got.fault == nil || got.fault.Code != code || !strings.Contains(got.fault.Detail, detail) || requests != 1 {
				t.Errorf("%s, %s: got %+v, %v after %d requests; want %s", a.name, c.name, short, got.err, requests, c.fields["fail"])
			}
		case got.err != nil || got.answer.Text != "Grüße, 🙂" || requests != 2 || !strings.Contains(got.log, "code="+c.fields["retried"]+" "):
			t.Errorf("%s, %s: got %+v, %v after %d requests, logged %s; want %s, and a second request", a.name, c.name, short, got.err, requests, got.log, c.fields["retried"])
		}
		if wait, _ := time.ParseDuration(c.fields["wait"]); wait > 0 && !slices.Equal(got.waits, []time.Duration{wait}) {
			t.Errorf("%s, %s: waited %v, want %s", a.name, c.name, got.waits, wait)
		}
	}
}

func TestReportedAnswers(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"calls.txtar", "ends.txtar", "streams.txtar"} {
		for _, c := range reportedCases(t, file) {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				body := c.body
				if c.fields["type"] == "" {
					body = eventsOf(body)
				}
				c.play(t, reply("", cmp.Or(c.fields["type"], "text/event-stream"), "", body))
			})
		}
	}
}

func TestReportedErrors(t *testing.T) {
	t.Parallel()
	for _, c := range reportedCases(t, "errors.txtar") {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.play(t, reply(c.fields["status"], cmp.Or(c.fields["type"], "application/json"), c.fields["header"], c.body))
		})
	}
}

// Every known text of "too long" has one code, from every API.
func TestTooLong(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/answers/toolong.txt")
	must(t, err)
	tooLong, others, _ := strings.Cut(string(data), "\n\n")
	for i, lines := range []string{tooLong, others} {
		for line := range strings.Lines(lines) {
			fields := strings.Split(strings.TrimSpace(line), "\t")
			if len(fields) != 3 { // the comment
				continue
			}
			body := fmt.Sprintf(`{"error":{"message":%q}}`, fields[1])
			for _, a := range apis() {
				got := a.ask(t, hello, 0, reply(fields[0], "application/json", "", body), a.answers(t)["text"])
				if is := got.fault != nil && got.fault.Code == "context_length_exceeded"; is != (i == 0) {
					t.Errorf("%s: %s: got %v", a.name, fields[1], got.err)
				}
			}
		}
	}
}

// lastWords are the answers whose end is a word, by API.
var lastWords = map[string]string{
	"openai-chat": `{"choices":[{"index":0,"delta":{"content":"half"}}]}` + "\n" + `{"choices":[{"index":0,"delta":{},"finish_reason":"WORD"}]}` + "\n[DONE]\n",
	"anthropic": `{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"m","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}
{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"half"}}
{"type":"message_delta","delta":{"stop_reason":"WORD"},"usage":{"output_tokens":5}}
{"type":"message_stop"}
`,
	"openai": `{"type":"response.output_text.delta","item_id":"m","output_index":0,"content_index":0,"delta":"half"}
{"type":"response.incomplete","response":{"id":"r","object":"response","status":"incomplete","incomplete_details":{"reason":"WORD"},"output":[]}}
`,
	"gemini": `{"candidates":[{"index":0,"content":{"parts":[{"text":"half"}]},"finishReason":"WORD"}]}` + "\n",
}

// Every word for an end is known, or kept; a failure is no answer.
func TestWordsOfEnds(t *testing.T) {
	t.Parallel()
	archive, err := txtar.ParseFile("testdata/answers/ends.txtar")
	must(t, err)
	for _, a := range apis() {
		for _, f := range archive.Files {
			if f.Name != "words of "+a.name {
				continue
			}
			for line := range strings.Lines(string(f.Data)) {
				fields := strings.Fields(line)
				if len(fields) != 3 || !strings.HasPrefix(fields[2], "https://") {
					t.Fatalf("%s: %q has no source", f.Name, line)
				}
				c := reportedCase{name: fields[0], fields: map[string]string{"api": a.name}}
				switch fields[1] {
				case "overloaded", "network", "malformed_answer":
					c.fields["retried"] = fields[1]
				default:
					c.fields["want"] = fmt.Sprintf(`{"text": "half", "finish": %q}`, fields[1])
				}
				c.play(t, reply("", "text/event-stream", "", eventsOf(strings.ReplaceAll(lastWords[a.name], "WORD", fields[0]))))
			}
		}
	}
}

// asData matches the lines of an answer that are not data.
var asData = regexp.MustCompile(`(?m)^(event|id|:).*\n`)

// framings are the transformations of testdata/answers/framing.txtar.
var framings = map[string]func(head, body string) string{
	"carriage returns": func(h, b string) string { return h + strings.ReplaceAll(b, "\n", "\r") },
	"carriage returns and line feeds": func(h, b string) string {
		return h + strings.ReplaceAll(b, "\n", "\r\n")
	},
	"a byte order mark":        func(h, b string) string { return h + "\uFEFF" + b },
	"no space after the colon": func(h, b string) string { return h + strings.ReplaceAll(b, "data: ", "data:") },
	"ids and times to reconnect": func(h, b string) string {
		return h + "retry: 3000\n\n" + strings.ReplaceAll(b, "data: ", "id: 7\ndata: ")
	},
	"comments": func(h, b string) string { return h + ": PROCESSING\n\n" + strings.ReplaceAll(b, "\n\n", "\n\n:\n\n") },
	"comments in data": func(h, b string) string {
		return h + "data: : OPENROUTER PROCESSING\n\n" + strings.ReplaceAll(b, "\n\n", "\n\ndata: : ping\n\n")
	},
	"empty data": func(h, b string) string { return h + strings.ReplaceAll("\n\n"+b, "\n\n", "\n\ndata:\n\ndata: \n\n") },
	"ping events": func(h, b string) string {
		return h + strings.ReplaceAll("\n\n"+b, "\n\n", "\n\nevent: ping\ndata: {}\n\n")
	},
	"ping objects": func(h, b string) string {
		return h + strings.ReplaceAll("\n\n"+b, "\n\n", "\n\ndata: {\"type\": \"ping\"}\n\n")
	},
	"no events but data": func(h, b string) string {
		return h + asData.ReplaceAllString(b, "")
	},
	"data in several lines":    func(h, b string) string { return h + strings.ReplaceAll(b, "data: {", "data: {\ndata: ") },
	"no empty line at the end": func(h, b string) string { return h + strings.TrimRight(b, "\n") },
	"the type text":            func(h, b string) string { return retyped(h, "Content-Type: text/plain; charset=utf-8") + b },
	"the type of JSON":         func(h, b string) string { return retyped(h, "Content-Type: application/json") + b },
	"no type":                  func(h, b string) string { return retyped(h, "X-Type: none") + b },
	"one byte at a time": func(h, b string) string {
		return retyped(h, "Content-Type: text/event-stream\r\nTransfer-Encoding: chunked") + inBytes(b)
	},
	"surrogates in two events":           nil, // TestSplitCharacters
	"bytes of a character in two events": nil,
	"lines of JSON": func(h, b string) string {
		lines := ""
		for line := range strings.Lines(asData.ReplaceAllString(b, "")) {
			if data, ok := strings.CutPrefix(line, "data: {"); ok {
				lines += "{" + data
			}
		}
		return h + lines
	},
	"errors that are null": func(h, b string) string { return h + strings.ReplaceAll(b, "data: {", `data: {"error":null,`) },
}

func retyped(head, line string) string {
	return regexp.MustCompile(`Content-Type: [^\r]*`).ReplaceAllString(head, line)
}

// inBytes sends a body in chunks of one byte.
func inBytes(body string) string {
	var b strings.Builder
	for i := range len(body) {
		fmt.Fprintf(&b, "1\r\n%c\r\n", 0)
		text := b.String()
		b.Reset()
		b.WriteString(text[:len(text)-3] + body[i:i+1] + "\r\n")
	}
	return b.String() + "0\r\n\r\n"
}

// The same answer comes of the same events, however they are framed.
func TestFramings(t *testing.T) {
	t.Parallel()
	archive, err := txtar.ParseFile("testdata/answers/framing.txtar")
	must(t, err)
	for _, f := range archive.Files {
		frame, known := framings[f.Name]
		if !known || !strings.HasPrefix(string(f.Data), "https://") {
			t.Errorf("%s: no such transformation, or no source", f.Name)
		}
		if frame == nil {
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			for _, a := range apis() {
				answers := a.answers(t)
				for _, name := range []string{"text", "calls"} {
					plain := a.ask(t, hello, 0, answers[name])
					head, body, _ := strings.Cut(answers[name], "\r\n\r\n")
					got := a.ask(t, hello, 0, frame(head+"\r\n\r\n", body), answers["limited"])
					// Thoughts are of a server, whose name has its port.
					got.answer.Opaque = []byte(strings.ReplaceAll(string(got.answer.Opaque), got.server.url[7:], plain.server.url[7:]))
					plain.answer.Opaque = []byte(string(plain.answer.Opaque))
					if got.err != nil || !reflect.DeepEqual(got.answer, plain.answer) || strings.Join(got.pieces, "") != strings.Join(plain.pieces, "") || len(got.server.got()) != 1 {
						t.Errorf("%s, %s: got %+v, %v, streamed %q after %d requests\nwant %+v", a.name, name, got.answer, got.err, got.pieces, len(got.server.got()), plain.answer)
					}
				}
			}
		})
	}
}

// A character that is cut in two events is whole in the answer, as escapes and
// as bytes; one whose second half never comes is replaced.
func TestSplitCharacters(t *testing.T) {
	t.Parallel()
	delta := map[string]string{
		"openai-chat": `{"choices":[{"index":0,"delta":{"content":"TEXT"}}]}`,
		"openai":      `{"type":"response.output_text.delta","item_id":"m","output_index":0,"content_index":0,"delta":"TEXT"}`,
		"anthropic":   `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"TEXT"}}`,
		"gemini":      `{"candidates":[{"index":0,"content":{"parts":[{"text":"TEXT"}]}}]}`,
	}
	for _, a := range apis() {
		for _, c := range []struct{ first, second, want string }{
			{`a \ud83d`, `\ude00 b`, "a 😀 bhalf"},
			{"a \xF0\x9F", "\x98\x80 b", "a 😀 bhalf"},
			{"a \xC3", "\xBC b", "a ü bhalf"},
			{`a \\ud83d`, `\\ude00 b`, `a \ud83d\ude00 bhalf`},
			{`a \ud83d`, ` b`, "a \uFFFD bhalf"},
			{`a`, `\ude00 b`, "a\uFFFD bhalf"},
		} {
			lines := strings.ReplaceAll(delta[a.name], "TEXT", c.first) + "\n" + strings.ReplaceAll(delta[a.name], "TEXT", c.second) + "\n"
			last := strings.ReplaceAll(lastWords[a.name], "WORD", map[string]string{"gemini": "STOP", "anthropic": "end_turn", "openai": "max_output_tokens"}[a.name])
			if a.name == "openai-chat" {
				last = strings.ReplaceAll(lastWords[a.name], "WORD", "stop")
			}
			got := a.ask(t, hello, 0, reply("", "text/event-stream", "", eventsOf(lines+last)), a.answers(t)["limited"])
			if text := got.answer.Text; got.err != nil || text != c.want || strings.Join(got.pieces, "") != c.want {
				t.Errorf("%s, %q %q: got %q, %v, streamed %q; want %q", a.name, c.first, c.second, text, got.err, got.pieces, c.want)
			}
		}
	}
}

// A server that begins no answer is given up after the time for the first byte,
// before or after its header, and asked again.
func TestFirstByte(t *testing.T) {
	t.Parallel()
	for _, a := range apis() {
		_, body, _ := strings.Cut(a.answers(t)["text"], "\r\n\r\n")
		for _, begun := range []bool{false, true} {
			var requests atomic.Int64
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body) // the end of the connection is noticed only then
				silent := requests.Add(1) <= 2
				w.Header().Set("Content-Type", "text/event-stream")
				if !silent {
					_, _ = io.WriteString(w, body)
					return
				}
				if begun {
					_ = http.NewResponseController(w).Flush()
				}
				<-r.Context().Done()
			}))
			var log bytes.Buffer
			m, err := a.open(endpoint.Config{
				BaseURL: s.URL, Idle: time.Hour, FirstByte: 100 * time.Millisecond,
				Wait: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
			}, slog.New(slog.NewTextHandler(&log, nil)))
			must(t, err)
			answer, err := m.Generate(t.Context(), hello, func(string) {})
			if err != nil || answer.Text != "Grüße, 🙂" || strings.Count(log.String(), "sent nothing within the 100ms of --model-first-byte") < 2 {
				t.Errorf("%s, %v: got %+v, %v, logged %s", a.name, begun, answer, err, &log)
			}
			s.Close()
		}
	}
}

// TestAttackPartOfKey: a provider's message may repeat a part of the key.
func TestAttackPartOfKey(t *testing.T) {
	t.Parallel()
	for _, a := range apis() {
		for _, status := range []string{"400", "401", "403", "429"} {
			for _, part := range []string{key, key[:20], key[4:], "sk-t***" + key[len(key)-6:], "sk-test...cret"} {
				body := fmt.Sprintf(`{"error":{"message":"Incorrect key: '%s', sent."}}`, part)
				response := reply(status, "application/json", "X-Should-Retry: false\r\nX-Request-Id: "+part, body)
				got := a.ask(t, hello, 0, response)
				masked := status == "400" || status == "429" // a masked key is data there
				if got.fault == nil || strings.Contains(got.fault.Detail, key[:12]) || strings.Contains(got.fault.Detail, key[10:20]) ||
					!masked && (strings.Contains(got.fault.Detail, "cret'") || !strings.Contains(got.fault.Detail, "Incorrect key: '[key]', sent.")) {
					t.Errorf("%s, %s, %s: got %v", a.name, status, part, got.err)
				}
			}
		}
	}
}
