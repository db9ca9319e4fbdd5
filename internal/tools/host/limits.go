package host

import "time"

// Limits that no option changes.
const (
	fileBytesMax  = 8 << 20 // of a file to edit or patch: it is held in memory
	patchBytesMax = 1 << 20
	lineShownMax  = 500 // bytes of one line in grep's output
	lineBytesMax  = 1 << 20
	matchesMax    = 500  // matching lines of one grep
	namesMax      = 1000 // names of one glob or list_dir
	detailMax     = 256  // bytes of an error's detail; a longer one goes to the output
	routeBytesMax = 128  // the fold's limit
	rootBytesMax  = 1024 // the fold's limit
	linksMax      = 40   // symbolic links on one path
	sniffBytes    = 8000 // of a file's beginning, to tell text from binary

	globBytesMax   = 1 << 10   // of a glob
	globsMax       = 256       // patterns from the braces of one glob
	walkStepsMax   = 2_000_000 // directory entries and path elements that one glob, grep or list_dir reads: seconds
	regexBytesMax  = 4 << 10   // of grep's expression
	regexStatesMax = 4_096     // of its program: the steps of a match for each byte

	// drainMax is how long a call waits for output after its process group is
	// gone, while a process outside of it still holds the pipe.
	drainMax = 2 * time.Second

	// gentleMax is how long a supervisor may take to kill its processes.
	gentleMax = 2 * time.Second

	// keepLeast is the least value of Keep: an open that is carried out again
	// must find its session.
	keepLeast = time.Hour
)

// Defaults of Options.
const (
	outputBytesDefault = 64 << 10
	outputMaxDefault   = 256 << 20
	execTimeoutDefault = 60 * time.Second
	execTimeoutLimit   = 10 * time.Minute
)

// environDefault are the variables of this process that commands see. Those of
// the Go toolchain are listed one by one: a pattern like GO* would also pass
// credentials of services whose variables begin with GO.
var environDefault = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TZ", "LANG", "LC_*", "TMPDIR",
	"SSL_CERT_FILE", "SSL_CERT_DIR",
	"CGO_ENABLED", "CC", "CXX",
	"GO111MODULE", "GOARCH", "GOBIN", "GOCACHE", "GODEBUG", "GOENV", "GOEXPERIMENT", "GOFLAGS",
	"GOINSECURE", "GOMAXPROCS", "GOMEMLIMIT", "GOMODCACHE", "GONOPROXY", "GONOSUMDB", "GOOS",
	"GOPATH", "GOPRIVATE", "GOPROXY", "GOROOT", "GOSUMDB", "GOTMPDIR", "GOTOOLCHAIN", "GOVCS", "GOWORK",
}
