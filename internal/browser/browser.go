//go:build peers

package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Size is that of a page, in CSS pixels, which are pixels of its pictures.
type Size struct{ Width, Height int64 }

// Wide is a page on a desk, Narrow one on a phone.
var (
	Wide   = Size{1200, 800}
	Narrow = Size{390, 844}
)

// patience is how long actions of a page may take. A browser on a loaded machine is slow.
const patience = 60 * time.Second

// Page is a tab of a browser of its own.
type Page struct {
	t   testing.TB
	ctx context.Context

	mu      sync.Mutex
	faults  []string
	changed chan struct{} // closed when there is another fault
	urls    map[network.RequestID]string
	said    strings.Builder // by the browser's process
}

// Open starts a browser with an empty page. The test's end ends the browser, and fails the
// test if the page has faults that it did not take.
func Open(t testing.TB, size Size) *Page {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("%v: make check-web installs it", err)
	}
	profile := t.TempDir()
	p := &Page{t: t, changed: make(chan struct{}), urls: map[network.RequestID]string{}}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(program),
		chromedp.UserDataDir(profile),
		chromedp.Env("HOME="+profile, "TZ=UTC", "LANG=C.UTF-8"),
		chromedp.CombinedOutput(&p.said),
		chromedp.WindowSize(int(size.Width), int(size.Height)),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-back-forward-cache", true), // pages that were left would keep their streams, of six connections
		chromedp.Flag("disable-lcd-text", true),
		chromedp.Flag("font-render-hinting", "none"),
		chromedp.Flag("lang", "en-US"),
		chromedp.DisableGPU,
	)
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	allocator, release := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(allocator, chromedp.WithListener(p.hear))
	p.ctx = ctx
	t.Cleanup(func() {
		p.reportFaults()
		_ = chromedp.Cancel(ctx) // waits for the process
		cancel()
		release()
	})
	p.Do(
		command(network.Enable, network.EnableParams{}),
		command(log.Enable, cdp.Empty{}),
		chromedp.EmulateViewport(size.Width, size.Height),
		command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "prefers-reduced-motion", Value: "reduce"}, {Name: "prefers-color-scheme", Value: "light"},
		}}),
	)
	return p
}

// command is an action that sends a command and ignores its answer.
func command[P, R any](c cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, params)
		return err
	})
}

// Do performs actions one after another, and fails the test if one of them fails, or if
// they take more than a minute.
func (p *Page) Do(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	run(p, chromedp.Steps(actions...))
}

// run performs an action, and returns its value.
func run[T any](p *Page, action chromedp.Action[T]) T {
	p.t.Helper()
	// The first use starts the browser, whose life must not end with a deadline.
	if err := chromedp.Do(p.ctx); err != nil {
		p.t.Fatalf("start the browser: %v\n%s", err, p.said.String())
	}
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, action)
	if err != nil {
		again, cancel := context.WithTimeout(p.ctx, patience)
		defer cancel()
		text, _ := chromedp.Run(again, chromedp.Evaluate[string](visible))
		p.t.Fatalf("the page: %v\nits faults: %q\nits text:\n%s", err, p.Faults(), text)
	}
	return value
}

// visible is the text of a page, as a person sees it.
const visible = `document.body?.innerText ?? ""`

// Eventually waits until an expression of JavaScript is true. One that throws is false: what
// it looks for may not be there yet.
func (p *Page) Eventually(expression string) {
	p.t.Helper()
	run(p, chromedp.Poll[bool]("(() => { try { return !!("+expression+") } catch { return false } })()", chromedp.WithPollingInterval(20*time.Millisecond), chromedp.WithPollingTimeout(patience)))
}

// Text returns the text of the page, as a person sees it.
func (p *Page) Text() string { return Value[string](p, visible) }

// Value returns the value of an expression of JavaScript, or of its promise.
func Value[T any](p *Page, expression string) T {
	p.t.Helper()
	return run(p, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// Faults returns what went wrong in the page and was not taken.
func (p *Page) Faults() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.faults)
}

// TakeFault waits for a fault that contains a text, and takes all of these: they do not
// fail the test.
func (p *Page) TakeFault(containing string) {
	p.t.Helper()
	deadline := time.After(patience)
	for {
		p.mu.Lock()
		before, changed := len(p.faults), p.changed
		p.faults = slices.DeleteFunc(p.faults, func(f string) bool { return strings.Contains(f, containing) })
		found := len(p.faults) < before
		p.mu.Unlock()
		if found {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			p.t.Fatalf("the page has no fault with %q; it has %q", containing, p.Faults())
		}
	}
}

// IgnoreFaults takes all faults so far that contain a text, if there are any.
func (p *Page) IgnoreFaults(containing string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = slices.DeleteFunc(p.faults, func(f string) bool { return strings.Contains(f, containing) })
}

// SlowCPU makes the page's processor so many times slower.
func (p *Page) SlowCPU(times float64) {
	p.t.Helper()
	p.Do(command(emulation.SetCPUThrottlingRate, emulation.SetCPUThrottlingRateParams{Rate: times}))
}

// Heap returns the megabytes of the page's objects of JavaScript that are still needed.
func (p *Page) Heap() float64 {
	p.t.Helper()
	p.Do(command(heapprofiler.CollectGarbage, cdp.Empty{}))
	return run(p, func(ctx context.Context, t *chromedp.Target) (float64, error) {
		usage, err := cdp.Call(ctx, t, runtime.GetHeapUsage, cdp.Empty{})
		return usage.UsedSize / 1e6, err
	})
}

func (p *Page) reportFaults() {
	for _, f := range p.Faults() {
		p.t.Errorf("the page: %s", f)
	}
}

func (p *Page) fault(format string, args ...any) {
	p.faults = append(p.faults, fmt.Sprintf(format, args...))
	close(p.changed)
	p.changed = make(chan struct{})
}

// hear keeps what goes wrong.
func (p *Page) hear(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text += " " + e.ExceptionDetails.Exception.Description
		}
		p.fault("exception: %s", text)
	case *runtime.EventConsoleAPICalled:
		if e.Type != runtime.ConsoleAPICalledTypeError && e.Type != runtime.ConsoleAPICalledTypeAssert {
			return
		}
		var args []string
		for _, a := range e.Args {
			text := a.Description
			if text == "" {
				text = string(a.Value)
			}
			args = append(args, text)
		}
		p.fault("console: %s", strings.Join(args, " "))
	case *log.EventEntryAdded:
		// Failed requests come as events of the network, too.
		if e.Entry.Level == log.EntryLevelError && e.Entry.Source != log.EntrySourceNetwork {
			p.fault("%s: %s", e.Entry.Source, e.Entry.Text)
		}
	case *network.EventRequestWillBeSent:
		p.urls[e.RequestID] = e.Request.Method + " " + e.Request.URL
	case *network.EventResponseReceived:
		if e.Response.Status >= 400 {
			p.fault("%s: %d", p.urls[e.RequestID], e.Response.Status)
		}
	case *network.EventLoadingFailed:
		if !e.Canceled { // by the page itself
			p.fault("%s: %s", p.urls[e.RequestID], e.ErrorText)
		}
	case *page.EventJavascriptDialogOpening:
		p.fault("dialog: %s", e.Message)
	}
}
