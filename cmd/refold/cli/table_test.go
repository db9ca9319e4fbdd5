package cli

// Whole tables: cut to a terminal's width, and in a pipe in columns with
// nothing cut.

import (
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/cmd/settings"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/presence"
)

func TestTablesFitTheTerminal(t *testing.T) { //nolint:paralleltest // it sets the environment
	w := newWorld(t)
	w.serves("tool/host llm/openai")
	w.does(0, "install", file(t, mailRecord))
	stop, err := w.bus.Register(w.ctx, presence.Service{Kind: "bridge", Version: "1.0.0", Metadata: map[string]string{
		"name": "b1", "targets": "llm/gemini", "lacks llm/gemini": "no key: set GEMINI_API_KEY",
	}})
	bustest.OK(t, err)
	defer func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	}()
	w.converses()
	w.does(0, "run", "s1", strings.Repeat("a long text ", 20), "--no-follow")
	environment(t, "xterm", "", "")
	for args, head := range map[string]string{
		"tools check --within 1ms": "TOOL ", "install --list": "SEQ ", "queue s1": "RUN ",
	} {
		_, shown := w.onTerminal(48, strings.Fields(args)...)
		_, table, found := strings.Cut(sgr.ReplaceAllString(shown, ""), head)
		lines := strings.Split(head+table, "\n")
		if !found || len(lines) < 2 {
			t.Errorf("%s: no table: %q", args, shown)
			continue
		}
		if line := lines[1]; settings.Cells(line) > 48 || !strings.Contains(line, "…") {
			t.Errorf("%s: a row takes %d columns: %q", args, settings.Cells(line), line)
		}
	}
	_, shown := w.onTerminal(40, "bridge", "doctor")
	like(t, "doctor", shown, `\nllm/gemini  1        b1: no key: set GE…\n(.*\n)*lacks: llm/gemini: b1: no key: set GEMINI_API_KEY\n`)
}

func TestWholeTableAlignsItsColumns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		columns int
		heads   []string
		want    string
	}{
		{0, []string{"NAME", "N", "TEXT"}, "NAME  N   TEXT\nred   12  a text of many words\nblue  1   \n"},
		{20, []string{"NAME", "N", "TEXT"}, "NAME  N   TEXT\nred   12  a text of…\nblue  1   \n"},
		{0, []string{"", "", ""}, "red   12  a text of many words\nblue  1   \n"},
	} {
		var out strings.Builder
		table := newWholeTable(&out, c.heads...)
		table.screen.Columns = c.columns
		for _, row := range [][]string{{"red", "12", "a text of\nmany words"}, {"blue", "1", ""}} {
			table.texts(row...)
		}
		table.flush()
		if out.String() != c.want {
			t.Errorf("%d columns: got %q, want %q", c.columns, out.String(), c.want)
		}
		for line := range strings.Lines(out.String()) {
			if n := settings.Cells(strings.TrimSuffix(line, "\n")); c.columns > 0 && n > c.columns {
				t.Errorf("a line takes %d columns: %q", n, line)
			}
		}
	}
}

// Times of notices are the server's, so ages go by its clock.
func TestAgeGoesByTheServersClock(t *testing.T) {
	t.Parallel()
	server := time.Now().Add(-11 * time.Minute)
	ago := func(d time.Duration) int64 { return server.Add(-d).UnixMilli() }
	terminal := settings.Screen{Columns: 80}
	for ms, want := range map[int64]string{0: "-", ago(3 * time.Second): "3s", ago(90 * time.Second): "1m", ago(3 * time.Hour): "3h", ago(50 * time.Hour): "2d"} {
		if got := age(terminal, ms, func() time.Time { return server }); got != want {
			t.Errorf("%d: got %s, want %s", ms, got, want)
		}
	}
}
