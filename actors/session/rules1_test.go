package session_test

// What rules 1 leave. testdata/rules1 has histories of whole sessions, with everything that
// the fold made of each event: its refusal, notices and progress, the bytes of the effects
// that it opened, withdrawals and events for other sessions, the hash of the state, and the
// bytes of the last state. A session that is stored somewhere folds to exactly these bytes,
// so they never change: what folds otherwise is rules 2 (CONTRIBUTING.md).
//
// The histories are those of the scenarios, of the recordings, drawn ones, and some with the
// fields that these lack. -freeze writes them anew, which is allowed until the first release
// alone.

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

var freeze = flag.Bool("freeze", false, "write testdata/rules1 anew: only before the first release")

const rules1 = "testdata/rules1"

// frozen is a history, and what was left of each event.
type frozen struct {
	Name    string        `json:"name"`
	Session string        `json:"session"`
	Install []byte        `json:"install"`
	Events  []frozenEvent `json:"events"`
	State   []byte        `json:"state"` // after the last event
}

type frozenEvent struct {
	Door    session.Door `json:"door"`
	Seq     uint64       `json:"seq"`
	Time    int64        `json:"time"`
	Payload []byte       `json:"payload"`
	Left    string       `json:"left"` // what came of it, as lines
	State   codec.Hash   `json:"state"`
}

// fold folds a history, and returns it with what is left of each event.
func (f frozen) fold(t testing.TB) frozen {
	t.Helper()
	install, err := session.ParseInstall(f.Install)
	if err != nil {
		t.Fatalf("%s: %v", f.Name, err)
	}
	state := session.New(install, f.Session)
	open := map[string]string{}
	events := make([]frozenEvent, len(f.Events))
	for i, e := range f.Events {
		notices, rejected := state.Evolve(session.Event{Session: f.Session, Door: e.Door, Seq: e.Seq, Time: e.Time, Payload: e.Payload})
		e.Left, e.State = left(state, notices, rejected, open), state.Hash()
		events[i] = e
	}
	f.Events, f.State = events, state.Bytes()
	return f
}

// left prints what the latest event left. open has the effects that were open before.
func left(state *session.State, notices []session.Notice, rejected error, open map[string]string) string {
	var b strings.Builder
	if rejected != nil {
		fmt.Fprintf(&b, "rejected %v\n", rejected)
	}
	for _, n := range slices.Concat(notices, state.Progress()) {
		fmt.Fprintf(&b, "notice %s\n", n.JSON())
	}
	now := map[string]string{}
	for _, e := range state.Open() {
		now[e.Name] = fmt.Sprintf("%s %s deadline %d start_by %d %x", e.Class, e.Target, e.Deadline, e.StartBy, e.Payload)
		if open[e.Name] != now[e.Name] {
			fmt.Fprintf(&b, "effect %s %s\n", e.Name, now[e.Name])
		}
	}
	clear(open)
	for name, text := range now {
		open[name] = text
	}
	for _, w := range state.Withdrawals() {
		fmt.Fprintf(&b, "withdrawn %+v\n", w)
	}
	for _, m := range state.Messages() {
		fmt.Fprintf(&b, "event for %s %x\n", m.Session, m.Payload)
	}
	return b.String()
}

// TestRules1AreFrozen folds each frozen history, and compares what is left of every event.
func TestRules1AreFrozen(t *testing.T) {
	t.Parallel()
	if *freeze {
		writeFrozen(t, "scenarios", frozenScenarios(t))
		writeFrozen(t, "recordings", frozenRecordings(t))
		writeFrozen(t, "drawn", frozenDraws(t))
		writeFrozen(t, "fields", frozenFields(t))
	}
	histories, events := 0, 0
	for f := range readFrozen(t) {
		histories, events = histories+1, events+len(f.Events)
		got := f.fold(t)
		for i, want := range f.Events {
			if got := got.Events[i]; got.Left != want.Left || got.State != want.State {
				t.Errorf("%s: event %d (the %d-th) leaves something else than under rules 1.\n got state %s and\n%s\nwant state %s and\n%s\n"+
					"Stored sessions would fold to other bytes, and their effects would not match those that are stored. Make the change for rules 2 alone (CONTRIBUTING.md, Rules).",
					f.Name, want.Seq, i+1, got.State, got.Left, want.State, want.Left)
				break
			}
		}
		if string(got.State) != string(f.State) {
			t.Errorf("%s: the last state has other bytes", f.Name)
		}
	}
	if histories < 300 || events < 7_000 {
		t.Errorf("%s has %d histories of %d events: some were lost", rules1, histories, events)
	}
}

// readFrozen yields the frozen histories.
func readFrozen(t testing.TB) func(yield func(frozen) bool) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(rules1, "*.jsonl.gz"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no files in %s: %v", rules1, err)
	}
	return func(yield func(frozen) bool) {
		for _, path := range paths {
			if !readFile(t, path, yield) {
				return
			}
		}
	}
}

func readFile(t testing.TB, path string, yield func(frozen) bool) bool {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	text, err := gzip.NewReader(bufio.NewReader(file))
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	lines := json.NewDecoder(text)
	for lines.More() {
		var f frozen
		if err := lines.Decode(&f); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if !yield(f) {
			return false
		}
	}
	return true
}

func writeFrozen(t testing.TB, name string, all []frozen) {
	t.Helper()
	file, err := os.Create(filepath.Join(rules1, name+".jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewWriterLevel(file, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	lines := json.NewEncoder(z)
	lines.SetEscapeHTML(false)
	for _, f := range all {
		if err := lines.Encode(f.fold(t)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}

func frozenOf(name string, install []byte, events []session.Event) frozen {
	f := frozen{Name: name, Install: install, Session: "s1"}
	for _, e := range events {
		f.Session = e.Session
		f.Events = append(f.Events, frozenEvent{Door: e.Door, Seq: e.Seq, Time: e.Time, Payload: e.Payload})
	}
	return f
}

func frozenScenarios(t *testing.T) (all []frozen) {
	t.Helper()
	files := scenarioFiles(t)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		histories, err := files[name].Play()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for i, h := range histories {
			all = append(all, frozenOf(fmt.Sprintf("%s/%d", name, i), h.Install, h.Events))
		}
	}
	return all
}

func frozenRecordings(t *testing.T) (all []frozen) {
	t.Helper()
	for _, conversation := range []string{"warehouse-audit", "warehouse-smalltalk", "warehouse-stocktake"} {
		var events []session.Event
		for i, e := range recordedHistory(t, conversation) {
			door, payload := say(e.door, e.typ, e.data)
			events = append(events, session.Event{Session: "s1", Door: door, Seq: uint64(i + 2), Time: 1_000_000, Payload: payload})
		}
		all = append(all, frozenOf(conversation, recordOf(t, stockInstall(t)), events))
	}
	return all
}

// recordOf returns the bytes of an install record.
func recordOf(t testing.TB, install *session.Install) []byte {
	t.Helper()
	record, err := codec.Marshal(install.Record)
	if err != nil {
		t.Fatal(err)
	}
	return record
}

// frozenDraws returns drawn histories: whole runs under drawn registries, mixed with what
// nobody asked for.
func frozenDraws(t *testing.T) (all []frozen) {
	t.Helper()
	drawn := rapid.Custom(func(rt *rapid.T) frozen {
		install, tools := drawInstall(rt)
		l := newLaws(rt, install, tools)
		for range rapid.IntRange(20, 60).Draw(rt, "events") {
			l.fold(l.draw())
		}
		return frozenOf("", recordOf(t, install), l.history)
	})
	for i := range 120 {
		f := drawn.Example(i)
		f.Name = fmt.Sprint("drawn/", i)
		all = append(all, f)
	}
	return all
}

// frozenFields returns histories with the fields that the others lack, as
// TestRules1CoverTheTable tells.
func frozenFields(t *testing.T) (all []frozen) {
	t.Helper()
	const record = `{"v":1,"rules":1,"config":{"provider":"p","model":"m"},"tools":[{"tool_id":"team.ask","tool_name":"ask","args_schema":{"type":"object"},"executor":{"kind":"session","keep":true}}]}`
	for i, texts := range [][]string{{
		`ctl {"type":"RunRequested","data":{"input":{"blob":"sha256-9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f","media_type":"image/png","name":"a.png","size":12},"config":{"provider":"p","model":"m2","deadlines_ms":{"child":60000},"prices":{"input":1,"output":2,"models":[{"model":"m2","input":3,"output":4,"cache_read":1,"cache_write":2}]}}}}`,
		`llm {"type":"ToolCallsObserved","data":{"effect":"r1t1","calls":[{"tool_name":"ask","arguments":"{\"input\":\"Find the papers.\"}"}],"usage":{"input_tokens":900,"output_tokens":40}}}`,
		`child {"type":"ChildSettled","data":{"effect":"r1t1c0","status":"succeeded","cost":12,"kept":true,"output":{"text":"Three papers."},"usage":{"input_tokens":900,"output_tokens":40}}}`,
		`llm {"type":"GenerationSettled","data":{"effect":"r1t2","status":"ok","text":{"text":"Three."},"model":"m2-1","opaque":{"items":[1]}}}`,
		`space {"type":"WorkspaceSyncUnchanged","data":{"effect":"y1","hash":"9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f9f","lacks":["secret:KEY"],"output":{"text":"on"},"signature":{"key":"A","sig":"B"},"source":"factory"}}`,
	}, {
		`child {"type":"ChildRequested","data":{"call":"r1t1c0","config":{"provider":"p","model":"m"},"depth":1,"facts":{"role":"admin"},"input":{"text":"Find the papers."},"keep":true,"origin":{"run":1,"session":"p1"},"parent":"p1","registry":{"tools":[]},"roles":["member"],"root":"p1"}}`,
		`llm {"type":"GenerationSettled","data":{"effect":"r1t1","status":"ok","text":{"text":"Three papers."}}}`,
	}} {
		var events []session.Event
		for n, text := range texts {
			door, payload, _ := strings.Cut(text, " ")
			events = append(events, session.Event{Session: "s1", Door: session.Door(door), Seq: uint64(n + 2), Time: 1_000_000, Payload: []byte(payload)})
		}
		all = append(all, frozenOf(fmt.Sprint("fields/", i), []byte(record), events))
	}
	return all
}

// TestRules1CoverTheTable: the frozen histories have each event, each field of its body and
// of install records, each notice and each rejection.
func TestRules1CoverTheTable(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for f := range readFrozen(t) {
		install, err := session.ParseInstall(f.Install)
		if err != nil {
			t.Fatal(err)
		}
		fieldsIn(reflect.ValueOf(install.Record), seen)
		for _, e := range f.Events {
			for line := range strings.Lines(e.Left) {
				text, isNotice := strings.CutPrefix(line, "notice ")
				var n struct {
					Type string
					Data struct{ Code string }
				}
				if isNotice && json.Unmarshal([]byte(text), &n) == nil {
					seen["notice "+n.Type], seen["rejection "+n.Data.Code] = true, true
				}
			}
			env, err := session.ReadEnvelope(e.Payload)
			if err != nil {
				continue
			}
			body := session.EventBody(env.Type)
			if body == nil || codec.Decode(env.Data, body) != nil {
				continue
			}
			seen[env.Type] = true
			fieldsIn(reflect.ValueOf(body), seen)
		}
	}
	wanted := map[string]bool{}
	seen["ToolSpec.Needs"] = true // of tools in manifests, which are no events: a registry may not have it
	fieldsOf(reflect.TypeFor[session.InstallRecord](), wanted)
	for _, typ := range session.EventTypes() {
		wanted[typ] = true
		fieldsOf(reflect.TypeOf(session.EventBody(typ)), wanted)
	}
	for _, text := range constants(t, "rejection.go", "Reject") {
		wanted["rejection "+text] = true
	}
	for _, text := range constants(t, "notice.go", "Notice") {
		wanted["notice "+text] = true
	}
	for _, elsewhere := range []string{session.NoticeLimitNear, session.NoticeSessionQuarantined, session.NoticeSessionReleased} {
		seen["notice "+elsewhere] = true // it takes 9,000 items; no fold says the others
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if !seen[name] {
			t.Errorf("no frozen history has %s", name)
		}
	}
}

// fieldsIn adds the fields that are there in a value, as Type.field.
func fieldsIn(v reflect.Value, seen map[string]bool) {
	switch v.Kind() {
	case reflect.Pointer:
		fieldsIn(v.Elem(), seen)
	case reflect.Slice:
		for i := range v.Len() {
			fieldsIn(v.Index(i), seen)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && !v.Field(i).IsZero() {
				seen[v.Type().Name()+"."+f.Name] = true
				fieldsIn(v.Field(i), seen)
			}
		}
	}
}

// fieldsOf adds the fields that values of a type may have.
func fieldsOf(of reflect.Type, all map[string]bool) {
	switch of.Kind() {
	case reflect.Pointer, reflect.Slice:
		fieldsOf(of.Elem(), all)
	case reflect.Struct:
		for i := range of.NumField() {
			f := of.Field(i)
			if name := of.Name() + "." + f.Name; f.IsExported() && !all[name] {
				all[name] = true
				fieldsOf(f.Type, all)
			}
		}
	}
}
