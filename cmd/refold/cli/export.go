package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/refold/refold"
	"github.com/refold/refold/cmd/settings"
	"github.com/refold/refold/web"
)

// exportCommand writes a session as a file.
type exportCommand struct {
	Session string `arg:"" archive:"" help:"The session, or the file of its archive: a name with a dot or a slash."`
	HTML    bool   `name:"html" help:"Write a page that shows the session in a browser, offline, with its states. The only form: refold archive writes a file that refold reads, refold replay --export prints a scenario, refold transcript the conversation."`
	Output  string `placeholder:"FILE" help:"The file, which may not exist; - is standard output. Default: SESSION.html."`
	provingFlags
}

// Run writes the file. It leaves nothing behind if it fails.
func (e exportCommand) Run(ctx context.Context, s streams, conn connection) (err error) {
	if !e.HTML {
		return &statusError{statusUsage, "export: give --html; refold replay " + e.Session + " --export prints a scenario, refold transcript the conversation"}
	}
	o := web.ExportOptions{By: "refold " + settings.Version()}
	if o.Program, err = e.program(); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	at, sid, err := conn.source(e.Session)
	if err != nil {
		return err
	}
	name := e.Output
	if name == "" {
		name = sid + ".html"
	}
	rt, err := refold.Open(ctx, at, refold.Prefix(conn.Prefix), refold.Logger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return err
	}
	defer rt.Close()
	if name == "-" {
		_, err := web.Export(ctx, rt, sid, s.out, o)
		return err
	}
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("export: %w: name another file by --output", err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(name)
		}
	}()
	out := bufio.NewWriter(file)
	wrote, err := web.Export(ctx, rt, sid, out, o)
	if err := errors.Join(err, out.Flush(), file.Close()); err != nil {
		return err
	}
	e.tell(s.err, name, wrote)
	return nil
}

// tell says what is in the file.
func (e exportCommand) tell(out io.Writer, name string, wrote *web.Exported) {
	fmt.Fprintf(out, "wrote %s: %d events of session %s, the states after %d of them\n", name, wrote.Events, wrote.Session, wrote.States)
	if !wrote.Proves {
		fmt.Fprintln(out, "it can't prove them: this refold has no program for browsers; make wasm in a checkout builds one, and --wasm FILE puts it into the page")
	}
	fmt.Fprintln(out, "it has the whole conversation, and all that tools returned: only its owner may read it")
}
