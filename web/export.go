package web

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/refold/refold"
	"github.com/refold/refold/internal/inspector"
	"github.com/refold/refold/internal/prove"
)

// ExportOptions are those of Export.
type ExportOptions struct {
	// By says which program exports, for people.
	By string
	// Program is as in Options.
	Program []byte
	// StateBytes bounds what the file has of states and single events, before it is
	// compressed; 0: 64 MiB. Those of the latest events are in the file.
	StateBytes int
}

// Exported says what is in a file.
type Exported struct {
	Session string `json:"session"`
	At      int64  `json:"at"` // Unix milliseconds
	By      string `json:"by"`
	Events  int    `json:"events"`
	States  int    `json:"states"` // events of which the file has the state: the latest ones
	Proves  bool   `json:"-"`      // the file has the program that folds the session again
}

// Export writes a session as one file of HTML, which shows it in a browser without a
// server: conversation, timeline, events, and the state after each of them. With the
// program it also proves, offline, that the events fold to the states that it shows. It
// has the whole conversation of the session, and all that tools returned. An error leaves
// out with a part of the file. It panics, as Handler, if the Program is no WebAssembly.
func Export(ctx context.Context, rt *refold.Runtime, session string, out io.Writer, o ExportOptions) (*Exported, error) {
	reader := func(*http.Request) (*Caller, error) {
		return &Caller{Subject: "export", Rights: []Right{RightRead}}, nil
	}
	options := Options{Auth: reader, Program: o.Program, Limits: Limits{PerSecond: 1 << 30, Operation: time.Hour}}
	s := Handler(rt, options).(*server)
	x := &exporter{ctx: ctx, server: s, at: "/v1/sessions/" + url.PathEscape(session), left: cmp.Or(o.StateBytes, 64<<20)}
	about := &Exported{Session: session, At: time.Now().UnixMilli(), By: o.By, Proves: s.proves != nil}
	if err := x.list(); err != nil { // before anything is written
		return nil, err
	}
	err := inspector.WriteReport(out, session, s.proves, func(w io.Writer) error {
		x.out = gzip.NewWriter(w)
		about.Events = len(x.heads)
		var err error
		if about.States, err = x.write(); err != nil {
			return err
		}
		text, err := json.Marshal(about)
		if err != nil {
			return err
		}
		return errors.Join(x.line("about", text), x.out.Close())
	})
	return about, err
}

// exporter asks a handler for what a page would, and writes the answers.
type exporter struct {
	ctx    context.Context
	server *server
	at     string // the path of the session
	out    *gzip.Writer
	left   int // bytes of states and single events

	pages  map[string][]byte // of the list of events
	heads  []EventHead
	hashes []ProofState
}

// recorder keeps an answer.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(status int)      { r.status = status }
func (r *recorder) Write(p []byte) (int, error) { return r.body.Write(p) }

// ask returns an answer of the handler.
func (x *exporter) ask(path string) ([]byte, error) {
	r, err := http.NewRequestWithContext(x.ctx, http.MethodGet, "http://localhost"+path, nil)
	if err != nil {
		return nil, err
	}
	got := &recorder{header: http.Header{}, status: http.StatusOK}
	x.server.ServeHTTP(got, r)
	if got.status == http.StatusOK {
		return got.body.Bytes(), nil
	}
	var p Problem
	if err := json.Unmarshal(got.body.Bytes(), &p); err != nil {
		return nil, fmt.Errorf("export %s: status %d", path, got.status)
	}
	return nil, fmt.Errorf("export: %s", p.Detail)
}

// line writes an answer that is JSON.
func (x *exporter) line(path string, text []byte) error {
	_, err := fmt.Fprintf(x.out, "%s\t%s\n", path, bytes.TrimSuffix(text, []byte("\n")))
	return err
}

// raw writes an answer that is bytes.
func (x *exporter) raw(path string, body []byte) error {
	return x.line(path, append([]byte("="), base64.StdEncoding.EncodeToString(body)...))
}

// list reads the list of the session's events.
func (x *exporter) list() error {
	x.pages = map[string][]byte{}
	for from := uint64(1); from > 0; {
		path := fmt.Sprintf("%s/events?from=%d&limit=%d", x.at, from, eventsMax)
		text, err := x.ask(path)
		if err != nil {
			return err
		}
		var page EventList
		if err := json.Unmarshal(text, &page); err != nil {
			return err
		}
		x.pages[path], x.heads, from = text, append(x.heads, page.Events...), page.Next
	}
	return nil
}

// write writes all answers, and returns of how many events it wrote the states.
func (x *exporter) write() (states int, err error) {
	for path, text := range x.pages {
		if err := x.line(path, text); err != nil {
			return 0, err
		}
	}
	for _, rest := range []string{"/transcript", "/timeline", "/effects"} {
		text, err := x.ask(x.at + rest)
		if err == nil {
			err = x.line(x.at+rest, text)
		}
		if err != nil {
			return 0, err
		}
	}
	if text, err := x.ask(x.at); err == nil { // a view needs a session-actor: the page does without
		if err := x.line(x.at, text); err != nil {
			return 0, err
		}
	}
	if err := x.tools(); err != nil {
		return 0, err
	}
	for i := len(x.heads) - 1; i >= 0 && x.left > 0; i, states = i-1, states+1 {
		if err := x.event(x.heads[i].Seq); err != nil {
			return 0, err
		}
	}
	return states, x.proof()
}

// tools writes what each turn was offered.
func (x *exporter) tools() error {
	last := ""
	for _, e := range x.heads {
		if e.Turn == "" || e.Turn == last {
			continue
		}
		last = e.Turn
		path := x.at + "/tools?turn=" + last
		text, err := x.ask(path)
		if err == nil {
			err = x.line(path, text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// pass writes the answer of a path, and returns it.
func (x *exporter) pass(path string) (text []byte, err error) {
	if text, err = x.ask(path); err == nil {
		x.left -= len(text)
		err = x.line(path, text)
	}
	return text, err
}

// event writes an event, its bytes, the state after it, and the batch of that state.
func (x *exporter) event(seq uint64) error {
	event := fmt.Sprintf("%s/events/%d", x.at, seq)
	text, err := x.pass(fmt.Sprintf("%s/state?at=%d", x.at, seq))
	if err != nil {
		return err
	}
	var shown StateShown
	if err := json.Unmarshal(text, &shown); err != nil {
		return err
	}
	x.hashes = append(x.hashes, ProofState{N: shown.N, Hash: shown.View.Hash})
	paths := []string{event}
	if shown.View.Batch != nil {
		paths = append(paths, fmt.Sprintf("%s/batch?at=%d", x.at, seq))
	}
	for _, path := range paths {
		if _, err := x.pass(path); err != nil {
			return err
		}
	}
	raw, err := x.ask(event + "/raw")
	if err != nil {
		return err
	}
	return x.raw(event+"/raw", raw)
}

// proof writes what the session is folded from again, and what that is compared with:
// each state in the file, too.
func (x *exporter) proof() error {
	text, err := x.ask(x.at + "/proof")
	if err != nil {
		return err
	}
	var proof Proof
	if err := json.Unmarshal(text, &proof); err != nil {
		return err
	}
	for _, state := range x.hashes {
		if state.N <= proof.Events {
			proof.Checkpoints = append(proof.Checkpoints, state)
		}
	}
	if text, err = json.Marshal(proof); err != nil {
		return err
	}
	if err := x.line(x.at+"/proof", text); err != nil {
		return err
	}
	install, err := x.ask(x.at + "/install")
	if err == nil {
		err = x.raw(x.at+"/install", install)
	}
	for from := uint64(1); err == nil && from > 0; {
		path := fmt.Sprintf("%s/log?from=%d&to=%d", x.at, from, proof.Seq)
		var page []byte
		if page, err = x.ask(path); err == nil {
			from, err = prove.Next(page), x.raw(path, page)
		}
	}
	return err
}
