package host

import "time"

// Limits that no option moves.
const (
	fileBytesMax  = 8 << 20 // of a file that is edited or patched: it is held whole
	patchBytesMax = 1 << 20
	lineShownMax  = 500 // bytes of one line that grep shows
	lineBytesMax  = 1 << 20
	matchesMax    = 500  // matching lines that one grep shows
	namesMax      = 1000 // names that one glob or list_dir shows
	detailMax     = 256  // bytes of an error's detail; what is more goes to the output
	routeBytesMax = 128  // as the fold takes it
	rootBytesMax  = 1024 // as the fold takes it
	linksMax      = 40   // symbolic links that one path may lead through
	sniffBytes    = 8000 // of a file's beginning that tell text from binary

	globBytesMax   = 1 << 10   // of a glob
	globsMax       = 256       // patterns that the braces of one glob stand for
	walkStepsMax   = 2_000_000 // directory entries and parts of paths that one glob, grep or list_dir looks at: seconds
	regexBytesMax  = 4 << 10   // of grep's expression
	regexStatesMax = 4_096     // of its program: a match takes so many steps for each byte

	// drainMax is how long a call waits for the rest of the output when its
	// process group is gone and a process outside of it still holds the pipe.
	drainMax = 2 * time.Second

	// gentleMax is how long a supervisor may take to end what it started.
	gentleMax = 2 * time.Second

	// keepLeast is for how long files stay at least: an open that is carried out
	// again finds its session.
	keepLeast = time.Hour
)

// Defaults of Options.
const (
	outputBytesDefault = 64 << 10
	outputMaxDefault   = 256 << 20
	execTimeoutDefault = 60 * time.Second
	execTimeoutLimit   = 10 * time.Minute
)

// environDefault are the variables of this process that commands see. The list
// spells out those of the Go toolchain: a pattern like GO* would also pass on
// credentials of services whose names begin so.
var environDefault = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TZ", "LANG", "LC_*", "TMPDIR",
	"SSL_CERT_FILE", "SSL_CERT_DIR",
	"CGO_ENABLED", "CC", "CXX",
	"GO111MODULE", "GOARCH", "GOBIN", "GOCACHE", "GODEBUG", "GOENV", "GOEXPERIMENT", "GOFLAGS",
	"GOINSECURE", "GOMAXPROCS", "GOMEMLIMIT", "GOMODCACHE", "GONOPROXY", "GONOSUMDB", "GOOS",
	"GOPATH", "GOPRIVATE", "GOPROXY", "GOROOT", "GOSUMDB", "GOTMPDIR", "GOTOOLCHAIN", "GOVCS", "GOWORK",
}
