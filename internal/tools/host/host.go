package host

import (
	"context"
	"encoding/json"
	"errors"
	"hash/fnv"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/tools/sessiontools"
)

// Ids of the tools, the keys of the registry.
const (
	ToolSessionOpen  = "host.session.open"
	ToolSessionClose = "host.session.close"
	ToolExec         = "host.exec"
	ToolReadFile     = "host.fs.read_file"
	ToolStat         = "host.fs.stat"
	ToolExists       = "host.fs.exists"
	ToolGrep         = "host.fs.grep"
	ToolGlob         = "host.fs.glob"
	ToolListDir      = "host.fs.list_dir"
	ToolWriteFile    = "host.fs.write_file"
	ToolEditFile     = "host.fs.edit_file"
	ToolApplyPatch   = "host.fs.apply_patch"
)

// File tools refuse what is in a .git directory. A registry that binds a file tool
// under the other prefix, such as host.git.write_file, allows it.
const (
	filePrefix = "host.fs."
	gitPrefix  = "host.git."
)

// tool carries out one call in a working directory. The model sees the output
// even if there is an error.
type tool func(h *Host, ctx context.Context, p *workdir, arguments json.RawMessage) (string, error)

// toolOf returns a tool that decodes its arguments and calls run.
func toolOf[A any](run func(h *Host, ctx context.Context, p *workdir, args A) (string, error)) tool {
	return func(h *Host, ctx context.Context, p *workdir, arguments json.RawMessage) (string, error) {
		var args A
		if err := decode(arguments, &args); err != nil {
			return "", err
		}
		return run(h, ctx, p, args)
	}
}

// tools are the tools that need a host session.
var tools = map[string]tool{
	ToolExec:       toolOf((*Host).exec),
	ToolReadFile:   toolOf((*Host).readFile),
	ToolStat:       toolOf((*Host).stat),
	ToolExists:     toolOf((*Host).exists),
	ToolGrep:       toolOf((*Host).grep),
	ToolGlob:       toolOf((*Host).glob),
	ToolListDir:    toolOf((*Host).listDir),
	ToolWriteFile:  toolOf((*Host).writeFile),
	ToolEditFile:   toolOf((*Host).editFile),
	ToolApplyPatch: toolOf((*Host).applyPatch),
}

// ToolIDs returns the ids of the tools of a Host in the built-in registry, sorted.
// It also has the file tools under gitPrefix.
func ToolIDs() []string {
	ids := append(slices.Collect(maps.Keys(tools)), ToolSessionOpen, ToolSessionClose)
	slices.Sort(ids)
	return ids
}

// ToolIDs returns the ids of all tools that it carries out, sorted.
func (h *Host) ToolIDs() []string {
	ids := append(ToolIDs(), ToolSkillUnpack)
	for id := range tools {
		if name, ok := strings.CutPrefix(id, filePrefix); ok {
			ids = append(ids, gitPrefix+name)
		}
	}
	slices.Sort(ids)
	return ids
}

// Host is the executor of the built-in tools. It is safe for concurrent use.
type Host struct {
	root  string // absolute
	base  string // the parent of the working directories
	opts  Options
	blobs sessiontools.Blobs // nil: skills can't be unpacked

	// writes serialises calls that change files of one directory, by a hash of
	// the directory. The planner does so too, but knows neither second names of
	// a file nor other sessions with the same directory.
	writes [64]sync.Mutex

	openMu sync.Mutex // no host session is opened while files are removed
	swept  sync.Once

	// Of sweeps: the sessions with a record here that were deleted, and from where on their
	// list was not read.
	deleted     map[string]bool
	deletedFrom uint64
	temps       atomic.Int64 // Unix ns: when temporary directories were last looked for

	usedMu sync.Mutex
	used   map[string]int // the number of calls using a host session
}

var _ executor.Executor = (*Host)(nil)

// New returns a host that keeps its sessions, and unless opts say otherwise
// their working directories, under the directory root. It touches no file;
// [Host.Prepare] checks root and opts.
func New(root string, opts Options) *Host {
	opts = opts.withDefaults()
	h := &Host{root: absolute(root), opts: opts, deleted: map[string]bool{}}
	h.base = h.root
	if opts.WorkDir != "" {
		h.base = absolute(opts.WorkDir)
	}
	return h
}

// absolute returns a path unchanged if the process has no working directory;
// Prepare then fails.
func absolute(name string) string {
	if abs, err := filepath.Abs(name); err == nil {
		return abs
	}
	return name
}

// Prepare creates the root, and reports why sessions can't be opened. Opening
// one calls it; a daemon calls it at its start, so that an operator sees the
// error early.
func (h *Host) Prepare() error {
	if err := h.opts.Validate(); err != nil {
		return err
	}
	if !filepath.IsAbs(h.root) {
		return errors.New("the host's root is relative and there is no current directory; give an absolute path")
	}
	return os.MkdirAll(filepath.Join(h.root, recordsDir), 0o700)
}

// Execute carries out one call. Its error is always nil: a failure is a Result
// with an Error, or with Unknown if ctx stopped a command half way. A call
// whose host session is gone gets `no_host_session`, and the result sets the
// session's status so that open_session is offered again.
func (h *Host) Execute(ctx context.Context, call executor.Call) (executor.Result, error) {
	if err := ctx.Err(); err != nil {
		return result("", err), nil
	}
	var whole func(executor.Call) (executor.Result, error)
	switch call.ToolID {
	case ToolSessionOpen:
		whole = h.open
	case ToolSessionClose:
		whole = h.closeSession
	default:
		return h.inPlace(ctx, call), nil
	}
	r, err := whole(call)
	if err != nil {
		return result("", err), nil
	}
	return r, nil
}

// inPlace carries out a tool that needs a working directory.
func (h *Host) inPlace(ctx context.Context, call executor.Call) executor.Result {
	name, git := strings.CutPrefix(call.ToolID, gitPrefix)
	if git {
		name = filePrefix + name
	} else {
		name = call.ToolID
	}
	run, ok := tools[name]
	if call.ToolID == ToolSkillUnpack {
		run, ok = func(h *Host, ctx context.Context, p *workdir, _ json.RawMessage) (string, error) {
			return h.unpack(ctx, p, call)
		}, true
	}
	if !ok {
		return result("", refuse(CodeToolUnbound, "the host has no tool %.80q; it has %s", call.ToolID, strings.Join(ToolIDs(), ", ")))
	}
	defer h.use(call.HostSession)()
	rec, lost, err := h.find(call)
	if err != nil {
		r := result("", err)
		r.HostSession = lost
		return r
	}
	p, err := openWorkdir(h.base, rec.WorkDir)
	if errors.Is(err, fs.ErrNotExist) {
		r := result("", refuse(CodeNoHostSession, "the host session's working directory is gone; call open_session to open another"))
		r.HostSession = rec.hostSession(statusError)
		return r
	}
	if err != nil {
		return result("", err)
	}
	defer p.close()
	p.git = git || name == ToolExec
	return result(run(h, ctx, p, call.Arguments))
}

// lock returns the lock that a call holds while it changes files in p.
func (h *Host) lock(p *workdir) *sync.Mutex {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(p.dir))
	return &h.writes[sum.Sum32()%uint32(len(h.writes))]
}
