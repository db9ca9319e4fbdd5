package bus_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus/bustest"
)

// A server loads a file of the log as a whole. Those of a log that was there
// before are smaller too, from the server's next start on, and what it has stays.
func TestTheLogIsKeptInSmallFiles(t *testing.T) {
	t.Parallel()
	const big, sent = 700 << 10, 8 // 5.5 MiB: one file, or two
	for _, c := range []struct {
		name  string
		first []string // edits of streams.conf for who was there before
		want  int
	}{
		{name: "a new log", want: 2},
		{name: "a log from before", first: []string{"    max_msgs_per_subject: 9007199254740991\n", ""}, want: 2},
	} {
		node := bustest.Server(t)
		b, ctx := connect(t, node, ""), testContext(t)
		if err := b.Provision(ctx, parse(t, "", c.first...), 1); err != nil {
			t.Fatal(err)
		}
		seq, err := b.Publish(ctx, session.DoorIn, "s1", []byte("first"), "")
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Provision(ctx, parse(t, ""), 1); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		b.Close()
		node.Stop()
		node.Start()
		b = connect(t, node, "")
		for range sent {
			if _, err := b.Publish(ctx, session.DoorIn, "s1", bytes.Repeat([]byte("x"), big), ""); err != nil {
				t.Fatal(err)
			}
		}
		got, err := b.EventAt(ctx, seq)
		if err != nil || string(got.Payload) != "first" {
			t.Errorf("%s: the first event is %q (%v), want %q", c.name, got.Payload, err, "first")
		}
		if n, err := b.CountEvents(ctx, "s1", 1); err != nil || n != sent+1 {
			t.Errorf("%s: the session has %d events (%v), want %d", c.name, n, err, sent+1)
		}
		files := logFiles(t, node.Raw().StoreDir(), b.Names().LogStream())
		if files != c.want {
			t.Errorf("%s: it is kept in %d files, want %d", c.name, files, c.want)
		}
	}
}

// logFiles counts the files that have a stream's messages.
func logFiles(t *testing.T, dir, stream string) (n int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if strings.HasSuffix(path, ".blk") && strings.Contains(path, stream+string(filepath.Separator)) {
			n++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}
