package session

import (
	"slices"
	"strconv"
	"strings"

	"github.com/refold/refold/codec"
)

// foldRunRequested folds a RunRequested.
func (s *State) foldRunRequested(door Door, data codec.Raw) *refusal {
	if bad := configRulesFault(data); bad != nil {
		return bad
	}
	var b RunRequested
	if bad := decodeContent(data, "input", &b); bad != nil {
		return bad
	}
	if bad := inputFault(&b.Input); bad != nil {
		return bad
	}
	return s.runRequested(door, &b, data)
}

// runRequested queues a run, and starts it if none is active. Its config is resolved
// and frozen here. The input was checked before.
func (s *State) runRequested(door Door, b *RunRequested, data codec.Raw) *refusal {
	if bad := s.requestFault(door, b); bad != nil {
		return bad
	}
	var content codec.Hash
	if b.Submission != "" { // without one, no request is a repeat
		content = codec.Sum(data)
	}
	place, taken := s.submission(b.Submission)
	switch {
	case taken && s.Submissions[place].Content == content:
		return nil // a repeat: a no-op whatever happened to the first request
	case taken:
		return refuse(RejectDuplicateSubmission, "submission "+quoted(b.Submission)+" was taken with other content")
	case s.Closed:
		return sessionClosedRefusal()
	case b.Submission != "" && len(s.Submissions) >= SubmissionsMax:
		return refuse(RejectLimitExceeded, "submission: a session remembers "+strconv.Itoa(SubmissionsMax)+": open a new session")
	}
	var number uint32
	var bad *refusal
	if b.WhenBusy == BusySteer && s.Run != nil && s.Run.Lifecycle != Interrupting {
		number = s.Run.Number
		if bad = s.steerConfigFault(b.Config); bad == nil {
			bad = s.steer(b.Input.shownBytes())
		}
	} else {
		number = s.Runs + 1
		bad = s.requestRun(door, b)
	}
	if bad == nil && b.Submission != "" {
		s.Submissions = slices.Insert(s.Submissions, place, Submission{Name: b.Submission, Content: content, Run: number})
	}
	return bad
}

// requestRun starts or queues the run of a request.
func (s *State) requestRun(door Door, b *RunRequested) *refusal {
	run := s.operatorsRun(b.Config)
	var ignored []string
	if door == DoorIn && b.Config != nil {
		var bad *refusal
		if run, ignored, bad = s.clientsRun(b.Config); bad != nil {
			return bad
		}
	}
	run.Operators = door == DoorCtl
	run.InputBytes, run.Roles, run.Submission = b.Input.shownBytes(), b.Roles, b.Submission
	return s.newRun(run, b.WhenBusy, ignored...)
}

// newRun starts a run with the event's input, or queues it if another is active.
// ignored are names in the request that the registry does not have.
func (s *State) newRun(run Run, whenBusy string, ignored ...string) *refusal {
	if bad := s.fixWorkspace(&run); bad != nil {
		return bad
	}
	st, waits := s.stackAtStart()
	if bad := s.configFault(&st, &run.Config, run.Workspace, true); bad != nil {
		return bad
	}
	run.Doubt = run.Doubt || waits // if what waits is not applied after all
	if bad := s.busyFault(whenBusy, &run); bad != nil {
		return bad
	}
	s.Runs++
	run.Number, run.Seq = s.Runs, s.Seq
	if s.Run == nil {
		s.startRun(run, ignored...)
		return nil
	}
	notify(s, NoticeRunQueued, run.placed(ignored...))
	if whenBusy == BusyInterrupt {
		s.Queue = slices.Insert(s.Queue, 0, run)
		s.interrupt()
		return nil
	}
	s.Queue = append(s.Queue, run)
	return nil
}

// steerConfigFault checks the config of a request that steers the active run.
func (s *State) steerConfigFault(c *RunConfig) *refusal {
	own, bad := s.ownWorkspace(c)
	if bad == nil {
		st := s.stack()
		bad = s.configFault(&st, c, own, false)
	}
	return bad
}

// fixWorkspace pins the workspace that a run's config names. The session's own
// config has pinned its workspace already.
func (s *State) fixWorkspace(run *Run) (bad *refusal) {
	if run.Workspace != nil { // it reuses another run's config
		return nil
	}
	if s.Config != nil && s.Config.Workspace != nil && s.Config.Run.Workspace == run.Config.Workspace {
		pin := *s.Config.Workspace
		run.Workspace = &pin
		return nil
	}
	run.Workspace, bad = s.ownWorkspace(&run.Config)
	return bad
}

// submission returns the index of a submission, or where it would be inserted, and
// whether the session remembers it.
func (s *State) submission(name string) (int, bool) {
	return slices.BinarySearchFunc(s.Submissions, name, func(have Submission, name string) int {
		return strings.Compare(have.Name, name)
	})
}

// requestFault checks the request by itself, except for its input.
func (s *State) requestFault(door Door, b *RunRequested) *refusal {
	if len(b.Submission) > IDBytesMax {
		return refuse(RejectInvalidData, "submission: at most "+strconv.Itoa(IDBytesMax)+" bytes")
	}
	switch b.WhenBusy {
	case "", BusyQueue, BusySteer, BusyInterrupt, BusyReject:
	default:
		return refuse(RejectInvalidData, "when_busy: queue, steer, interrupt or reject, not "+quoted(b.WhenBusy))
	}
	if bad := rolesFault(b.Roles); bad != nil {
		return bad
	}
	if door != DoorIn {
		return nil
	}
	if len(b.Roles) > 0 && !slices.Contains(s.install.ingress, ingressRoles) {
		return refuse(RejectNotPermitted, "roles: the install policy keeps them to the door ctl")
	}
	if b.Config != nil {
		return s.install.ingressFault(b.Config)
	}
	return nil
}

func rolesFault(roles []string) *refusal {
	if len(roles) > RolesMax {
		return refuse(RejectLimitExceeded, "roles: at most "+strconv.Itoa(RolesMax))
	}
	for i, role := range roles {
		if role == "" || len(role) > RoleBytesMax {
			return refuse(RejectInvalidData, "roles["+strconv.Itoa(i)+"]: 1 to "+strconv.Itoa(RoleBytesMax)+" bytes")
		}
	}
	return nil
}

// configFor returns the config of a run whose request brings none: the session's,
// else the install record's.
func (s *State) configFor() RunConfig {
	switch {
	case s.Config != nil:
		return s.Config.Run
	case s.install.Record.Config != nil:
		return *s.install.Record.Config
	}
	return RunConfig{}
}

// operatorsRun returns the run of a request through `ctl`. Its config is whole, but
// for one exception: without step rules it has the session's.
func (s *State) operatorsRun(own *RunConfig) Run {
	if own == nil {
		return Run{Config: s.configFor()}
	}
	config := *own
	if config.Steps == nil && s.Config != nil {
		config.Steps = s.Config.Run.Steps
	}
	return Run{Config: config}
}

// busyFault checks that there is room for a run.
func (s *State) busyFault(whenBusy string, run *Run) *refusal {
	if s.Run == nil {
		return nil
	}
	if whenBusy == BusyReject {
		return refuse(RejectRunActive, "run "+strconv.FormatUint(uint64(s.Run.Number), 10)+" is active, and when_busy is reject")
	}
	if limit := s.queueMax(); len(s.Queue) >= limit {
		return refuse(RejectQueueFull, "the queue holds its "+strconv.Itoa(limit)+" runs")
	}
	size := run.configBytes()
	for i := range s.Queue {
		size += s.Queue[i].configBytes()
	}
	if size > QueueBytesMax {
		return refuse(RejectLimitExceeded, "config: the configs of all queued runs are at most "+strconv.Itoa(QueueBytesMax)+" bytes")
	}
	return nil
}

func (s *State) queueMax() int {
	if s.Config != nil && s.Config.QueueMax > 0 {
		return s.Config.QueueMax
	}
	return QueueDefault
}

// configBytes is an upper bound of the encoded size of a run's config and list.
func (r *Run) configBytes() int { return configBytes(&r.Config) + namesBytes(listOf(r.Only)) }

// configBytes is an upper bound of a config's encoded size.
func configBytes(c *RunConfig) int {
	size := configFixedBytesMax + len(c.System) + len(c.Params) + len(c.ResponseFormat)
	for _, l := range append(c.lists(), list{"skills", c.Skills}) {
		size += namesBytes(l.names)
	}
	size += refBytesMax * (len(listOf(c.ToolRefs)) + len(listOf(c.PromptRefs)))
	for _, name := range [...]string{c.PromptPack, c.ToolCatalog, c.Workspace} {
		if name != "" {
			size += len("\xaetool_catalog\xd9\x40") + len(name)
		}
	}
	if c.Prices != nil {
		for i := range c.Prices.Models {
			size += modelPriceBytesMax + len(c.Prices.Models[i].Model)
		}
	}
	if c.Retry != nil {
		for _, code := range c.Retry.Codes {
			size += 2 + len(code)
		}
	}
	if len(c.Steps) > 0 {
		size += len(encode(c.Steps))
	}
	return size
}

// namesBytes is an upper bound of the encoded size of a list's entries.
func namesBytes(names []string) (size int) {
	for _, name := range names {
		size += 3 + len(name)
	}
	return size
}

// itemsFirst is the first capacity of a transcript: enough for a short run.
const itemsFirst = 12

// appendItem adds an item to the transcript. shownBytes is what its event shows a
// model, without what was counted before.
func (s *State) appendItem(it Item, shownBytes int64) {
	if s.Items == nil {
		s.Items = make([]Item, 0, itemsFirst)
	}
	s.Items = append(s.Items, it)
	s.ItemBytes += int32(it.encodedBytesMax())
	s.addToWindow(shownBytes + int64(len(it.Code)+len(it.Detail)))
}

// clipMax is the number of items up to which an idle session's transcript is
// clipped: more are too many to copy at the end of each run.
const clipMax = 256

// clipItems frees unused capacity of the transcript.
func (s *State) clipItems() {
	if n := len(s.Items); n <= clipMax && cap(s.Items) >= n+itemsFirst {
		s.Items = slices.Clip(slices.Clone(s.Items))
	}
}
