package sandbox

import (
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
}

// found is the result of a trial.
type found struct {
	WroteInside  bool   `json:"wrote_inside"`
	ReadOutside  bool   `json:"read_outside"`
	WroteOutside bool   `json:"wrote_outside"`
	Connected    bool   `json:"connected"`  // it connected, or could have in another way
	First        bool   `json:"first"`      // it is the first process of its namespace
	Sees         bool   `json:"sees"`       // it sees the processes of its namespace, and no others
	Limits       string `json:"limits"`     // why rlimits were not set; empty: they were set
	Counted      bool   `json:"counted"`    // the kernel counts this user's processes
	Privileged   bool   `json:"privileged"` // a command would have capabilities, or could gain some
	Keyring      bool   `json:"keyring"`    // a command could use the keyrings of this user
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
	if !b.config.Network {
		say(Network, !f.Connected, "neither a network namespace nor a filter of system calls")
	}
	say(Ends, f.First, "no process namespace: a command may kill its supervisor")
	say(CPU, f.Limits == "", f.Limits)
	say(Memory, f.Limits == "", f.Limits)
	say(FileSize, f.Limits == "", f.Limits)
	say(Processes, f.Sees || f.Counted && f.Limits == "", "root's processes are not counted, and they can't be watched")
	switch {
	case f.Privileged:
		say(Privileges, false, "capabilities can't be given up")
	default:
		say(Privileges, !f.Keyring, "this kernel takes no filter of system calls, so the user's keyrings can be used")
	}
}

// newTrial creates the targets of a trial.
func newTrial() (t trial, clean func(), err error) {
	dir, err := os.MkdirTemp("", "refold-sandbox-")
	if err != nil {
		return t, nil, err
	}
	t = trial{
		Inside: filepath.Join(dir, "inside"), Forbidden: filepath.Join(dir, "secret"), Outside: filepath.Join(dir, "new"),
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err == nil {
		t.Connect = listener.Addr().String()
		err = os.Mkdir(t.Inside, 0o700)
	}
	if err == nil {
		err = os.WriteFile(t.Forbidden, []byte("secret"), 0o600)
	}
	clean = func() {
		if listener != nil {
			listener.Close()
		}
		_ = os.RemoveAll(dir) // leftovers are small and harmless
	}
	if err != nil {
		clean()
		return t, nil, err
	}
	return t, clean, nil
}
