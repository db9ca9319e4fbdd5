//go:build peers

package web_test

// What: ten pages look as the pictures of docs/inspector.md show them (UI-21).
//
// How: the answers that the pages ask for are in testdata/pages.json, and the clock stands
// still, so that a page differs only if its script, its styles or its texts do. With
// -rewrite a server plays the history again and its answers are recorded; look at the
// pictures then.

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/refold/refold"
	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/bridge/function"
	"github.com/refold/refold/internal/browser"
	"github.com/refold/refold/refoldtest"
	"github.com/refold/refold/web"
)

// pictured are the pages of the pictures.
var pictured = []struct {
	name, path, theme string
	size              browser.Size
}{
	{"sessions", "/", "light", laptop},
	{"session", "/s/weather-bergen", "light", laptop},
	{"timeline", "/s/weather-bergen?tab=timeline&run=1", "dark", laptop},
	{"events", "/s/weather-bergen?tab=events&at=6", "light", laptop},
	{"compare", "/s/weather-bergen?tab=state&part=diff&compare=4", "dark", laptop},
	{"tools", "/s/weather-bergen?tab=tools", "light", laptop},
	{"batch", "/s/weather-bergen?tab=batch", "light", laptop},
	{"approvals", "/approvals", "light", browser.Narrow},
	{"fleet", "/fleet", "light", laptop},
	{"system", "/system", "dark", laptop},
}

var laptop = browser.Size{Width: 1280, Height: 860}

const pictures = "../docs/pictures/"

// recorded is what a server answered to the pages.
type recorded struct {
	Now     int64             `json:"now"` // Unix milliseconds
	Answers map[string]string `json:"answers"`
}

const recording = "testdata/pages.json"

// UI-21.
func TestPagesLookAsPictured(t *testing.T) {
	t.Parallel()
	if rewrites() {
		record(t)
	}
	var r recorded
	text, err := os.ReadFile(recording)
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		t.Fatal(err)
	}
	w := serve(t, web.Options{}, refold.Model(refoldtest.Model()))
	w.checkRecording(r)
	served := web.Handler(w.rt, web.Options{Auth: auth})
	url := newServer(t, http.HandlerFunc(func(rw http.ResponseWriter, q *http.Request) {
		if !strings.HasPrefix(q.URL.Path, "/v1/") {
			served.ServeHTTP(rw, q)
			return
		}
		switch answer, ok := r.Answers[asked(q)]; {
		case !ok:
			http.Error(rw, asked(q)+" is not recorded", http.StatusNotFound)
		case answer == "":
			rw.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(rw, ": open\n\n")
			_ = http.NewResponseController(rw).Flush()
			<-q.Context().Done()
		default:
			rw.Header().Set("Content-Type", "application/json")
			fmt.Fprint(rw, answer)
		}
	}))
	pages := stopped(t, r.Now)
	for _, of := range pictured {
		p := pages[of.size]
		p.Do(chromedp.Navigate("about:blank"), chromedp.Navigate(url+of.path+"#token=all"))
		ready(p)
		browser.Value[bool](p, `new Promise((drawn) => { document.documentElement.dataset.theme = "`+of.theme+`"; requestAnimationFrame(() => requestAnimationFrame(() => drawn(true))); })`)
		p.Matches(pictures+"inspector-"+of.name+".png", rewrites())
	}
}

// The document shows all pictures, and no other.
func TestDocumentShowsThePictures(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/inspector.md")
	if err != nil {
		t.Fatal(err)
	}
	var want, shown []string
	for _, of := range pictured {
		want = append(want, "inspector-"+of.name+".png")
	}
	for _, m := range regexp.MustCompile(`!\[[^\]]+\]\(pictures/([^)]+)\)`).FindAllStringSubmatch(string(text), -1) {
		shown = append(shown, m[1])
	}
	files, err := filepath.Glob(pictures + "inspector-*.png")
	for i := range files {
		files[i] = filepath.Base(files[i])
	}
	slices.Sort(want)
	slices.Sort(shown)
	if err != nil || !slices.Equal(shown, want) || !slices.Equal(files, want) {
		t.Errorf("docs/inspector.md shows %q, and there are %q (%v), want %q", shown, files, err, want)
	}
}

// stopped returns a page of each size, whose clock stands still.
func stopped(t *testing.T, ms int64) map[browser.Size]*browser.Page {
	t.Helper()
	pages := map[browser.Size]*browser.Page{}
	for _, of := range pictured {
		if pages[of.size] == nil {
			pages[of.size] = browser.Open(t, of.size)
			pages[of.size].StopClock(ms)
		}
	}
	return pages
}

// rewrites reports whether -rewrite is set, the flag of openapi_test.go.
func rewrites() bool { return flag.Lookup("rewrite").Value.String() == "true" }

// asked names a request of a recording. A stream begins where the page stands.
func asked(q *http.Request) string {
	path, query, _ := strings.Cut(q.URL.RequestURI(), "?")
	parts := slices.DeleteFunc(strings.Split(query, "&"), func(part string) bool { return part == "" || strings.HasPrefix(part, "after=") })
	return strings.TrimSuffix(path+"?"+strings.Join(parts, "&"), "?")
}

// checkRecording checks that a server could still answer so.
func (w *world) checkRecording(r recorded) {
	w.t.Helper()
	d := w.document()
	for path, answer := range r.Answers {
		if answer == "" {
			continue
		}
		path, _, _ = strings.Cut(path, "?")
		found := false
		for template, operations := range d.paths {
			parts := regexp.MustCompile(`\{[^}]+\}`).ReplaceAllString(template, "[^/]+")
			if get, ok := operations["get"]; ok && regexp.MustCompile("^"+parts+"$").MatchString(path) {
				d.check(recording+": "+path, get.Responses["200"].Content["application/json"].Schema, answer)
				found = true
			}
		}
		if !found {
			w.t.Errorf("%s: %s is no path of the API", recording, path)
		}
	}
	if w.t.Failed() {
		w.t.Fatal("run the test with -rewrite")
	}
}

// recorder keeps what a handler writes, and whether it is a stream.
type recorder struct {
	http.ResponseWriter
	text strings.Builder
}

// Write implements http.ResponseWriter.
func (r *recorder) Write(text []byte) (int, error) {
	if r.Header().Get("Content-Type") != "text/event-stream" {
		r.text.Write(text)
	}
	return r.ResponseWriter.Write(text)
}

// Unwrap is for http.ResponseController.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// record plays the history, opens all pages and writes what they were answered.
func record(t *testing.T) {
	w := pictureWorld(t)
	handler := web.Handler(w.rt, web.Options{Auth: auth, Limits: web.Limits{PerSecond: 1_000_000}})
	r := recorded{Answers: map[string]string{}}
	var mu sync.Mutex
	url := newServer(t, http.HandlerFunc(func(rw http.ResponseWriter, q *http.Request) {
		to := &recorder{ResponseWriter: rw}
		handler.ServeHTTP(to, q)
		mu.Lock()
		defer mu.Unlock()
		if _, ok := r.Answers[asked(q)]; !ok && strings.HasPrefix(q.URL.Path, "/v1/") {
			r.Answers[asked(q)] = to.text.String()
		}
	}))
	r.Now = time.Now().UnixMilli()
	for _, of := range pictured {
		p := browser.Open(t, of.size)
		p.StopClock(r.Now)
		p.Do(chromedp.Navigate(url + of.path + "#token=all"))
		ready(p)
		p.Screenshot()                         // after what it asks for at last
		p.Do(chromedp.Navigate("about:blank")) // ends its streams
	}
	mu.Lock()
	defer mu.Unlock()
	text, err := json.MarshalIndent(r, "", "\t")
	if err == nil {
		err = errors.Join(os.MkdirAll(filepath.Dir(recording), 0o755), os.WriteFile(recording, append(text, '\n'), 0o644))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// supported are short conversations of the list.
var supported = map[string]string{
	"Where is my parcel?":     "It left Oslo this morning, and should be with you on Thursday.",
	"Do you sell tents?":      "We have two for three people. The lighter one weighs 2.1 kg.",
	"I'd like my money back.": "I am sorry to hear that. Which order is it about?",
	"Which size fits me?":     "At 182 cm, most people take a large.",
}

type note struct {
	File string `json:"file"`
	Text string `json:"text"`
}

// pictureWorld returns a world with the history of the pictures: its model and its tools take
// their time.
func pictureWorld(t *testing.T) *world {
	t.Helper()
	find := refold.Func("docs.search", func(_ context.Context, in search) (string, error) {
		takes(300 * time.Millisecond)
		if strings.Contains(in.Query, "archive") {
			return "", errors.New("the index is being rebuilt")
		}
		return `{"hits": [{"title": "Bergen in November", "score": 0.91}, {"title": "Rain statistics", "score": 0.74}], "took_ms": 12}`, nil
	}, refold.Description("Searches the documents."), refold.RetrySafe(), refold.ReadOnly(), refold.ParallelSafe())
	write := refold.Func("notes.write", func(_ context.Context, in note) (string, error) {
		takes(200 * time.Millisecond)
		return "written", nil
	}, refold.Description("Adds a line to a file of notes."), refold.RetrySafe(), function.ResourceKey("note:{file}"))
	turns := []refoldtest.Turn{
		saysAndCalls("I look for it.", refoldtest.To("docs_search", search{"weather in Bergen"}), refoldtest.To("docs_search", search{"weather archive 1995"})),
		refoldtest.Say("In November it rains on most days in Bergen: 25 of 30, and 283 mm in all.\n\nI could not reach the archive, so these are last year's figures. Shall I order an umbrella?"),
		saysAndCalls("I order it, and write both down.",
			refoldtest.To("notes_write", note{"shopping.txt", "one umbrella"}), refoldtest.To("notes_write", note{"shopping.txt", "rubber boots?"}),
			refoldtest.To("docs_search", search{"umbrella, 120 cm"}), refoldtest.To("shop_buy", order{"one black umbrella, 120 cm"})),
	}
	first := turns[0]
	turns[0] = func(r executor.Request) (executor.Answer, error) {
		if text, ok := supported[r.Messages[0].Text]; ok {
			return refoldtest.Say(text)(r)
		}
		return first(r)
	}
	model := refoldtest.Model(turns...)
	open := model.Open
	model.Provider, model.Model = "example", "example-large"
	model.Open = func() (executor.Model, error) {
		inner, err := open()
		return patient{inner}, err
	}
	w := serve(t, web.Options{}, refold.Tools(shop(), find, write), refold.System("You help a shop."), refold.Model(model),
		refold.Config(refold.RunConfig{Prices: &session.Prices{Input: 3_000_000, CacheRead: 300_000, Output: 15_000_000}}))
	w.want(http.StatusOK, nil, "all", "POST", "/v1/sessions/weather-bergen/runs", `{"agent": "helper", "input": "What is the weather in Bergen in November?"}`, "Prefer", "wait=60")
	for i, question := range slices.Sorted(maps.Keys(supported)) {
		w.want(http.StatusOK, nil, "all", "POST", fmt.Sprintf("/v1/sessions/support-%03d/runs", 118+i), `{"agent": "helper", "input": "`+question+`"}`, "Prefer", "wait=60")
	}
	w.want(http.StatusAccepted, nil, "all", "POST", "/v1/sessions/weather-bergen/runs", `{"agent": "helper", "input": "Yes, please order one, and write it down."}`)
	for list := (web.ApprovalList{}); len(list.Approvals) < 1; { // w.ctx bounds it
		w.want(http.StatusOK, &list, "all", "GET", "/v1/approvals", "")
	}
	return w
}

// patient is a model that takes its time, and counts tokens.
type patient struct{ executor.Model }

// Generate implements executor.Model.
func (m patient) Generate(ctx context.Context, r executor.Request, delta func(string)) (executor.Answer, error) {
	takes(700 * time.Millisecond)
	a, err := m.Model.Generate(ctx, r, delta)
	a.Usage = executor.Usage{InputTokens: 1840 + 310*int64(len(r.Messages)), OutputTokens: int64(40 + len(a.Text)/4), CachedTokens: 1536}
	return a, err
}

// takes is how long something of the history takes, so that its bars have lengths.
func takes(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // nothing waits for it
}
