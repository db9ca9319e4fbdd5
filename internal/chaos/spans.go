package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/refold/refold/actors/session/timeline"
)

// collector is where the session-actors of a trial send the spans of runs: a file of
// JSON lines that outlives them. Every run is traced.
type collector struct{ file *os.File }

func collectorIn(dir string) string { return filepath.Join(dir, "spans.jsonl") }

func openCollector(dir string) (*collector, error) {
	file, err := os.OpenFile(collectorIn(dir), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	return &collector{file}, err
}

func (c *collector) Sampled(string, uint32) bool { return true }

func (c *collector) Traceparent(sid, effect string) string {
	return fmt.Sprintf("00-%x-%x-01", timeline.TraceID("", sid, effect), timeline.SpanID("", sid, effect))
}

// Ended writes spans with one call, so that a kill leaves all of them or none.
func (c *collector) Ended(_ string, spans []*timeline.Span) {
	var lines []byte
	for _, s := range spans {
		line, err := json.Marshal(s)
		if err != nil {
			panic(err) // texts and numbers always encode
		}
		lines = append(append(lines, line...), '\n')
	}
	_, _ = c.file.Write(lines) // a span that is missing is found at the end
}

// spans returns what differs between the spans that were collected and those that the
// log makes.
func (g *gather) spans(ctx context.Context) (faults []string, err error) {
	logged, _, err := g.client.Spans(ctx, g.sid, 0)
	if err != nil {
		return nil, err
	}
	want := map[string][]byte{}
	for _, s := range logged {
		if want[s.Place], err = json.Marshal(s); err != nil {
			return nil, err
		}
	}
	collected, err := os.ReadFile(collectorIn(g.dir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	missing := maps.Clone(want)
	for line := range bytes.Lines(collected) {
		var s struct{ Place string }
		if err := json.Unmarshal(line, &s); err != nil {
			return nil, fmt.Errorf("read the spans of %s: %w", g.sid, err)
		}
		if line = bytes.TrimSpace(line); !bytes.Equal(line, want[s.Place]) {
			faults = append(faults, fmt.Sprintf("the span %s was exported as %s, the log makes %s", s.Place, line, want[s.Place]))
		}
		delete(missing, s.Place)
	}
	for _, place := range slices.Sorted(maps.Keys(missing)) {
		faults = append(faults, fmt.Sprintf("the span %s was not exported", place))
	}
	return faults, nil
}
