package worker

import (
	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
)

// Target is one target and its executor: of Model, Executor, Hook and Spaces the
// one of its class.
type Target struct {
	Class       session.Class
	Name        string
	Concurrency int
	Model       executor.Model
	Executor    executor.Executor
	Hook        executor.StepHook
	Spaces      executor.SpaceReader

	Pace   *Pacer        // nil: its generations start at once
	Counts *TargetCounts // nil: not counted
	Ahead  int           // effects pulled in advance, which wait for their session's turn; 0: none

	Priority int    // among targets that share slots
	turns    *slots // of its sessions; nil: without Ahead
	lost     bool   // it answers for a worker that is gone
	Lacks    string // what the target lacks, for people; empty: nothing
}

// String returns the target as tool/host.
func (s *Target) String() string { return string(s.Class) + "/" + s.Name }
