package main

// The example is run in two ways: the program, and its record and model with the tools
// of the host on a copy of its papers.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/devserver"
	"github.com/refold/refold/internal/llm/scripted"
	"github.com/refold/refold/internal/tools/host"
	"github.com/refold/refold/refoldtest"
)

// TestProgram: the program prints what README.md says.
func TestProgram(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(readme), "It prints\n\n")
	want, _, _ := strings.Cut(rest, "\n\n")
	want = strings.ReplaceAll("\n"+want, "\n    ", "\n")[1:] + "\n"
	var out strings.Builder
	if err := run(ctx, refoldtest.Dir(t.TempDir()), &out); err != nil {
		t.Fatal(err)
	}
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

// TestSteps: the run goes through its five steps, each with the tools that the
// rules offer, and the last one writes its file.
func TestSteps(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	papers := t.TempDir()
	if err := os.CopyFS(papers, os.DirFS("papers")); err != nil {
		t.Fatal(err)
	}
	record, err := os.ReadFile("record.json")
	if err != nil {
		t.Fatal(err)
	}
	checkReadme(t, record)
	model, err := scripted.Load("model.yaml")
	if err != nil {
		t.Fatal(err)
	}
	tools := host.New(t.TempDir(), host.Options{WorkDir: papers})
	if err := tools.Prepare(); err != nil {
		t.Fatal(err)
	}
	server, err := devserver.Start(ctx, devserver.Options{Dir: t.TempDir(), Install: record, Serve: func(b *bridge.Bridge) error {
		return errors.Join(b.Model("scripted", scripted.NewModel(model)), b.Tool("host", tools))
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	c, err := client.Connect(ctx, client.Options{URL: server.URL()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()

	from, err := c.LastNotice(ctx)
	if err != nil {
		t.Fatal(err)
	}
	seq, err := c.Run(ctx, "r1", "How do animals find their way?", client.RunOptions{})
	if err != nil {
		t.Fatal(err)
	}
	end, err := c.End(ctx, "r1", seq, from+1, nil)
	if err != nil || end.Lifecycle != session.Completed || end.Output == nil || !strings.HasPrefix(end.Output.Text, "Bees find") {
		t.Fatalf("end: %+v, %v", end, err)
	}
	if text, err := os.ReadFile(filepath.Join(papers, "summary.txt")); err != nil || !strings.Contains(string(text), "coast") {
		t.Errorf("summary.txt: %q, %v", text, err)
	}
	want := [][]string{{"open_session"}, {"search"}, {"search", "analyse"}, {"summarise"}, nil}
	if got := offered(ctx, t, c); !slices.EqualFunc(got, want, slices.Equal[[]string]) {
		t.Errorf("offered: got %q, want %q", got, want)
	}
}

// checkReadme: README.md quotes the rules unchanged.
func checkReadme(t *testing.T, record []byte) {
	t.Helper()
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	install, err := session.ParseInstall(record)
	if err != nil {
		t.Fatal(err)
	}
	for step, rule := range install.Record.Profiles[0].Steps {
		if row := fmt.Sprintf("| %d | `%s` |", step, rule.When); rule.When != "" && !strings.Contains(string(readme), row) {
			t.Errorf("README.md has no row %s", row)
		}
	}
}

// offered folds the session again and returns what each turn offered.
func offered(ctx context.Context, t *testing.T, c *client.Client) (all [][]string) {
	t.Helper()
	fold, turn := c.Folder("r1"), ""
	for e, err := range c.Events(ctx, "r1", 1) {
		if err != nil {
			t.Fatal(err)
		}
		_, state, err := fold(ctx, e)
		if err != nil {
			t.Fatal(err)
		}
		v := state.View()
		if v.Turn != nil && v.Turn.Effect != turn {
			turn = v.Turn.Effect
			all = append(all, names(v.Tools))
		}
		if v.Lifecycle == session.Completed {
			break
		}
	}
	return all
}

// names returns the names of the tools offered, in the order of the model.
func names(tools []session.ViewTool) (all []string) {
	tools = slices.DeleteFunc(slices.Clone(tools), func(v session.ViewTool) bool { return !v.Offered })
	slices.SortFunc(tools, func(a, b session.ViewTool) int { return a.Place - b.Place })
	for _, tool := range tools {
		all = append(all, tool.ToolName)
	}
	return all
}
