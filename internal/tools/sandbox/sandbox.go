package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Mode says what to do about guarantees that can't be enforced here.
type Mode string

// The modes. Empty is Auto.
const (
	Auto     Mode = "auto"     // enforce what is possible, and report the others
	Required Mode = "required" // enforce all, or New fails
	Off      Mode = "off"      // enforce nothing
)

// Config says what commands may do. The zero value is usable.
type Config struct {
	Mode    Mode
	Network bool     // commands may use the network
	Read    []string // absolute paths that they may read and execute, in addition to the system's
	Limits  Limits
}

// Limits are the limits of one command. 0 is the default.
type Limits struct {
	CPU       time.Duration // of each process; 10 min
	Memory    int64         // bytes, of each process and of all together; 2 GiB
	FileSize  int64         // bytes of each file that it writes; 1 GiB
	Processes int           // also threads, where rlimits count them; 256
}

const (
	cpuDefault       = 10 * time.Minute
	memoryDefault    = 2 << 30
	fileSizeDefault  = 1 << 30
	processesDefault = 256

	memoryMin    = 64 << 20 // programs in Go, and scripts, hardly start with less
	fileSizeMin  = 1 << 20
	processesMin = 4
)

// Validate reports every problem of c.
func (c Config) Validate() error {
	var all []error
	say := func(wrong bool, format string, args ...any) {
		if wrong {
			all = append(all, fmt.Errorf(format, args...))
		}
	}
	switch c.Mode {
	case "", Auto, Required, Off:
	default:
		say(true, "sandbox %q: say required, auto or off", c.Mode)
	}
	for _, name := range c.Read {
		say(!filepath.IsAbs(name), "path to read %q: give an absolute one", name)
	}
	l := c.Limits
	say(l.CPU != 0 && l.CPU < time.Second, "CPU time of a command, %v: at least 1s", l.CPU)
	say(l.Memory != 0 && l.Memory < memoryMin, "memory of a command, %d bytes: at least 64 MiB", l.Memory)
	say(l.FileSize != 0 && l.FileSize < fileSizeMin, "file size of a command, %d bytes: at least 1 MiB", l.FileSize)
	say(l.Processes != 0 && (l.Processes < processesMin || l.Processes > 1<<15), "processes of a command, %d: 4 to 32768", l.Processes)
	return errors.Join(all...)
}

func (c Config) withDefaults() Config {
	c.Mode = cmp.Or(c.Mode, Auto)
	l := &c.Limits
	l.CPU = cmp.Or(l.CPU, cpuDefault)
	l.Memory = cmp.Or(l.Memory, memoryDefault)
	l.FileSize = cmp.Or(l.FileSize, fileSizeDefault)
	l.Processes = cmp.Or(l.Processes, processesDefault)
	return c
}

// Guarantee is one guarantee of a sandbox.
type Guarantee string

// The guarantees, in the order in which they are reported.
const (
	Files      Guarantee = "files"      // nothing outside the directory is written, and only the system's files are read
	Metadata   Guarantee = "metadata"   // no mode, owner, time or attribute outside is changed, and no set-user-ID program made
	Network    Guarantee = "network"    // no other machine and no socket of this one is reached
	Ends       Guarantee = "ends"       // no descendant outlives the command
	CPU        Guarantee = "cpu"        // of each process
	Memory     Guarantee = "memory"     // of each process, and of all together
	FileSize   Guarantee = "file_size"  // of each file
	Processes  Guarantee = "processes"  // their number
	Privileges Guarantee = "privileges" // no capabilities, no way to get some, no keyring, no abstract socket of others
)

var guarantees = []Guarantee{Files, Metadata, Network, Ends, CPU, Memory, FileSize, Processes, Privileges}

// Report lists the guarantees that were tested.
type Report struct {
	Mode     Mode
	Enforced []Guarantee
	Missing  []Gap
	Means    string // the mechanisms, for people
	Memory   string // what bounds memory: count, or count and cgroup; empty: the guarantee does not hold
	NoCgroup string // why memory is bounded by the count alone
}

// Gap is a guarantee that does not hold, and why.
type Gap struct {
	What Guarantee
	Why  string
}

// Holds reports whether a guarantee holds.
func (r Report) Holds(g Guarantee) bool { return slices.Contains(r.Enforced, g) }

// Lacks lists the missing guarantees with reasons, or returns "".
func (r Report) Lacks() string {
	texts := make([]string, len(r.Missing))
	for i, gap := range r.Missing {
		texts[i] = string(gap.What) + " (" + gap.Why + ")"
	}
	return strings.Join(texts, ", ")
}

// String returns one line for people.
func (r Report) String() string {
	if r.Mode == Off {
		return "sandbox off: commands may do what this user may"
	}
	held := make([]string, len(r.Enforced))
	for i, g := range r.Enforced {
		held[i] = string(g)
	}
	text := "sandbox enforces " + strings.Join(held, " ")
	if len(held) == 0 {
		text = "sandbox enforces nothing"
	}
	if r.Means != "" {
		text += " by " + r.Means
	}
	if r.Memory != "" {
		text += "; memory by " + r.Memory
	}
	if r.NoCgroup != "" {
		text += " (no cgroup: " + r.NoCgroup + ")"
	}
	if len(r.Missing) > 0 {
		text += "; not enforced: " + r.Lacks()
	}
	return text
}

// Box starts confined commands. It is safe for concurrent use.
type Box struct {
	config  Config
	report  Report
	way     way      // how children are started
	cgroups *cgroups // nil: commands get none
}

// New tests what can be enforced. With [Required] it fails unless everything can;
// the error lists the gaps. A nil Box, which [Off] gives, confines nothing.
//
// From then on no other process of this user may read this process's memory and
// files, unless commands are in user namespaces, which see neither.
func New(c Config) (*Box, Report, error) {
	if err := c.Validate(); err != nil {
		return nil, Report{}, err
	}
	c = c.withDefaults()
	if c.Mode == Off {
		forbidTracing()
		return nil, Report{Mode: Off}, nil
	}
	b := &Box{config: c}
	b.probe()
	if !b.way.user { // a process without tracing may not write a child's id maps
		forbidTracing()
	}
	b.report.Mode = c.Mode
	if c.Mode == Required && len(b.report.Missing) > 0 {
		return nil, b.report, fmt.Errorf("the sandbox is required, and these can't be enforced here: %s; use auto to run without them", b.report.Lacks())
	}
	if !b.way.works {
		return nil, b.report, nil
	}
	return b, b.report, nil
}

// spec is the instruction to a child. It is sent through a pipe: others can
// read command lines and environments.
type spec struct {
	Argv     []string    `json:"argv"`
	Dir      string      `json:"dir"`   // where it runs
	Write    []string    `json:"write"` // directories in which files may be changed
	Read     []string    `json:"read"`
	Network  bool        `json:"network"`
	Limits   Limits      `json:"limits"`
	Cgroup   bool        `json:"cgroup"`          // the child has the files of a cgroup
	Promised []Guarantee `json:"promised"`        // without them the command must not start
	Probe    *trial      `json:"probe,omitempty"` // instead of a command
}

// End is how a command ended.
type End struct {
	Exit   int    `json:"exit"`             // status, if it exited
	Signal int    `json:"signal,omitempty"` // that ended it; 0: it exited
	Over   string `json:"over,omitempty"`   // the exceeded limit of all processes together: memory, processes
	Fault  string `json:"fault,omitempty"`  // why the command did not start
	Found  *found `json:"found,omitempty"`  // the result of a trial
}
