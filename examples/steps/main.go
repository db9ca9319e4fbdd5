// Steps is an agent whose tools are offered one after the other, by the rules of
// record.json. See README.md.
package main

import (
	"bufio"
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"

	"github.com/refold/refold"
	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/bridge/function"
	"github.com/refold/refold/embedded"
	"github.com/refold/refold/refoldtest"
)

//go:embed record.json papers
var files embed.FS

func main() {
	dir, err := os.MkdirTemp("", "refold-steps-") // the example begins anew each time
	if err == nil {
		err = errors.Join(run(context.Background(), embedded.Dir(dir), os.Stdout), os.RemoveAll(dir))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "steps:", err)
		os.Exit(1)
	}
}

// run asks the agent one question, and prints what each turn is offered.
func run(ctx context.Context, at refold.Source, out io.Writer) error {
	record, err := files.ReadFile("record.json")
	if err != nil {
		return err
	}
	install, err := session.ParseInstall(record)
	if err != nil {
		return err
	}
	rt, err := refold.Open(ctx, at)
	if err != nil {
		return err
	}
	defer rt.Close()
	researcher, err := rt.Agent("researcher", refold.Model(model(out)), refold.Tools(tools()...),
		refold.Config(refold.RunConfig{Steps: install.Record.Profiles[0].Steps}))
	if err != nil {
		return err
	}
	asked, err := researcher.Session("r1").Ask(ctx, "How do animals find their way?")
	if err != nil {
		return err
	}
	answer, err := asked.Wait(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, answer.Text)
	return nil
}

type pattern struct {
	Pattern string `json:"pattern" minLength:"1"`
}

type paper struct {
	Path string `json:"path" minLength:"1"`
}

type summary struct {
	Content string `json:"content"`
}

// tools are those that the rules name.
func tools() []*refold.Tool {
	return []*refold.Tool{
		refold.Func("papers.open", func(context.Context, struct{}) (string, error) { return "ready", nil },
			function.ToolName("open_session"), refold.RetrySafe()),
		refold.Func("papers.search", search, function.ToolName("search"), refold.ReadOnly(), refold.RetrySafe()),
		refold.Func("papers.read", func(_ context.Context, in paper) (string, error) {
			text, err := files.ReadFile(path.Join("papers", in.Path))
			return string(text), err
		}, function.ToolName("analyse"), refold.ReadOnly(), refold.RetrySafe(), refold.ParallelSafe()),
		refold.Func("papers.summarise", func(_ context.Context, in summary) (string, error) {
			return fmt.Sprintf("%d characters are noted", len(in.Content)), nil
		}, function.ToolName("summarise")),
	}
}

// search returns the lines of all papers that match.
func search(_ context.Context, in pattern) (string, error) {
	wanted, err := regexp.Compile(in.Pattern)
	if err != nil {
		return "", &executor.Error{Code: "invalid_pattern", Detail: err.Error()}
	}
	var found strings.Builder
	err = fs.WalkDir(files, "papers", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := files.ReadFile(name)
		lines := bufio.NewScanner(bytes.NewReader(text))
		for lines.Scan() {
			if wanted.MatchString(lines.Text()) {
				fmt.Fprintf(&found, "%s: %s\n", path.Base(name), lines.Text())
			}
		}
		return err
	})
	return found.String(), err
}

// model is a scripted model: it needs no key.
func model(out io.Writer) refold.ModelRef {
	calls := func(all ...executor.AnswerCall) refoldtest.Turn { return showing(out, refoldtest.Calls(all...)) }
	return refoldtest.Model(
		calls(refoldtest.To("open_session", nil)),
		calls(refoldtest.To("search", pattern{"find"})),
		calls(refoldtest.To("analyse", paper{"bees.txt"}), refoldtest.To("analyse", paper{"storks.txt"})),
		calls(refoldtest.To("summarise", summary{"Bees go by sight and scent, storks by sun, stars and coast."})),
		showing(out, refoldtest.Say("Bees find their way by sight and scent, storks by sun, stars and coast.")))
}

// showing prints which tools a turn is offered.
func showing(out io.Writer, turn refoldtest.Turn) refoldtest.Turn {
	return func(r executor.Request) (executor.Answer, error) {
		var names []string
		for _, tool := range r.Tools {
			names = append(names, tool.Name)
		}
		fmt.Fprintf(out, "%s is offered [%s]\n", r.Effect, strings.Join(names, " "))
		return turn(r)
	}
}
