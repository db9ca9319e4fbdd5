package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/journal"
)

// States of an IndexRow besides those of runs.
const (
	StateOpen        = "open"        // it had no run
	StateClosed      = "closed"      // it accepts no more runs
	StateQuarantined = "quarantined" // an operator must look at it
	StateUnknown     = "unknown"     // its latest notice has no summary
	StateSilent      = "silent"      // no notice is kept: only the log has the session
)

// IndexRow is one session of an Index: what its latest notice says of it.
type IndexRow struct {
	Session string `json:"session"`
	State   string `json:"state"` // the lifecycle of the latest run, or one of the States above
	session.Summary
	At     int64  `json:"at,omitempty"` // Unix ms, of the latest notice
	Cursor string `json:"cursor"`       // IndexOptions.After of the next row
}

// rowOf returns the row of a session by its latest notice.
func rowOf(n *journal.Notice) IndexRow {
	row := IndexRow{Session: n.Session, State: StateUnknown, At: n.Time, Cursor: fmt.Sprintf("n%d", n.Seq)}
	summary, ok := n.Summary()
	if !ok {
		return row
	}
	row.Summary = summary
	switch {
	case summary.Quarantined:
		row.State, row.WaitsFor = StateQuarantined, "operator"
	case summary.Closed:
		row.State = StateClosed
	case summary.Lifecycle == "":
		row.State = StateOpen
	default:
		row.State = string(summary.Lifecycle)
	}
	return row
}

// Words returns what a list shows of the latest text, on one line: its beginning, why the
// last run failed, the called tools, or where the text is.
func (r *IndexRow) Words() string {
	words := r.Text
	switch {
	case words != "":
	case r.Code != "":
		words = strings.Trim(r.Code+": "+r.Detail, ": ")
	case len(r.Calls) > 0:
		words = "calls " + strings.Join(r.Calls, ", ")
	case r.TextSeq > 0:
		words = fmt.Sprintf("(event %d)", r.TextSeq)
	}
	return strings.Join(strings.Fields(words), " ")
}

// IndexOptions select the sessions of an Index. The zero value selects all with a
// kept notice.
type IndexOptions struct {
	Name     string    // beginning of the session's name
	State    []string  // one of these; nil: any
	WaitsFor string    // empty: any
	Model    string    // provider/model, or the model alone; empty: any
	Parent   string    // the session whose calls they carry out; empty: any
	Tree     string    // this session, its children, theirs, and so on; empty: any
	Since    time.Time // the latest notice is not older
	After    string    // cursor of the last row of the previous page
	All      bool      // also sessions without a kept notice
	// Partition, if not nil, is called before the names of a partition of the
	// log are read.
	Partition func(partition, of int)
}

// ErrCursor says that IndexOptions.After is not a cursor.
var ErrCursor = errors.New("a cursor is that of a listed row, such as n120 or p3.s1")

// indexWindow is the number of notices that an Index reads at a time.
const indexWindow = journal.LastNoticesMax

// Index yields sessions, the one with the newest notice first. A row is the summary
// in the session's latest notice, and nothing else is read for it. What a running
// session waits for, its tokens and its cost may have changed since; View has them.
// Index reads the stream of notices backwards, a window at a time, so it uses no
// more memory for a million sessions than for a hundred, and yields the first
// rows at once. A session with a new notice during an Index may be missing: it is
// the first of the next one.
//
// With All, sessions without a kept notice come last, by partition of the log and
// name. The server walks the subjects of the log for them, one partition at a
// time.
func (c *Client) Index(ctx context.Context, o IndexOptions) iter.Seq2[IndexRow, error] {
	return func(yield func(IndexRow, error) bool) {
		x := &indexing{c: c, ctx: ctx, o: o, yield: yield}
		if err := x.run(); err != nil {
			yield(IndexRow{}, err)
		}
	}
}

type indexing struct {
	c     *Client
	ctx   context.Context
	o     IndexOptions
	yield func(IndexRow, error) bool
	ended bool // the reader stopped, or all further notices are too old
}

func (x *indexing) run() error {
	before, partition, name, err := parseCursor(x.o.After)
	if err != nil {
		return err
	}
	if partition < 0 {
		if err := x.noticed(before); err != nil || x.ended {
			return err
		}
		partition = 0
	}
	if !x.o.All || !x.o.Since.IsZero() {
		return nil
	}
	return x.silent(partition, name)
}

// parseCursor reads a cursor: n120 is after the notice at 120, p3.s1 after the
// silent session s1 of partition 3. partition is -1 for notices; before 0 means
// from the newest.
func parseCursor(cursor string) (before uint64, partition int, name string, err error) {
	if cursor == "" {
		return 0, -1, "", nil
	}
	if digits, ok := strings.CutPrefix(cursor, "n"); ok {
		if before, err = strconv.ParseUint(digits, 10, 64); err == nil && before > 0 {
			return before, -1, "", nil
		}
	}
	if rest, ok := strings.CutPrefix(cursor, "p"); ok {
		digits, name, found := strings.Cut(rest, ".")
		if partition, err = strconv.Atoi(digits); err == nil && found && partition >= 0 && partition < journal.Partitions {
			return 0, partition, name, nil
		}
	}
	return 0, 0, "", fmt.Errorf("%w, not %q", ErrCursor, cursor)
}

// noticed yields the sessions whose last notice is before a sequence of the
// stream (0: all).
func (x *indexing) noticed(before uint64) error {
	first, last, err := x.c.bus.NoticesKept(x.ctx)
	if err != nil {
		return err
	}
	if before > 0 {
		last = min(last, before-1)
	}
	for last >= max(first, 1) && !x.ended {
		from := max(first, 1)
		if last >= indexWindow {
			from = max(from, last-indexWindow+1)
		}
		if err := x.window(from, last); err != nil {
			return err
		}
		last = from - 1
	}
	return nil
}

// window yields the sessions whose last notice is in a part of the stream.
func (x *indexing) window(from, to uint64) error {
	type listed struct {
		row IndexRow
		seq uint64
	}
	known := map[string]listed{} // by the last notice of each session in the part
	newest := int64(0)
	for n, err := range x.c.bus.ReadNotices(x.ctx, "", from, to) {
		if err != nil {
			return err
		}
		known[n.Session] = listed{rowOf(&n), n.Seq}
		newest = max(newest, n.Time)
	}
	x.ended = len(known) > 0 && newest < x.o.since()
	var sids []string
	for sid, of := range known {
		if strings.HasPrefix(sid, x.o.Name) && of.row.At >= x.o.since() {
			sids = append(sids, sid)
		}
	}
	slices.SortFunc(sids, func(a, b string) int { return cmp.Compare(known[b].seq, known[a].seq) })
	latest, err := x.latest(sids)
	if err != nil {
		return err
	}
	for _, sid := range sids {
		of := known[sid]
		if latest[sid] == of.seq && x.o.matches(&of.row) && !x.yield(of.row, nil) {
			x.ended = true
			return nil
		}
	}
	return nil
}

func (o *IndexOptions) since() int64 {
	if o.Since.IsZero() {
		return 0
	}
	return o.Since.UnixMilli()
}

func (x *indexing) latest(sids []string) (map[string]uint64, error) {
	seqs := make(map[string]uint64, len(sids))
	for raw, err := range x.c.bus.LastNotices(x.ctx, sids, 0) {
		if err != nil {
			return nil, err
		}
		seqs[raw.Session] = raw.Seq
	}
	return seqs, nil
}

func (o *IndexOptions) matches(r *IndexRow) bool {
	model := o.Model == "" || o.Model == r.Model || o.Model == r.Provider+"/"+r.Model
	if o.Parent != "" && o.Parent != r.Parent || o.Tree != "" && o.Tree != r.Root && o.Tree != r.Session {
		return false
	}
	return model && strings.HasPrefix(r.Session, o.Name) && (o.WaitsFor == "" || o.WaitsFor == r.WaitsFor) &&
		(len(o.State) == 0 || slices.Contains(o.State, r.State))
}

// silent yields the sessions without a kept notice.
func (x *indexing) silent(partition int, after string) error {
	for ; partition < journal.Partitions; partition++ {
		if x.o.Partition != nil {
			x.o.Partition(partition, journal.Partitions)
		}
		names, err := x.c.bus.SessionNames(x.ctx, partition)
		if err != nil {
			return err
		}
		names = slices.DeleteFunc(names, func(sid string) bool { return sid <= after || !strings.HasPrefix(sid, x.o.Name) })
		for chunk := range slices.Chunk(names, journal.LastNoticesMax) {
			latest, err := x.latest(chunk)
			if err != nil {
				return err
			}
			for _, sid := range chunk {
				row := IndexRow{Session: sid, State: StateSilent, Cursor: fmt.Sprintf("p%d.%s", partition, sid)}
				if latest[sid] == 0 && x.o.matches(&row) && !x.yield(row, nil) {
					return nil
				}
			}
		}
		after = ""
	}
	return nil
}
