package sim

// Actions of people, and how a run ends.

import (
	"fmt"
	"strconv"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/planner"
)

// toolList has a tool that may run twice, two that may not, of which one needs
// approval, one that sleeps, one that somebody answers, one that a host loop carries
// out, and one that another session does.
const toolList = `"tools":[` +
	`{"tool_id":"x.read","tool_name":"read","args_schema":{"type":"object"},"executor":{"kind":"effect","target":"x"},"parallel_safe":true,"retry_safe":true,"access":"read"},` +
	`{"tool_id":"x.write","tool_name":"write","args_schema":{"type":"object"},"executor":{"kind":"effect","target":"x"},"parallel_safe":true},` +
	`{"tool_id":"x.danger","tool_name":"danger","args_schema":{"type":"object"},"executor":{"kind":"effect","target":"x"},"approval":"always"},` +
	`{"tool_id":"x.wait","tool_name":"wait","args_schema":{"type":"object"},"executor":{"kind":"sleep"},"parallel_safe":true,"access":"read"},` +
	`{"tool_id":"x.answer","tool_name":"answer","args_schema":{"type":"object"},"executor":{"kind":"reply","result_schema":{"type":"integer"}},"parallel_safe":true,"access":"read"},` +
	`{"tool_id":"x.ask","tool_name":"ask","args_schema":{"type":"object"},"executor":{"kind":"host_loop","target":"x"}%s},` +
	`{"tool_id":"x.team","tool_name":"team","args_schema":{"type":"object"},"executor":{"kind":"session","agent":{"deadlines_ms":{"turn":90000,"call":60000,"approval":120000,"reply":120000,"child":600000}}},"parallel_safe":true}]`

const deadlines = `"deadlines_ms":{"turn":90000,"call":60000,"approval":120000,"reply":120000}`

// installRecord is the install record.
var installRecord = `{"v":1,"rules":1,"config":{"provider":"p","model":"m",` + deadlines + `},` + grants + `,` + fmt.Sprintf(toolList, "") + `}`

// requests are the requests for runs.
var requests = []struct {
	door session.Door
	data string
}{
	{session.DoorIn, `{"input":{"text":"hi"}}`},
	{session.DoorIn, `{"input":{"text":"hi"}}`},
	{session.DoorCtl, `{"input":{"text":"hi"},"config":{"provider":"p","model":"m","step_hook":{"hook":"h","deadline_ms":30000},` + deadlines + `}}`},
	{session.DoorCtl, `{"input":{"text":"hi"},"config":{"provider":"p","model":"m","steps":[{"when":"step == 1","active_tools":["read"]}],` + deadlines + `}}`},
	{session.DoorCtl, `{"input":{"text":"hi"},"config":{"provider":"p","model":"m","context":{"tokens":256,"keep_turns":1},` + deadlines + `}}`},
}

// controls are people's actions on a session with an active run.
var controls = []struct {
	door      session.Door
	typ, data string
}{
	{session.DoorIn, session.TypeRunCancelRequested, `{}`},
	{session.DoorIn, session.TypeRunInterrupt, `{}`},
	{session.DoorIn, session.TypeSteerRequested, `{"input":{"text":"rather this"}}`},
	{session.DoorIn, session.TypeRunPauseRequested, `{}`},
	{session.DoorIn, session.TypeRunResumeRequested, `{}`},
	{session.DoorIn, session.TypeRunResumeRequested, `{}`},
	{session.DoorCtl, session.TypeToolOverridesSet, `{"scope":"session","disable":["x.write"]}`},
	{session.DoorCtl, session.TypeToolOverridesSet, `{"scope":"session","disable":[]}`},
	{session.DoorCtl, session.TypeToolRegistrySet, `{` + fmt.Sprintf(toolList, `,"description":"other words"`) + `}`},
	{session.DoorCtl, session.TypeCompactRequested, `{"keep_turns":0}`},
	{session.DoorIn, "Nothing", `{}`},
}

// people publishes an action of a client or operator.
func (s *sim) people() {
	sid := "s" + strconv.Itoa(s.draw(sessionCount))
	state := s.judge.of(sid).state
	if state.Run == nil {
		if s.draw(6) == 5 {
			s.planRuns(sid)
			return
		}
		if s.runs++; s.runs <= runsMax {
			r := requests[s.draw(len(requests))]
			s.publish(r.door, sid, session.TypeRunRequested, r.data)
		} else if s.draw(2) == 1 {
			s.controlSpace(sid)
		}
		return
	}
	if batch := state.View().Batch; batch != nil && s.draw(2) == 1 {
		for _, c := range batch.Calls {
			switch {
			case c.Status == session.CallAwaiting:
				manifest := ""
				if c.Pack != nil {
					manifest = c.Pack.Hash
				}
				decision := []string{session.DecisionApprove, session.DecisionApprove, session.DecisionDeny}[s.draw(3)]
				s.publish(session.DoorApprove, sid, session.TypeApprovalDecided, fmt.Sprintf(`{"call":%q,"args_hash":%q,"decision":%q,"manifest":%q}`, c.Effect, c.ArgsHash, decision, manifest))
				return
			case c.Kind == planner.ExecutorReply && c.Status == session.CallOpen:
				answer := []string{"7", "7", "8", "seven"}[s.draw(4)] // the schema refuses the last
				s.publish(session.DoorApprove, sid, session.TypeReplyGiven, fmt.Sprintf(`{"call":%q,"args_hash":%q,"output":{"text":%q}}`, c.Effect, c.ArgsHash, answer))
				return
			case c.HostLoop != "" && c.Deadline > 0:
				s.publish(session.DoorTool, sid, session.TypeToolCallSettled, fmt.Sprintf(`{"effect":%q,"status":"succeeded"}`, c.Effect))
				return
			}
		}
	}
	switch i := s.draw(5 * len(controls)); {
	case i > 0 && i <= len(controls):
		c := controls[i-1]
		s.publish(c.door, sid, c.typ, c.data)
	case i == 2*len(controls):
		s.planRuns(sid)
	case i > 2*len(controls):
		s.controlSpace(sid)
	}
}

// planRuns publishes an action of an operator on schedules. One that fires soon fires
// again next year, so that all can end.
func (s *sim) planRuns(sid string) {
	name := []string{"a", "b"}[s.draw(2)]
	now := s.newest()
	first := now.Add(time.Duration(s.draw(240)) * time.Second)
	switch s.draw(8) {
	default:
		data := fmt.Sprintf(`{"name":%q,"cron":"0 0 1 1 *","zone":"America/Santiago","input":{"text":"scheduled"},"at":%d,"next":%d,"when_busy":%q,"catch_up":%q}`,
			name, now.UnixMilli()-1, first.UnixMilli(), []string{session.ScheduleBusySkip, session.ScheduleBusyQueue, session.ScheduleBusyInterrupt}[s.draw(3)], []string{session.CatchUpLast, session.CatchUpNone}[s.draw(2)])
		s.publish(session.DoorCtl, sid, session.TypeScheduleSet, data)
	case 0:
		s.publish(session.DoorCtl, sid, session.TypeScheduleRemoved, fmt.Sprintf(`{"name":%q}`, name))
	case 1:
		s.publish(session.DoorCtl, sid, session.TypeSchedulePause, fmt.Sprintf(`{"name":%q}`, name))
	case 2:
		for _, sc := range s.judge.of(sid).state.View().Schedules {
			s.publish(session.DoorCtl, sid, session.TypeScheduleResume, fmt.Sprintf(`{"name":%q,"rev":%d,"at":%d,"next":%d}`, sc.Name, sc.Rev, now.UnixMilli()-1, first.UnixMilli()))
		}
	}
}

func (s *sim) publish(door session.Door, sid, typ, data string) {
	s.did(typ)
	if _, err := s.append(door, sid, "", fmt.Appendf(nil, `{"type":%q,"data":%s}`, typ, data)); err != nil {
		panic(err)
	}
}

// calmDown lets everything end. Then it may stop a host, whose sessions' next
// runs the other must take over.
func (s *sim) calmDown() {
	s.say("all is calm from here on")
	s.calm = true
	for i, h := range s.hosts {
		if h.cut() {
			s.cutOrJoin(h.proc)
		}
		if h.dead {
			s.startHost(i)
		}
	}
	for i, b := range s.bridges {
		if b.cut() {
			s.cutOrJoin(b.proc)
		}
		if b.dead {
			s.kill(b.proc)
			s.startBridge(i)
		}
	}
	for i := range hostCount + bridgeCount + 1 {
		s.setClock(i, 0)
	}
	s.lanesGoOn()
	s.resume()
	s.quiet()
	if s.draw(4) == 3 && len(s.broken) == 0 {
		s.lastAct()
	}
}

// resume resumes paused runs.
func (s *sim) resume() {
	for _, sid := range sortedKeys(s.judge.sessions) {
		if run := s.judge.sessions[sid].state.Run; run != nil && run.Lifecycle == session.Paused {
			s.publish(session.DoorIn, sid, session.TypeRunResumeRequested, `{}`)
		}
	}
}

// lastAct stops a host while all is well: the other must own its lanes at once.
func (s *sim) lastAct() {
	i := s.draw(hostCount)
	leaves, stays := s.hosts[i], s.hosts[1-i]
	s.stopHost(i)
	for range 3 {
		s.work()
		s.passes(100 * time.Millisecond)
	}
	if !leaves.dead {
		s.breaks("%s has nothing to do, was told to stop %v ago, and still runs", leaves.name, time.Since(leaves.leaving))
	}
	for n := range sessionCount {
		s.publish(session.DoorIn, "s"+strconv.Itoa(n), session.TypeRunRequested, `{"input":{"text":"again"}}`)
	}
	for range 3 {
		s.work()
		s.passes(100 * time.Millisecond)
	}
	for n, l := range s.lanes {
		// A host that was started in its place has no share yet, or its own.
		if info := l.consumer.Info(); info.Pending > 0 && stays.runs[n] != nil {
			s.breaks("lane %d was handed over, and no host takes its pending events", n)
		}
	}
	s.quiet()
}

// quiet works and lets time pass until nothing is left to do.
func (s *sim) quiet() {
	quiet := 0
	for round := 0; round < 1200 && quiet < 3 && len(s.broken) == 0; round++ {
		s.work()
		if quiet++; !s.isDone() {
			quiet = 0
		}
		if round%200 == 199 {
			s.resume()
		}
		s.passes(time.Duration(min(5, 1+round/100)) * time.Second)
		s.judge.bounds()
	}
	s.work()
}

// roundsMax is how many rounds work makes before it takes them for endless. A consumer that
// was lost delivers a long history again from its first event, whose sessions a small memory
// loads one by one, and each lost delivery begins that again: one such seed made 10,000
// rounds with half of its events acknowledged.
const roundsMax = 100_000

// work does everything that needs no time.
func (s *sim) work() {
	for range roundsMax {
		waits := s.rest()
		for _, w := range waits {
			s.let(w)
		}
		moved := len(waits) > 0
		for ready := s.inFlight(); len(ready) > 0; ready = s.inFlight() {
			s.post(ready[0])
			moved = true
		}
		for _, l := range s.lanes {
			for l.serve(s) {
				moved = true
			}
		}
		for _, h := range s.hosts {
			for _, r := range h.steps() {
				moved = r.step() || moved
				s.rest()
			}
		}
		for _, b := range s.bridges {
			if !b.draining.IsZero() || b.cut() {
				continue
			}
			for _, of := range s.targets {
				moved = b.pull(of) || moved
			}
		}
		for _, h := range s.hosts {
			moved = h.pullDue() || moved
		}
		if !moved {
			return
		}
	}
	s.breaks("it does not come to an end")
}
