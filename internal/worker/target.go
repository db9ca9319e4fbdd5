package worker

import (
	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
)

// Target is one target and what executes its effects: of Model, Executor, Hook
// and Spaces the one of its class.
type Target struct {
	Class       session.Class
	Name        string
	Concurrency int
	Model       executor.Model
	Executor    executor.Executor
	Hook        executor.StepHook
	Spaces      executor.SpaceReader

	Pace   *Pacer        // nil: nothing holds its generations
	Counts *TargetCounts // nil: nobody counts
	Ahead  int           // effects that are pulled and wait their session's turn; 0: none

	Priority int    // among targets that share slots
	turns    *slots // of its sessions; nil: without Ahead
	lost     bool   // it answers for a worker that is gone
	Lacks    string // what people should know; empty: nothing
}

// String is how a target is shown: tool/host.
func (s *Target) String() string { return string(s.Class) + "/" + s.Name }
