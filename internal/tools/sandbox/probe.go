package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// trial is the targets of a confined child that tests what holds.
type trial struct {
	Inside    string `json:"inside"`    // a directory that it may write to
	Forbidden string `json:"forbidden"` // a file outside
	Outside   string `json:"outside"`   // a file outside, to be created
	Connect   string `json:"connect"`   // a listener on this machine's loopback
	Abstract  string `json:"abstract"`  // an abstract socket of this machine
	Process   int    `json:"process"`   // this one
}

// found is the result of a trial.
type found struct {
	WroteInside  bool   `json:"wrote_inside"`
	ReadOutside  bool   `json:"read_outside"`
	WroteOutside bool   `json:"wrote_outside"`
	Changed      string `json:"changed"`    // why it could change metadata outside, or make a set-user-ID file; empty: it could not
	Connected    bool   `json:"connected"`  // it connected, or could have in another way
	Abstract     bool   `json:"abstract"`   // it connected to an abstract socket of this machine
	Signals      bool   `json:"signals"`    // it may signal this process
	First        bool   `json:"first"`      // it is the first process of its namespace
	Sees         bool   `json:"sees"`       // it sees the processes of its namespace, and no others
	Limits       string `json:"limits"`     // why rlimits were not set; empty: they were set
	Measured     bool   `json:"measured"`   // memory can be counted
	Counted      bool   `json:"counted"`    // the kernel counts this user's processes
	Privileged   bool   `json:"privileged"` // a command would have capabilities, or could gain some
	Unfiltered   bool   `json:"unfiltered"` // a command could make calls that the filter refuses
}

// probe finds the best way to start children, and what it guarantees.
func (b *Box) probe() {
	trials, clean, err := newTrial()
	if err != nil {
		b.nothing("the trial can't be prepared: " + err.Error())
		return
	}
	defer clean()
	why := unable()
	for _, w := range ways() {
		end, err := b.try(w, trials)
		if err == nil && end.Found != nil && end.Found.WroteInside {
			w.works = true
			b.way = w
			b.judge(*end.Found)
			b.tryCgroups(trials)
			return
		}
		if err == nil {
			err = fmt.Errorf("a confined child could not do what is permitted: %s", end.Fault)
		}
		why = err.Error()
	}
	b.nothing(why)
}

// nothing reports that no guarantee holds.
func (b *Box) nothing(why string) {
	for _, g := range guarantees {
		b.report.Missing = append(b.report.Missing, Gap{g, why})
	}
}

// judge derives the guarantees from the result of a trial.
func (b *Box) judge(f found) {
	b.report.Means = b.way.means
	say := func(g Guarantee, holds bool, why string) {
		if holds {
			b.report.Enforced = append(b.report.Enforced, g)
			return
		}
		b.report.Missing = append(b.report.Missing, Gap{g, why})
	}
	say(Files, !f.ReadOutside && !f.WroteOutside, "this kernel has no Landlock")
	say(Metadata, f.Changed == "", f.Changed)
	switch {
	case b.config.Network:
	case f.Connected:
		say(Network, false, "neither a network namespace nor a filter of system calls")
	default:
		say(Network, !f.Abstract, abstractReached)
	}
	ends := "no process namespace: a command may kill its supervisor"
	if f.Signals {
		ends += ", and before Linux 6.12 other processes of the user"
	}
	say(Ends, f.First, ends)
	say(CPU, f.Limits == "", f.Limits)
	say(Memory, f.Limits == "" && f.Measured, cmp.Or(f.Limits, "the memory of processes can't be read in /proc"))
	say(FileSize, f.Limits == "", f.Limits)
	say(Processes, f.Sees || f.Counted && f.Limits == "", "root's processes are not counted, and they can't be watched")
	switch {
	case f.Privileged:
		say(Privileges, false, "capabilities can't be given up")
	case f.Unfiltered:
		say(Privileges, false, "this kernel takes no filter of system calls, so namespaces and the user's keyrings can be used")
	default:
		say(Privileges, !f.Abstract, abstractReached)
	}
}

// tryCgroups finds out whether commands can get memory cgroups, beside the count.
func (b *Box) tryCgroups(t trial) {
	if !b.report.Holds(Memory) {
		return
	}
	c, err := findCgroups()
	if err == nil && !b.report.Holds(Files) {
		err = errors.New("commands could write to its files")
	}
	if err == nil {
		b.cgroups = c
		var end End
		if end, err = b.try(b.way, t); err == nil && (end.Found == nil || end.Found.Limits != "") {
			err = fmt.Errorf("the trial failed: %+v", end)
		}
	}
	if err != nil {
		b.cgroups = nil
		b.report.Memory, b.report.NoCgroup = "count", err.Error()
		return
	}
	b.report.Memory = "count and cgroup"
}

// abstractReached is a gap of the network, and if the network is allowed, of
// privileges: daemons trust those who reach their sockets.
const abstractReached = "abstract sockets of this machine are reached: that takes Linux 6.12, or a network namespace (without access to the network)"

// newTrial creates the targets of a trial.
func newTrial() (t trial, clean func(), err error) {
	dir, err := os.MkdirTemp("", "refold-sandbox-")
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return t, nil, err
	}
	t = trial{
		Inside: filepath.Join(dir, "inside"), Forbidden: filepath.Join(dir, "secret"), Outside: filepath.Join(dir, "new"),
	}
	t.Process = os.Getpid()
	t.Abstract = "@" + dir // the random part is a name that no other trial has
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err == nil {
		t.Connect = listener.Addr().String()
		err = os.Mkdir(t.Inside, 0o700)
	}
	abstract, wrong := net.Listen("unix", t.Abstract)
	err = errors.Join(err, wrong)
	if err == nil {
		err = os.WriteFile(t.Forbidden, []byte("secret"), 0o600)
	}
	clean = func() {
		if listener != nil {
			listener.Close()
		}
		if abstract != nil {
			abstract.Close()
		}
		_ = os.RemoveAll(dir) // leftovers are small and harmless
	}
	if err != nil {
		clean()
		return t, nil, err
	}
	return t, clean, nil
}
