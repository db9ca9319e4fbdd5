package session

import (
	"slices"
	"strconv"
	"strings"

	"github.com/refold/refold/codec"
)

// runRequested queues a run, and starts it if none is active. The config that
// holds (the run's, else the session's, else the install record's) is resolved
// and frozen here: what was accepted is what will run.
func (s *State) runRequested(door Door, b *RunRequested, data codec.Raw) *refusal {
	if bad := s.runFault(door, b); bad != nil {
		return bad
	}
	content := codec.Sum(data)
	place, taken := s.submission(b.Submission)
	switch {
	case taken && s.Submissions[place].Content == content:
		return nil // the same request again: a no-op whatever became of the first
	case taken:
		return refuse(RejectDuplicateSubmission, "submission "+quoted(b.Submission)+" was taken with other content")
	}
	config := s.configFor(b)
	if bad := configFault(s.registry, &config, true); bad != nil {
		return bad
	}
	if bad := s.busyFault(b, &config); bad != nil {
		return bad
	}
	s.Runs++
	run := Run{Config: config, Number: s.Runs, Roles: b.Roles, Seq: s.Seq, Submission: b.Submission}
	if b.Submission != "" {
		s.Submissions = slices.Insert(s.Submissions, place, Submission{Name: b.Submission, Content: content})
	}
	if s.Run != nil {
		s.Queue = append(s.Queue, run)
		s.say(NoticeRunQueued, RunPlaced{Run: run.Number, Seq: run.Seq, Submission: run.Submission})
		return nil
	}
	s.startRun(run)
	return nil
}

// submission returns where a submission stands or would stand, and whether the
// session remembers it.
func (s *State) submission(name string) (int, bool) {
	return slices.BinarySearchFunc(s.Submissions, name, func(have Submission, name string) int {
		return strings.Compare(have.Name, name)
	})
}

// runFault checks the request by itself.
func (s *State) runFault(door Door, b *RunRequested) *refusal {
	if bad := contentFault("input", &b.Input, false); bad != nil {
		return bad
	}
	if len(b.Submission) > IDBytesMax {
		return refuse(RejectInvalidData, "submission: at most "+strconv.Itoa(IDBytesMax)+" bytes")
	}
	switch b.WhenBusy {
	case "", "queue", "reject":
	default:
		return refuse(RejectInvalidData, "when_busy: queue or reject, not "+quoted(b.WhenBusy))
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

// rolesFault says what is wrong with a run's roles.
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

// configFor returns the config that holds for a request: whole, never merged,
// but for the step rules, which a run that gives none has from the session.
func (s *State) configFor(b *RunRequested) RunConfig {
	switch {
	case b.Config != nil:
		config := *b.Config
		if config.Steps == nil && s.Config != nil {
			config.Steps = s.Config.Run.Steps
		}
		return config
	case s.Config != nil:
		return s.Config.Run
	case s.install.Record.Config != nil:
		return *s.install.Record.Config
	}
	return RunConfig{}
}

// busyFault checks that the run has a place, and that what it makes the
// session remember has one too.
func (s *State) busyFault(b *RunRequested, config *RunConfig) *refusal {
	if b.Submission != "" && len(s.Submissions) >= SubmissionsMax {
		return refuse(RejectLimitExceeded, "submission: a session remembers "+strconv.Itoa(SubmissionsMax)+": open a new session")
	}
	if s.Run == nil {
		return nil
	}
	if b.WhenBusy == "reject" {
		return refuse(RejectRunActive, "run "+strconv.FormatUint(uint64(s.Run.Number), 10)+" is active, and when_busy is reject")
	}
	if limit := s.queueMax(); len(s.Queue) >= limit {
		return refuse(RejectQueueFull, "the queue holds its "+strconv.Itoa(limit)+" runs")
	}
	size := configBytes(config)
	for i := range s.Queue {
		size += configBytes(&s.Queue[i].Config)
	}
	if size > QueueBytesMax {
		return refuse(RejectLimitExceeded, "config: the configs of all queued runs are at most "+strconv.Itoa(QueueBytesMax)+" bytes")
	}
	return nil
}

// queueMax returns how many runs may wait.
func (s *State) queueMax() int {
	if s.Config != nil && s.Config.QueueMax > 0 {
		return s.Config.QueueMax
	}
	return QueueDefault
}

// configBytes bounds the encoded size of a config from above.
func configBytes(c *RunConfig) int {
	size := configFixedBytesMax + len(c.System) + len(c.Params)
	for _, l := range c.lists() {
		for _, name := range l.names {
			size += 3 + len(name)
		}
	}
	if c.ToolRefs != nil {
		size += refBytesMax * len(*c.ToolRefs)
	}
	if len(c.Steps) > 0 {
		size += len(encode(c.Steps))
	}
	return size
}

// startRun makes run the active one and asks its first turn.
func (s *State) startRun(run Run) {
	s.Run = &run
	s.say(NoticeRunStarted, RunPlaced{Run: run.Number, Seq: run.Seq, Submission: run.Submission})
	if !s.transcriptFull() { // a full one takes nothing more, or every later run would add to it
		s.appendItem(Item{Role: RoleUser, Seq: run.Seq})
	}
	s.startTurn()
}

// transcriptFull reports whether no generation can carry the transcript.
func (s *State) transcriptFull() bool {
	return len(s.Items) > ItemsMax || s.ItemBytes+effectFixedBytesMax > EffectBytesMax
}

// endRun ends the active run and starts the next queued one. The output, if
// any, is that of the event being folded.
func (s *State) endRun(end Ended, output *Content) {
	end.Number = s.Run.Number
	end.Detail = clip(end.Detail, DetailBytesMax)
	said := RunFinished{
		Run: end.Number, Lifecycle: end.Lifecycle, Code: end.Code, Detail: end.Detail, Output: output, Usage: s.Run.Usage,
	}
	if output != nil && output.jsonBytesMax() > NoticeBytesMax-noticeFixedBytesMax {
		said.Output, said.OutputSeq = nil, s.Seq
	}
	s.say(NoticeRunFinished, said)
	s.Last, s.Run = &end, nil
	if len(s.Queue) > 0 {
		next := s.Queue[0]
		s.Queue = slices.Delete(s.Queue, 0, 1)
		s.startRun(next)
	}
}

// itemsFirst is the room that a transcript begins with: a short run's.
const itemsFirst = 12

// appendItem adds an item to the transcript.
func (s *State) appendItem(it Item) {
	if s.Items == nil {
		s.Items = make([]Item, 0, itemsFirst)
	}
	s.Items = append(s.Items, it)
	s.ItemBytes += it.encodedBytesMax()
}
