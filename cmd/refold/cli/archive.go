package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/refold/refold"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/source"
	"github.com/refold/refold/internal/transcript"
	"github.com/refold/refold/web"
)

// archiveCommand writes sessions into files.
type archiveCommand struct {
	Sessions []string `arg:"" name:"session" help:"The sessions."`
	To       string   `required:"" type:"existingdir" placeholder:"DIR" help:"Directory of the files, SESSION.refold each. Mount object storage, or copy the files with a tool of your own."`
	asJSON
}

// Help returns the help text above the flags.
func (archiveCommand) Help() string {
	return `A file has the session's events, the install record that it pinned and the blobs that
its events name. It is written under a temporary name, read back from the disk and folded
again; only then it gets its name. The session stays as it is. These commands read the
file without a server: replay, verify, transcript, log, prompt, export and inspect.
refold import continues it as a new session. Exit status 1 if a session can't be archived.`
}

// Run writes the files. A session that fails doesn't keep the others from theirs.
func (a archiveCommand) Run(ctx context.Context, s streams, conn connection) error {
	c, err := conn.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	failed := 0
	for _, sid := range a.Sessions {
		done, err := c.Archive(ctx, sid, a.To)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			failed++
			fmt.Fprintln(s.err, "refold:", err)
		case a.JSON:
			printJSON(s.out, done)
		default:
			fmt.Fprintln(s.out, archivedLine(done))
		}
	}
	if failed > 0 {
		return &statusError{statusFailed, ""}
	}
	return nil
}

// archivedLine describes an archive. It begins as the line of refold replay does.
func archivedLine(a *client.Archived) string {
	line := fmt.Sprintf("%s  %s  %s, %s  %s, %s", a.Hash, a.Session, transcript.Count(int(a.Events), "event"), transcript.Count(int(a.Blobs), "blob"), a.File, transcript.Count(int(a.Bytes), "byte"))
	if a.Was {
		line += ", there already"
	}
	if n := len(a.Missing); n > 0 {
		line += fmt.Sprintf("; the store lacks %s that its events name, the first is %s", transcript.Count(n, "blob"), a.Missing[0])
	}
	return line
}

// isArchive reports whether an argument names a file: no session's name has a dot or a
// slash.
func isArchive(arg string) bool { return strings.ContainsAny(arg, `.`+string(filepath.Separator)) }

// reader opens what an argument names, a session or an archive, and returns the session.
func (c connection) reader(ctx context.Context, arg string) (*client.Client, string, error) {
	if isArchive(arg) {
		return client.OpenArchive(arg)
	}
	reader, err := c.connect(ctx)
	return reader, arg, err
}

// source returns where a runtime finds what an argument names, and the session.
func (c connection) source(arg string) (refold.Source, string, error) {
	if !isArchive(arg) {
		return flagged(c), arg, nil
	}
	reader, sid, err := client.OpenArchive(arg)
	return inFile{reader}, sid, err
}

// inspectCommand shows an archive in a browser.
type inspectCommand struct {
	File   string `required:"" type:"existingfile" placeholder:"FILE" help:"The archive, as refold archive writes it."`
	Listen string `default:"127.0.0.1:0" placeholder:"HOST:PORT" help:"Loopback address to listen on. Default: a free port."`
	provingFlags
}

// Help returns the help text above the flags.
func (inspectCommand) Help() string {
	return `It serves the inspector's pages of the session in the file on this machine, without a
NATS server, until Ctrl-C. refold serve and refold dev serve those of a server's sessions;
refold export --html writes them into a page that needs no program.`
}

// Run serves until ctx ends.
func (i inspectCommand) Run(ctx context.Context, s streams) error {
	s = s.unguarded()
	host, _, err := net.SplitHostPort(i.Listen)
	if err != nil || !isLoopback(host) {
		return &statusError{statusUsage, "inspect: --listen is a loopback address and a port, such as 127.0.0.1:8080: it serves without tokens"}
	}
	o := web.Options{
		Auth: func(*http.Request) (*web.Caller, error) {
			return &web.Caller{Subject: "inspect", Rights: []web.Right{web.RightRead}}, nil
		},
		Logger: slog.New(slog.NewTextHandler(s.err, nil)),
	}
	if o.Program, err = i.program(); err != nil {
		return fmt.Errorf("inspect: %w", err)
	}
	c, sid, err := client.OpenArchive(i.File)
	if err != nil {
		return err
	}
	rt, err := refold.Open(ctx, inFile{c}, refold.Logger(o.Logger))
	if err != nil {
		return err
	}
	defer rt.Close()
	l, err := net.Listen("tcp", i.Listen)
	if err != nil {
		return fmt.Errorf("inspect: --listen: %w: choose another address", err)
	}
	tellFile(s.out, l.Addr(), sid)
	return serveHTTP(ctx, l, web.Handler(rt, o))
}

func tellFile(out io.Writer, at net.Addr, sid string) {
	fmt.Fprintf(out, "The archive of session %s is at http://%s/s/%s: open it in a browser.\n", sid, at, sid)
}

// inFile is the log of an archive.
type inFile struct{ c *client.Client }

// Open implements refold.Source.
func (f inFile) Open(context.Context, source.Options) (*source.Opened, error) {
	return &source.Opened{Client: f.c, Close: func() {}}, nil
}
