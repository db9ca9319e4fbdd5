package worker

// How syncs end: the space becomes a settlement, and its files are stored first.

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/space"
)

type readSpace func(ctx context.Context, r executor.SpaceRequest) (executor.SpaceContent, error)

func (f readSpace) ReadSpace(ctx context.Context, r executor.SpaceRequest) (executor.SpaceContent, error) {
	return f(ctx, r)
}

// agents is a space of one prompt.
func agents(text string) fs.FS {
	return fstest.MapFS{"AGENTS.md": {Data: []byte(text)}, "tools/a.json": {Data: []byte(`["shell"]`)}}
}

// holding is a reader of one space.
func holding(files fs.FS) readSpace {
	return func(context.Context, executor.SpaceRequest) (executor.SpaceContent, error) {
		return executor.SpaceContent{Files: files, Revision: "r1", Source: "module", Lacks: []string{"env:B", "env:A", "env:B"}}, nil
	}
}

func syncEffect(name string, edit func(*session.Space)) session.Space {
	now := time.Now()
	s := session.Space{
		At: now.UnixMilli(), Class: session.ClassSpace, Effect: name, Kind: space.Workspace, RunMS: testRun.Milliseconds(), Session: "s1", Space: "support",
		StartBy: now.Add(testStartBy).UnixMilli(), V: 1,
	}
	if edit != nil {
		edit(&s)
	}
	return s
}

// synchronize executes one sync and returns the settlement.
func synchronize(t *testing.T, w *world, r executor.SpaceReader, s session.Space) session.Envelope {
	t.Helper()
	q := newQueue()
	b := startBridge(t, w, "me", q, Target{Class: session.ClassSpace, Name: "files", Spaces: r})
	q.ask(t, session.ClassSpace, "files", "s1", s.Effect, s)
	pass(2 * testRun)
	b.stop()
	if acked, returned := q.counts(); acked != 1 || returned != 0 || len(w.claims) != 0 {
		t.Errorf("acked %d, given back %d, %d claims; want it settled and acked, without a claim", acked, returned, len(w.claims))
	}
	return w.last(t)
}

func TestSyncStoresWhatItSettles(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		ready := body[session.WorkspaceSnapshotReady](t, synchronize(t, w, holding(agents("Be brief.")), syncEffect("y1", nil)))
		m, problems := space.Parse(ready.Manifest)
		if m == nil || m.Space != "support" || ready.Effect != "y1" || ready.Revision != "r1" || ready.Source != "module" || !slices.Equal(ready.Lacks, []string{"env:A", "env:B"}) {
			t.Fatalf("got %+v, %v", ready, problems)
		}
		if got := string(w.blobs[m.Files[0].Ref]); got != "Be brief." {
			t.Errorf("the file is not stored: got %q", got)
		}
		if got := w.blobs[codec.RefOf(ready.Manifest)]; string(got) != string(ready.Manifest) {
			t.Error("the manifest is not stored")
		}
		hash := m.Hash()
		knows := func(s *session.Space) { s.Known = []codec.Hash{codec.Sum(nil), hash} }
		same := body[session.WorkspaceSyncUnchanged](t, synchronize(t, w, holding(agents("Be brief.")), syncEffect("y2", knows)))
		if same.Hash != hash.String() {
			t.Errorf("the same again: got %+v", same)
		}
		// Prompts alone: the catalog is that of the known manifest, whose files
		// are stored already.
		only := func(s *session.Space) { s.Only, s.Known = []string{"prompts"}, []codec.Hash{hash} }
		files := fstest.MapFS{"AGENTS.md": {Data: []byte("Be long.")}, "tools/a.json": {Data: []byte("broken")}}
		ready = body[session.WorkspaceSnapshotReady](t, synchronize(t, w, holding(files), syncEffect("y3", only)))
		if m, problems = space.Parse(ready.Manifest); m == nil || len(m.Catalogs) != 1 || string(w.blobs[m.Files[0].Ref]) != "Be long." {
			t.Errorf("prompts alone: got %+v, %v", m, problems)
		}
		unknown := func(s *session.Space) { s.Only, s.Known = []string{"prompts"}, []codec.Hash{codec.Sum([]byte("x"))} }
		ready = body[session.WorkspaceSnapshotReady](t, synchronize(t, w, holding(agents("Be brief.")), syncEffect("y4", unknown)))
		if m, problems = space.Parse(ready.Manifest); m == nil || m.Hash() != hash {
			t.Errorf("a known manifest that is lost: got %+v, %v; want that all parts were read", m, problems)
		}
		// A file that is not read, and is lost, can't be stored again.
		delete(w.blobs, m.Files[0].Ref)
		catalogs := func(s *session.Space) { s.Only, s.Known = []string{"tools"}, []codec.Hash{hash} }
		bad := body[session.WorkspaceSyncFailed](t, synchronize(t, w, holding(agents("Be brief.")), syncEffect("y5", catalogs)))
		if bad.Error.Code != CodeSpaceUnreadable || !strings.Contains(bad.Error.Detail, m.Files[0].Ref.String()+" of AGENTS.md is lost: sync all parts") {
			t.Errorf("a lost file: got %+v", bad)
		}
	})
}

func TestDrySyncStoresNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		env := synchronize(t, w, holding(agents("Be brief.")), syncEffect("y1", func(s *session.Space) { s.Dry = true }))
		if m, problems := space.Parse(body[session.WorkspaceSnapshotReady](t, env).Manifest); m == nil {
			t.Error(problems)
		}
		if len(w.blobs) != 0 {
			t.Errorf("%d blobs are stored", len(w.blobs))
		}
	})
}

func TestFailedSyncsSettleTheirReason(t *testing.T) {
	t.Parallel()
	fails := func(err error) readSpace {
		return func(context.Context, executor.SpaceRequest) (executor.SpaceContent, error) {
			return executor.SpaceContent{}, err
		}
	}
	for name, c := range map[string]struct {
		reader   readSpace
		code     string
		problems int
	}{
		"no such space": {fails(&executor.Error{Code: "space_unknown", Detail: "there is none"}), "space_unknown", 0},
		"not readable":  {fails(errors.New("broken pipe")), "space_unreadable", 0},
		"no files":      {fails(nil), "space_unknown", 0},
		"panics":        {func(context.Context, executor.SpaceRequest) (executor.SpaceContent, error) { panic("x") }, "space_unreadable", 0},
		"hangs": {func(ctx context.Context, _ executor.SpaceRequest) (executor.SpaceContent, error) {
			<-ctx.Done()
			return executor.SpaceContent{}, ctx.Err()
		}, "deadline_exceeded", 0},
		"invalid":       {holding(agents("{{x}}\n{{y}}")), "workspace_invalid", 2},
		"many problems": {holding(agents(strings.Repeat("{{x}}\n", 100))), "workspace_invalid", space.ProblemsMax},
		"no index": {func(context.Context, executor.SpaceRequest) (executor.SpaceContent, error) {
			return executor.SpaceContent{Files: agents("x"), NoScan: true}, nil
		}, "workspace_invalid", 1},
		"keeps changing": {func(context.Context, executor.SpaceRequest) (executor.SpaceContent, error) {
			return executor.SpaceContent{Files: &restless{}}, nil
		}, "space_unreadable", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				env := synchronize(t, w, c.reader, syncEffect("y1", nil))
				got := body[session.WorkspaceSyncFailed](t, env)
				if got.Effect != "y1" || got.Error.Code != c.code || len(got.Problems) != c.problems || got.Error.Detail == "" {
					t.Errorf("got %+v, want %s with %d problems", got, c.code, c.problems)
				}
				if len(w.blobs) != 0 {
					t.Errorf("%d blobs are stored", len(w.blobs))
				}
			})
		})
	}
}

// restless is a file that changes with each read.
type restless struct{ times int }

func (r *restless) Open(name string) (fs.File, error) {
	r.times++
	return fstest.MapFS{"AGENTS.md": {Data: []byte("x"), ModTime: time.Unix(int64(r.times), 0)}}.Open(name)
}

func TestSpaceWhoseFilesAreNotStoredIsNotStaged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		stored := 0
		w.blobsLost = func() error {
			if stored++; stored > 1 {
				return natsio.ErrStreamFull
			}
			return nil
		}
		got := body[session.WorkspaceSyncFailed](t, synchronize(t, w, holding(agents("Be brief.")), syncEffect("y1", nil)))
		if got.Error.Code != "space_unreadable" || !strings.Contains(got.Error.Detail, natsio.ErrStreamFull.Error()) {
			t.Errorf("got %+v", got)
		}
		w.blobsLost = nil
		ready := body[session.WorkspaceSnapshotReady](t, synchronize(t, w, holding(agents("Be brief.")), syncEffect("y2", nil)))
		if m, _ := space.Parse(ready.Manifest); m == nil || len(w.blobs) != 2 {
			t.Errorf("with room again: got %+v, %d blobs", ready, len(w.blobs))
		}
	})
}

// The readers panic, or return what no event can hold.
func TestFaultyReaderEndsOnlyItsSync(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		got := body[session.WorkspaceSyncFailed](t, synchronize(t, w, holding(panicking{}), syncEffect("y1", nil)))
		if got.Error.Code != "space_unreadable" || !strings.Contains(got.Error.Detail, "panicked") {
			t.Errorf("files that panic: got %+v", got)
		}
		strange := func(context.Context, executor.SpaceRequest) (executor.SpaceContent, error) {
			return executor.SpaceContent{
				Files: agents("x"), Revision: strings.Repeat("\xff", 1000), Source: "\xff", Lacks: []string{"env:\xff"}, Signatures: []space.Signature{{Key: "\xff", Sig: "short"}},
			}, nil
		}
		ready := body[session.WorkspaceSnapshotReady](t, synchronize(t, w, readSpace(strange), syncEffect("y2", nil)))
		if len(ready.Revision) > revisionBytesMax || !slices.Equal(ready.Lacks, []string{"env:\uFFFD"}) {
			t.Errorf("got %+v", ready)
		}
	})
}

// panicking is a file system that panics when a file is opened.
type panicking struct{}

func (panicking) Open(string) (fs.File, error) { panic("no files") }

func TestWithdrawnSyncStops(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world, q *queue) {
		stopped := false
		waits := func(ctx context.Context, _ executor.SpaceRequest) (executor.SpaceContent, error) {
			<-ctx.Done()
			stopped = true
			return executor.SpaceContent{Files: agents("too late")}, nil
		}
		b := startBridge(t, w, "me", q, Target{Class: session.ClassSpace, Name: "files", Spaces: readSpace(waits)})
		q.ask(t, session.ClassSpace, "files", "s1", "y1", syncEffect("y1", nil))
		synctest.Wait()
		b.Cancelled("s1", []byte(`{"effects":["y1"]}`))
		synctest.Wait()
		got := body[session.WorkspaceSyncFailed](t, w.last(t))
		if acked, _ := q.counts(); !stopped || acked != 1 || got.Error.Code != "cancelled" || len(w.blobs) != 0 {
			t.Errorf("stopped %v, acked %d, got %+v, %d blobs", stopped, acked, got, len(w.blobs))
		}
		b.stop()
	})
}

// A settled sync is acked when it is delivered again; a sync that a stopping
// bridge has not read is for another bridge.
func TestSyncAgain(t *testing.T) {
	t.Parallel()
	inWorld(t, func(t *testing.T, w *world, q *queue) {
		times, reads := 0, make(chan struct{})
		waits := func(ctx context.Context, _ executor.SpaceRequest) (executor.SpaceContent, error) {
			times++
			select {
			case <-reads:
				return executor.SpaceContent{Files: agents("x")}, nil
			case <-ctx.Done():
				return executor.SpaceContent{}, ctx.Err()
			}
		}
		target := Target{Class: session.ClassSpace, Name: "files", Spaces: readSpace(waits)}
		effect := syncEffect("y1", func(s *session.Space) { s.RunMS *= 10 })
		stopping := startBridge(t, w, "stopping", q, target)
		q.ask(t, session.ClassSpace, "files", "s1", "y1", effect)
		synctest.Wait()
		stopping.stop()
		if acked, returned := q.counts(); acked != 0 || returned != 1 || len(w.events) != 0 {
			t.Fatalf("the bridge that stops: acked %d, given back %d, %d events", acked, returned, len(w.events))
		}
		close(reads)
		b := startBridge(t, w, "me", q, target)
		q.ask(t, session.ClassSpace, "files", "s1", "y1", effect)
		q.ask(t, session.ClassSpace, "files", "s1", "y1", effect)
		pass(testRun)
		b.stop()
		if acked, _ := q.counts(); acked < 2 || times != 2 || len(w.events) != 1 {
			t.Errorf("acked %d, read %d times, %d events: want two readings, one settlement", acked, times, len(w.events))
		}
	})
}

// 32 needs may be missing; with more the sync reports their number, and stores
// nothing.
func TestTooManyUnmetNeedsAreCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		files := fstest.MapFS{}
		reader := readSpace(func(context.Context, executor.SpaceRequest) (executor.SpaceContent, error) {
			return executor.SpaceContent{Files: files}, nil
		})
		for i := range 33 {
			if i == 32 {
				if ready := body[session.WorkspaceSnapshotReady](t, synchronize(t, w, reader, syncEffect("y1", nil))); len(ready.Lacks) != 32 {
					t.Errorf("32 skills: got %v", ready.Lacks)
				}
				clear(w.blobs)
			}
			name := fmt.Sprintf("s%02d", i)
			files["skills/"+name+"/SKILL.md"] = &fstest.MapFile{Data: []byte("---\ndescription: d\nmetadata: {refold: {requires: {bins: [refold-has-no-" + name + ", sh]}}}\n---\nx")}
		}
		bad := body[session.WorkspaceSyncFailed](t, synchronize(t, w, reader, syncEffect("y2", nil)))
		if bad.Error.Code != "workspace_invalid" || len(bad.Problems) != 1 || bad.Problems[0].Code != space.TooMany || !strings.Contains(bad.Error.Detail, "33 different needs") {
			t.Errorf("33 skills: got %+v", bad)
		}
		if len(w.blobs) != 0 {
			t.Errorf("%d blobs are stored", len(w.blobs))
		}
	})
}
