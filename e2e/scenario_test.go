package e2e_test

// The scenario files of the fold, against the real system: the test plays the
// clients and all bridges, the session-actor is a process, and its outputs
// (views, stored effects, notices) give the same lines. Times and sequences are
// relative in both.

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/session/scenario"
	"github.com/refold/refold/subjects"
)

const scenarioFiles = "../actors/session/testdata/scenarios/*.txt"

func TestScenariosAgainstTheRealSystem(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob(scenarioFiles)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scenario files: %v", err)
	}
	url := startNATS(t)
	startDaemon(t, "session-actor", "--nats", url)
	records := &records{} // none yet: the daemon may not have published its own by the first event
	ran, left := 0, []string(nil)
	t.Run("files", func(t *testing.T) {
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			file, err := scenario.Parse(string(text))
			if err != nil {
				t.Fatal(err)
			}
			name := strings.TrimSuffix(filepath.Base(path), ".txt")
			if reason := leftOut(file); reason != "" {
				left = append(left, name+" ("+reason+")")
				continue
			}
			ran++
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				newScene(t, url, name, file, records).play(file)
			})
		}
	})
	verifyAll(t, url)
	t.Logf("%d scenario files ran against the real system, %d were left out: %s", ran, len(left), strings.Join(left, ", "))
	if ran == 0 {
		t.Error("no scenario file ran")
	}
}

// leftOut says why a file can't be run where time is not the test's.
func leftOut(file *scenario.File) string {
	if slices.ContainsFunc(file.Steps, func(s scenario.Step) bool { return strings.HasPrefix(s.Input, "clock ") }) {
		return "moves the clock"
	}
	if slices.ContainsFunc(file.Steps, func(s scenario.Step) bool { return s.Input == "show messages" }) {
		return "tells other sessions, whose events are not this session's" // refold chaos has a tree of them
	}
	if len(file.Steps) > 1 && strings.HasPrefix(file.Steps[1].Input, "install ") {
		return "pins several records"
	}
	return ""
}

// records are the install records of a log. A session pins the newest one
// before its first event, so the two are published together.
type records struct {
	mu   sync.Mutex
	last []byte
}

// scene is one scenario on the real system.
type scene struct {
	t        *testing.T
	records  *records
	record   []byte // what the session pins
	nc       *nats.Conn
	js       jetstream.JetStream
	names    subjects.Names
	sid      string
	install  *session.Install
	ear      *ear // of notices
	progress *ear
	seqs     []uint64
	view     session.View
	asked    map[string]bool
	clocks   map[string]int64 // by effect: the session's clock when it was opened
}

// newScene prepares a scenario.
func newScene(t *testing.T, url, name string, file *scenario.File, all *records) *scene {
	t.Helper()
	first, err := scenario.Read(file.Steps[0].Input, nil)
	if err != nil || first.Kind != scenario.KindInstall {
		t.Fatalf("the first step is %q, want install: %v", file.Steps[0].Input, err)
	}
	record := first.Payload
	if record == nil {
		record = session.BuiltinInstall()
	}
	names, err := subjects.New("")
	if err != nil {
		t.Fatal(err)
	}
	install, err := session.ParseInstall(record)
	if err != nil {
		t.Fatal(err)
	}
	nc := connect(t, url)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{t: t, records: all, record: record, nc: nc, js: js, names: names, sid: name, install: install,
		asked: map[string]bool{}, clocks: map[string]int64{}}
	s.view.Registry = install.Offered().Hash().String() // a session that has no event yet has no view
	out, err := names.Out(s.sid)
	if err != nil {
		t.Fatal(err)
	}
	progress, err := names.Progress(s.sid)
	if err != nil {
		t.Fatal(err)
	}
	s.ear, s.progress = listen(t, nc, out), listen(t, nc, progress)
	return s
}

// play carries out every step and compares.
func (s *scene) play(file *scenario.File) {
	for i := range file.Steps {
		step := &file.Steps[i]
		if got := s.do(step); markless(got) != markless(step.Want) {
			s.t.Errorf("line %d: %s\n--- got:\n%s--- want:\n%s", step.Line, step.Input, got, step.Want)
		}
	}
	s.nothingElse()
}

// inputMark is the mark of a prompt with skills that its run's config names: they have
// the run's input, whose sequence differs here.
var inputMark = regexp.MustCompile(`^mark [0-9a-f]{8}\n((?:.*\n)*skill )`)

func markless(shown string) string { return inputMark.ReplaceAllString(shown, "$1") }

func (s *scene) do(step *scenario.Step) string {
	action, err := scenario.Read(step.Input, s.install.Registry, s.view)
	if err != nil {
		s.t.Fatalf("line %d: %v", step.Line, err)
	}
	switch action.Kind {
	case scenario.KindInstall:
		return fmt.Sprintf("%d tools, rules %d\n", s.install.Registry.Len(), s.install.Rules)
	case scenario.KindShow:
		if action.Show == "progress" {
			return scenario.ShowProgress(said(s.t, s.progress, s.view.Seq, strings.Count(step.Want, "\n")))
		}
		return s.show(action.Show)
	}
	subject, err := s.names.Log(action.Door, s.sid)
	if err != nil {
		s.t.Fatal(err)
	}
	seq := s.publish(subject, action.Payload)
	before := s.view
	s.view = s.viewAt(seq)
	s.withoutBridges()
	for _, e := range s.view.Open {
		if _, known := s.clocks[e.Effect]; !known {
			s.clocks[e.Effect] = s.view.Clock
		}
		s.effect(e)
	}
	return scenario.Picture(before, s.view, action.Settles, said(s.t, s.ear, seq, strings.Count(step.Want, "\n> ")))
}

// publish publishes an event; before the session's first one, the record that
// the session is to pin.
func (s *scene) publish(subject string, payload []byte) uint64 {
	if len(s.seqs) == 0 {
		s.records.mu.Lock()
		defer s.records.mu.Unlock()
		if !bytes.Equal(s.records.last, s.record) {
			publish(s.t, s.nc, s.names.Install(), s.record)
			s.records.last = s.record
		}
	}
	seq := publish(s.t, s.nc, subject, payload)
	s.seqs = append(s.seqs, seq)
	return seq
}

// viewAt asks for the view until it includes the event at seq.
func (s *scene) viewAt(seq uint64) session.View {
	subject, err := s.names.View(s.sid)
	if err != nil {
		s.t.Fatal(err)
	}
	var v session.View
	until(s.t, endWithin, "a view", func() bool {
		v = session.View{} // what an earlier answer had would stay
		answer, err := s.nc.Request(subject, nil, 500*time.Millisecond)
		if err != nil || json.Unmarshal(answer.Data, &v) != nil {
			return false
		}
		return v.Seq >= seq
	})
	return v
}

// effect waits until an open effect is stored and returns its payload.
func (s *scene) effect(e session.ViewEffect) []byte {
	stored := s.names.EffectsStream()
	subject, err := s.names.Effect(subjects.EffectName{Class: e.Class, Target: e.Target, Session: s.sid, Effect: e.Effect})
	if e.Class == session.ClassWake {
		stored = s.names.TimersStream()
		subject, err = s.names.Timer(s.sid, e.Effect, e.Deadline)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	stream, err := s.js.Stream(ctx, stored)
	if err != nil {
		s.t.Fatal(err)
	}
	var payload []byte
	until(s.t, endWithin, subject+" is asked", func() bool {
		msg, err := stream.GetLastMsgForSubject(ctx, subject)
		if err != nil {
			return false
		}
		payload = msg.Data
		return true
	})
	s.asked[subject] = true
	return payload
}

// said waits for n notices about the event at seq.
func said(t *testing.T, heard *ear, seq uint64, n int) []scenario.Said {
	var about []scenario.Said
	until(t, endWithin, fmt.Sprintf("%d notices about %d", n, seq), func() bool {
		about = about[:0]
		for _, h := range heard.all() {
			if h.Seq == seq {
				about = append(about, scenario.Said{N: h.N, Type: h.Type, Seq: h.Seq, Data: h.Data})
			}
		}
		return len(about) >= n
	})
	return about
}

// withoutBridges removes from the view what only session-actors know: no bridge runs
// here, and the fold knows none.
func (s *scene) withoutBridges() {
	if s.view.Batch == nil {
		return
	}
	for i := range s.view.Batch.Calls {
		if c := &s.view.Batch.Calls[i]; c.Code == session.TroubleUnserved {
			c.Code, c.Detail = "", ""
		}
	}
}

// show draws what a step asks for. In a file the time stands still, here it
// does not: an effect is drawn as of when it was opened.
func (s *scene) show(what string) string {
	v := s.view
	if effect, is := strings.CutPrefix(what, "effect "); is && s.clocks[effect] != 0 {
		v.Clock = s.clocks[effect]
	}
	text, err := scenario.Show(what, v, s.seqs, s.effect)
	if err != nil {
		s.t.Fatal(err)
	}
	return text
}

// nothingElse checks that nothing was asked that no view showed as open, and
// that the notices are numbered without gaps.
func (s *scene) nothingElse() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	stream, err := s.js.Stream(ctx, s.names.EffectsStream())
	if err != nil {
		s.t.Fatal(err)
	}
	filter, err := s.names.SessionEffects(s.sid)
	if err != nil {
		s.t.Fatal(err)
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(filter))
	if err != nil {
		s.t.Fatal(err)
	}
	for subject := range info.State.Subjects {
		if !s.asked[subject] {
			s.t.Errorf("%s is asked, and was never open", subject)
		}
	}
	numbered := uint64(0)
	for i, h := range s.ear.all() {
		if h.Type == session.NoticeSessionChanged {
			continue // it has no number
		}
		if numbered++; h.N != numbered {
			s.t.Errorf("notice %d has number %d, want %d", i+1, h.N, numbered)
		}
	}
}
