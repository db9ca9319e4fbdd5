package cli

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"

	"github.com/refold/refold"
	"github.com/refold/refold/internal/devserver"
	"github.com/refold/refold/internal/inspector"
	"github.com/refold/refold/web"
	"github.com/refold/refold/web/bearer"
)

// inspectAddress is where dev and the demo serve the inspector.
const inspectAddress = "127.0.0.1:4280"

// provingFlags are those of commands that serve or write the inspector's pages.
type provingFlags struct {
	WASM string `name:"wasm" type:"existingfile" placeholder:"FILE" help:"Program with which the inspector's pages fold a session again in the browser, as make wasm writes it. Default: the one inside, if this program was built after make wasm."`
}

// program returns the file of the program; nil: none is given.
func (p provingFlags) program() ([]byte, error) {
	if p.WASM == "" {
		return nil, nil
	}
	file, err := os.ReadFile(p.WASM)
	if err == nil {
		_, err = inspector.ReadProgram(file)
	}
	if err != nil {
		return nil, fmt.Errorf("--wasm %s: %w", p.WASM, err)
	}
	return file, nil
}

// serveInDev serves a runtime on a server in this process, until stop is called.
func serveInDev(ctx context.Context, server *devserver.Server, prefix string, l net.Listener, o web.Options) (stop func(), err error) {
	rt, err := refold.Open(ctx, inDev{server}, refold.Prefix(prefix), refold.Logger(o.Logger))
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	serving, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = serveHTTP(serving, l, web.Handler(rt, o))
	}()
	return func() {
		cancel()
		<-ended
		_ = rt.Close()
	}, nil
}

// listen returns the listener of dev's HTTP server; nil: there is none. If no address was
// asked for and the usual one is taken, dev goes on without.
func (d devCommand) listen(out io.Writer) (net.Listener, error) {
	address := d.Serve
	switch address {
	case "off":
		return nil, nil
	case "":
		address = inspectAddress
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil || !isLoopback(host) {
		return nil, &statusError{statusUsage, "dev: --serve is a loopback address and a port, such as 127.0.0.1:8080, or off: it serves without tokens; refold serve has them"}
	}
	l, err := net.Listen("tcp", address)
	switch {
	case err == nil:
		return l, nil
	case d.Serve != "":
		return nil, fmt.Errorf("dev: --serve: %w: stop the program that has it, or choose another address", err)
	}
	fmt.Fprintf(out, "The inspector and the HTTP API are not served: %v.\nStop the program that has the address, or start dev with --serve 127.0.0.1:PORT; --serve off serves none.\n", err)
	return nil, nil
}

// serve serves the HTTP API and the inspector of dev, without tokens.
func (d devCommand) serve(ctx context.Context, s streams, server *devserver.Server, prefix string) (stop func(), err error) {
	program, err := d.program()
	if err != nil {
		return nil, fmt.Errorf("dev: %w", err)
	}
	l, err := d.listen(s.out)
	if err != nil || l == nil {
		return func() {}, err
	}
	anyone := func(*http.Request) (*web.Caller, error) {
		return &web.Caller{Subject: "dev", Rights: web.Rights}, nil
	}
	stop, err = serveInDev(ctx, server, prefix, l, web.Options{Auth: anyone, Logger: d.logger(s.err), Program: program})
	if err == nil {
		tellAddress(s.out, "http://"+l.Addr().String())
	}
	return stop, err
}

// errWrongToken refuses a request to the demo's pages.
var errWrongToken = errors.New("the token is not the one that the demo printed: open the address that it printed")

// show serves the inspector with a token that may only read, prints the address of a
// page, and waits until ctx ends.
func (demoCommand) show(ctx context.Context, out io.Writer, server *devserver.Server, prefix, page string, log *slog.Logger) error {
	l, err := net.Listen("tcp", inspectAddress)
	if err != nil { // another program, or another demo, has the port
		l, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		return fmt.Errorf("demo: --inspect: %w: stop the program that has the port", err)
	}
	token := bearer.New()
	auth := func(r *http.Request) (*web.Caller, error) {
		if subtle.ConstantTimeCompare([]byte(web.Bearer(r)), []byte(token)) == 0 {
			return nil, errWrongToken
		}
		return &web.Caller{Subject: "demo", Rights: []web.Right{web.RightRead}}, nil
	}
	stop, err := serveInDev(ctx, server, prefix, l, web.Options{Auth: auth, Logger: log})
	if err != nil {
		return err
	}
	defer stop()
	fmt.Fprintf(out, "\nThe inspector shows it until Ctrl-C. Open this address in a browser; its token may only read:\n\n  http://%s%s#token=%s\n\n", l.Addr(), page, token)
	<-ctx.Done()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) { // a part of the demo failed
		return cause
	}
	return nil
}
