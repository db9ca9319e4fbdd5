package session

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"

	"github.com/refold/refold/actors/sentence"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/space"
)

// A schedule requests runs at the times of a cron expression. The fold knows no zones:
// whoever publishes computes the next time, with package internal/cron, and the fold
// checks it. The schedule that fires first has a wake of its own, whose effect has what
// the next time is computed from. A session-actor settles that wake by ScheduleFired in
// place of WakeSettled. So a firing is one event, which counts once, as every settlement.

// Limits of schedules.
const (
	SchedulesMax        = 32                        // schedules of a session
	SchedulesBytesMax   = 256 << 10                 // configs of all schedules, encoded
	CronBytesMax        = 256                       // a cron expression
	ZoneBytesMax        = 64                        // the name of a zone
	ScheduleFailuresMax = 10                        // failed runs in a row after which a schedule is paused
	ScheduleSpreadMS    = 60_000                    // firings are spread over this
	ScheduleEachMS      = 60_000                    // between two firings of a schedule, at least
	ScheduleLateMS      = 60_000                    // a firing that is later is missed
	ScheduleNextMaxMS   = 10 * 366 * 24 * 3_600_000 // between two firings, at most
	scheduleAheadMS     = 3_600_000                 // how far a session-actor's clock may be ahead of the server's
	scheduleFixedBytes  = 512                       // a schedule's encoding without its texts and config
	scheduleWeight      = 176                       // memory of a Schedule without its texts and config
	scheduledWeight     = 48                        // of a Scheduled without its name
)

// ScheduleSet sets a schedule, which requests a run at each time of a cron expression. It
// replaces the schedule of this name.
type ScheduleSet struct {
	// When the next time was computed, Unix milliseconds.
	At int64 `msgpack:"at" lim:"1..NumberMax"`
	// What happens to firings that were missed. `last`, if absent: the last one of them
	// fires late. `none`: none does.
	CatchUp string `msgpack:"catch_up,omitempty" lim:"enum=CatchUp"`
	// Config of the runs, with a model and a provider, as in a RunRequested through `ctl`.
	// Absent: that of the session when the schedule fires.
	Config *RunConfig `msgpack:"config,omitempty"`
	// When it fires: five fields (minute, hour, day of the month, month, day of the week),
	// or a word such as @daily. The session does not read it.
	Cron string `msgpack:"cron" lim:"1..CronBytesMax"`
	// The input of the runs.
	Input Content `msgpack:"input" lim:"filled"`
	// The name of the schedule, in its session.
	Name string `msgpack:"name" lim:"@token"`
	// When it fires first: the first time of the expression after `at`, Unix milliseconds.
	Next int64 `msgpack:"next" lim:"1..NumberMax"`
	// The revision that this replaces; another one is `stale`. Absent: whichever there is,
	// or none.
	Rev uint64 `msgpack:"rev,omitempty" lim:"0..NumberMax"`
	// Roles of the runs, for step rules and hooks.
	Roles []string `msgpack:"roles,omitempty" lim:"..RolesMax,item=1..RoleBytesMax"`
	// What to do while a run is active. `skip`, if absent: nothing, with a notice that says
	// so. `queue` and `interrupt`: as in a RunRequested.
	WhenBusy string `msgpack:"when_busy,omitempty" lim:"enum=ScheduleBusy"`
	// Zone of the times: a name of the IANA database; UTC if absent.
	Zone string `msgpack:"zone,omitempty" lim:"..ZoneBytesMax"`
}

// Times returns for people when it fires: the expression, and the zone.
func (b *ScheduleSet) Times() string { return timesText(b.Cron, b.Zone) }

// Times returns for people when it fires: the expression, and the zone.
func (sc *Schedule) Times() string { return timesText(sc.Cron, sc.Zone) }

func timesText(cron, zone string) string { return cron + " " + cmp.Or(zone, "UTC") }

// The values of ScheduleSet.CatchUp.
const (
	CatchUpLast = "last" // the default, also when empty
	CatchUpNone = "none"
)

// The values of ScheduleSet.WhenBusy.
const (
	ScheduleBusySkip      = "skip" // the default, also when empty
	ScheduleBusyQueue     = BusyQueue
	ScheduleBusyInterrupt = BusyInterrupt
)

// ScheduleNamed is the body of ScheduleRemoved and SchedulePauseRequested.
type ScheduleNamed struct {
	// The schedule.
	Name string `msgpack:"name" lim:"@token"`
	// The revision that is meant; another one is `stale`. Absent: whichever there is.
	Rev uint64 `msgpack:"rev,omitempty" lim:"0..NumberMax"`
}

// ScheduleResumeRequested lets a paused schedule fire again.
type ScheduleResumeRequested struct {
	// When the next time was computed, Unix milliseconds.
	At int64 `msgpack:"at" lim:"1..NumberMax"`
	// The schedule.
	Name string `msgpack:"name" lim:"@token"`
	// The first time of its expression after `at`, Unix milliseconds.
	Next int64 `msgpack:"next" lim:"1..NumberMax"`
	// The revision whose expression it is; another one is `stale`.
	Rev uint64 `msgpack:"rev" lim:"1..NumberMax"`
}

// ScheduleFired settles the wake of a schedule: it requests the run. Session-actors
// publish it.
type ScheduleFired struct {
	// The time of the expression that fires, Unix milliseconds: the expected one, or the
	// last one that was missed.
	At int64 `msgpack:"at" lim:"1..NumberMax"`
	// The wake that this settles.
	Effect string `msgpack:"effect" lim:"@wake"`
	// The schedule.
	Name string `msgpack:"name" lim:"@token"`
	// The next time of the expression, Unix milliseconds. Absent: none could be computed, and
	// the schedule is paused.
	Next int64 `msgpack:"next,omitempty" lim:"1..NumberMax"`
	// The revision whose expression it is.
	Rev uint64 `msgpack:"rev" lim:"1..NumberMax"`
}

// ScheduleSkipped says that a schedule requested no run at a time of its expression.
type ScheduleSkipped struct {
	// The schedule.
	Schedule string `json:"schedule" lim:"@token"`
	// The time of the expression, Unix milliseconds. With `missed`: the first one of those
	// that were missed.
	At int64 `json:"at" lim:"1.."`
	// `busy`: a run is active. `missed`: the time had passed when the session could go on.
	// Or why the run was refused.
	Code string `json:"code" lim:"1..CodeBytesMax"`
	// For people.
	Detail string `json:"detail,omitempty" lim:"..DetailBytesMax"`
	// When it fires next, Unix milliseconds. Absent: it does not.
	Next int64 `json:"next,omitempty" lim:"1.."`
}

// SchedulePaused says that a session paused a schedule by itself.
type SchedulePaused struct {
	// The schedule.
	Schedule string `json:"schedule" lim:"@token"`
	// Why.
	Code string `json:"code" lim:"enum=failed|no_next|bad_settlement"`
	// For people.
	Detail string `json:"detail,omitempty" lim:"..DetailBytesMax"`
}

// Codes of a firing that requested no run, besides those of rejections.
const (
	SkipBusy   = "busy"   // a run is active, and `when_busy` is `skip`
	SkipMissed = "missed" // the time had passed when the session could go on: the session-actors or the server were down
)

// Why a schedule is paused.
const (
	StopRequest = "request"         // SchedulePauseRequested
	StopFailed  = "failed"          // its last ten runs failed
	StopNoNext  = "no_next"         // its next time could not be computed: the session-actor does not know its zone, or it never fires again
	StopBad     = CodeBadSettlement // a session-actor published a firing that the fold does not accept
)

// Schedule is a schedule of a session.
type Schedule struct {
	// What happens to firings that were missed; `last` if absent.
	CatchUp string     `json:"catch_up,omitempty" msgpack:"catch_up,omitempty" lim:"enum=CatchUp"`
	Config  *RunConfig `json:"-" msgpack:"config,omitempty"`
	// The cron expression.
	Cron string `json:"cron" msgpack:"cron" lim:"1..CronBytesMax"`
	// When it fires next, Unix milliseconds: `next` and a part of a minute that depends on
	// the names of session and schedule. Absent: it is paused.
	Due int64 `json:"due,omitempty" msgpack:"due,omitempty"`
	// Runs that have failed since one completed.
	Failures   uint8 `json:"failures,omitempty" msgpack:"failures,omitempty" lim:"0..ScheduleFailuresMax"`
	InputBytes int64 `json:"-" msgpack:"input_bytes,omitempty"`
	// The time of the expression that fired last, Unix milliseconds.
	Last int64 `json:"last,omitempty" msgpack:"last,omitempty"`
	// Its name.
	Name string `json:"name" msgpack:"name" lim:"@token"`
	// The next time of the expression, Unix milliseconds. Absent: it is paused.
	Next int64 `json:"next,omitempty" msgpack:"next,omitempty"`
	// Why it is paused. Absent: it is not.
	Paused string `json:"paused,omitempty" msgpack:"paused,omitempty" lim:"enum=request|failed|no_next|bad_settlement"`
	// Its revision: the sequence of its ScheduleSet, which has the input of the runs.
	Rev uint64 `json:"rev" msgpack:"rev" lim:"1.."`
	// Roles of the runs.
	Roles []string `json:"roles,omitempty" msgpack:"roles,omitempty" lim:"..RolesMax,item=any"`
	Wake  uint32   `json:"-" msgpack:"wake,omitempty"` // its open wake; 0: another schedule fires before it
	// What to do while a run is active; `skip` if absent.
	WhenBusy string `json:"when_busy,omitempty" msgpack:"when_busy,omitempty" lim:"enum=ScheduleBusy"`
	// Zone of the times; UTC if absent.
	Zone string `json:"zone,omitempty" msgpack:"zone,omitempty" lim:"..ZoneBytesMax"`
}

// Scheduled names the firing that requested a run.
type Scheduled struct {
	// The time of the expression, Unix milliseconds.
	At int64 `json:"at" msgpack:"at" lim:"1.."`
	// The schedule.
	Name string `json:"name" msgpack:"name" lim:"@token"`
	// Its revision.
	Rev uint64 `json:"rev" msgpack:"rev" lim:"1.."`
}

// WakeSchedule is what the next time of a schedule is computed from.
type WakeSchedule struct {
	// The time of the expression that is due, Unix milliseconds.
	At int64 `msgpack:"at" lim:"1.."`
	// The cron expression.
	Cron string `msgpack:"cron" lim:"1..CronBytesMax"`
	// The schedule.
	Name string `msgpack:"name" lim:"@token"`
	// Its revision.
	Rev uint64 `msgpack:"rev" lim:"1.."`
	// The zone; UTC if absent.
	Zone string `msgpack:"zone,omitempty" lim:"..ZoneBytesMax"`
}

// schedules returns the session's schedules, by name, to be changed in place.
func (s *State) schedules() []Schedule {
	if s.Overrides == nil {
		return nil
	}
	return s.Overrides.Schedules
}

func (s *State) setSchedules(all []Schedule) {
	if len(all) == 0 {
		all = nil
	}
	s.setOperators(OperatorsSet{Overrides: s.sessionLists(), Schedules: all})
}

// sessionLists returns the session's lists.
func (s *State) sessionLists() Overrides {
	if s.Overrides == nil {
		return Overrides{}
	}
	return s.Overrides.Overrides
}

// setOperators keeps what operators set, if it is anything.
func (s *State) setOperators(set OperatorsSet) {
	s.Overrides = &set
	if len(set.Disable)+len(set.Enable)+len(set.Force)+len(set.Schedules) == 0 {
		s.Overrides = nil
	}
}

// scheduleSpread returns how long after a time of the expression a schedule fires.
func scheduleSpread(sid, name string) int64 {
	sum := codec.Digest([]byte(sid + "." + name))
	return int64(binary.BigEndian.Uint64(sum[:8]) % ScheduleSpreadMS)
}

// nextFault checks when a schedule fires after at.
func nextFault(at, next int64) *refusal {
	if next <= at || next-at > ScheduleNextMaxMS {
		return refuse(RejectInvalidData, "next: must be after at, by ten years at most")
	}
	return nil
}

// scheduleSet folds a ScheduleSet.
func (s *State) scheduleSet(data codec.Raw) *refusal {
	if bad := configRulesFault(data); bad != nil {
		return bad
	}
	var b ScheduleSet
	if bad := decodeContent(data, "input", &b); bad != nil {
		return bad
	}
	if bad := s.scheduleSetFault(&b); bad != nil {
		return bad
	}
	of := Schedule{
		CatchUp: b.CatchUp, Config: b.Config, Cron: b.Cron, InputBytes: b.Input.shownBytes(), Name: b.Name, Next: b.Next,
		Due: b.Next + scheduleSpread(s.Session, b.Name), Rev: s.Seq, Roles: b.Roles, WhenBusy: b.WhenBusy, Zone: b.Zone,
	}
	if at, exists := s.scheduleAt(b.Name); exists {
		s.dropScheduleWake(&s.schedules()[at])
		s.schedules()[at] = of
	} else {
		s.setSchedules(slices.Insert(s.schedules(), at, of))
	}
	return nil
}

// scheduleSetFault checks a ScheduleSet, whose limits were checked.
func (s *State) scheduleSetFault(b *ScheduleSet) *refusal {
	if !planner.IsName(b.Name) {
		return refuse(RejectInvalidData, "name: must be a token: 1 to 64 of A-Za-z0-9_-")
	}
	if bad := nextFault(b.At, b.Next); bad != nil {
		return bad
	}
	if bad := inputFault(&b.Input); bad != nil {
		return bad
	}
	at, exists := s.scheduleAt(b.Name)
	if b.Rev != 0 {
		if _, bad := s.scheduleOf(b.Name, b.Rev); bad != nil {
			return bad
		}
	} else if !exists && len(s.schedules()) >= SchedulesMax {
		return refuse(RejectLimitExceeded, "name: a session has at most "+strconv.Itoa(SchedulesMax)+" schedules: remove one")
	}
	run := s.operatorsRun(b.Config)
	if bad := s.fixWorkspace(&run); bad != nil {
		return bad
	}
	st, _ := s.stackAtStart()
	if bad := s.configFault(&st, &run.Config, run.Workspace, true); bad != nil {
		return bad
	}
	size := 0
	for i := range s.schedules() {
		if !exists || i != at {
			size += s.schedules()[i].configBytes()
		}
	}
	if b.Config != nil && size+configBytes(b.Config) > SchedulesBytesMax {
		return refuse(RejectLimitExceeded, "config: the configs of all schedules are at most "+strconv.Itoa(SchedulesBytesMax)+" bytes: configure the session instead")
	}
	return nil
}

func (sc *Schedule) configBytes() int {
	if sc.Config == nil {
		return 0
	}
	return configBytes(sc.Config)
}

// scheduleAt returns the index of a schedule, or where it would be inserted.
func (s *State) scheduleAt(name string) (int, bool) {
	for i := range s.schedules() {
		if s.schedules()[i].Name >= name {
			return i, s.schedules()[i].Name == name
		}
	}
	return len(s.schedules()), false
}

// scheduleOf returns the schedule that a request names; rev 0 names any revision.
func (s *State) scheduleOf(name string, rev uint64) (*Schedule, *refusal) {
	at, exists := s.scheduleAt(name)
	switch {
	case !exists:
		return nil, refuse(RejectUnknownSchedule, "name: the session has no schedule "+sentence.Quoted(name))
	case rev != 0 && rev != s.schedules()[at].Rev:
		return nil, refuse(RejectStale, "rev: the schedule was set again since: its revision is "+strconv.FormatUint(s.schedules()[at].Rev, 10))
	}
	return &s.schedules()[at], nil
}

func (s *State) scheduleRemoved(b *ScheduleNamed) *refusal {
	sc, bad := s.scheduleOf(b.Name, b.Rev)
	if bad != nil {
		return bad
	}
	s.dropScheduleWake(sc)
	s.setSchedules(slices.DeleteFunc(s.schedules(), func(of Schedule) bool { return of.Name == b.Name }))
	return nil
}

func (s *State) schedulePauseRequested(b *ScheduleNamed) *refusal {
	sc, bad := s.scheduleOf(b.Name, b.Rev)
	if bad == nil && sc.Paused == "" {
		s.pauseSchedule(sc, StopRequest)
	}
	return bad
}

func (s *State) scheduleResumeRequested(b *ScheduleResumeRequested) *refusal {
	sc, bad := s.scheduleOf(b.Name, b.Rev)
	if bad == nil {
		bad = nextFault(b.At, b.Next)
	}
	if bad == nil && sc.Paused != "" {
		sc.Paused, sc.Failures, sc.Next, sc.Due = "", 0, b.Next, b.Next+scheduleSpread(s.Session, b.Name)
	}
	return bad
}

// pauseSchedule pauses a schedule. Its wake is withdrawn at the end of the event.
func (s *State) pauseSchedule(sc *Schedule, code string) {
	sc.Paused, sc.Next, sc.Due = code, 0, 0
}

// stopSchedule pauses a schedule, and says why.
func (s *State) stopSchedule(sc *Schedule, code, detail string) {
	s.pauseSchedule(sc, code)
	notify(s, NoticeSchedulePaused, SchedulePaused{Schedule: sc.Name, Code: code, Detail: sentence.Clip(detail, DetailBytesMax)})
}

// dropSchedules removes all schedules: a closed session fires nothing more.
func (s *State) dropSchedules() {
	for i := range s.schedules() {
		s.dropScheduleWake(&s.schedules()[i])
	}
	s.setSchedules(nil)
}

// dropScheduleWake withdraws the wake of a schedule. It still fires, and has no effect.
func (s *State) dropScheduleWake(sc *Schedule) {
	if at := s.wakeAt(sc.Wake); sc.Wake > 0 && at >= 0 {
		s.withdraw(Place{kind: kindWake, n: sc.Wake})
		s.Wakes = slices.Delete(s.Wakes, at, at+1)
	}
	sc.Wake = 0
}

// firstSchedule returns the index of the schedule that fires next, -1 if none does.
func (s *State) firstSchedule() int {
	first := -1
	for i := range s.schedules() {
		if sc := &s.schedules()[i]; sc.Due > 0 && (first < 0 || sc.Due < s.schedules()[first].Due) {
			first = i
		}
	}
	return first
}

// nextFiring returns when a schedule fires next, Unix ms; 0 if none does.
func (s *State) nextFiring() int64 {
	if first := s.firstSchedule(); first >= 0 {
		return s.schedules()[first].Due
	}
	return 0
}

// needScheduleWake ensures that the schedule that fires next has a wake, and no other.
func (s *State) needScheduleWake() {
	first := s.firstSchedule()
	for i := range s.schedules() {
		if i != first && s.schedules()[i].Wake > 0 {
			s.dropScheduleWake(&s.schedules()[i])
		}
	}
	if first < 0 || s.schedules()[first].Wake > 0 {
		return
	}
	sc := &s.schedules()[first]
	s.WakesAsked++
	sc.Wake = s.WakesAsked
	s.Wakes = append(s.Wakes, OpenWake{At: s.Clock, Due: sc.Due, Number: sc.Wake})
}

// scheduleOfWake returns the schedule whose wake this is; nil: it is of no schedule.
func (s *State) scheduleOfWake(n uint32) *Schedule {
	for i := range s.schedules() {
		if s.schedules()[i].Wake == n {
			return &s.schedules()[i]
		}
	}
	return nil
}

// wakeSchedule returns what the effect of a wake has of its schedule.
func (s *State) wakeSchedule(n uint32) *WakeSchedule {
	sc := s.scheduleOfWake(n)
	if sc == nil {
		return nil
	}
	return &WakeSchedule{At: sc.Next, Cron: sc.Cron, Name: sc.Name, Rev: sc.Rev, Zone: sc.Zone}
}

// settleSchedule folds the settlement of wake n, which is closed, if that was a
// schedule's. A WakeSettled leaves the schedule due.
func (s *State) settleSchedule(n uint32, b *settlement) {
	sc := s.scheduleOfWake(n)
	if sc == nil {
		return
	}
	sc.Wake = 0
	if b.typ != TypeScheduleFired {
		return
	}
	bad, fired := b.bad, b.body.(*ScheduleFired)
	if bad == nil {
		bad = s.firedFault(sc, fired)
	}
	if bad != nil { // it would be said again at once
		s.stopSchedule(sc, StopBad, string(bad.code)+": "+bad.detail)
		return
	}
	s.fire(sc, fired)
}

// firedFault checks a firing against its schedule.
func (s *State) firedFault(sc *Schedule, b *ScheduleFired) *refusal {
	switch {
	case b.Name != sc.Name || b.Rev != sc.Rev:
		return refuse(RejectInvalidData, "name: the wake is of revision "+strconv.FormatUint(sc.Rev, 10)+" of "+sentence.Quoted(sc.Name))
	case b.At < sc.Next || b.At > max(sc.Next, s.Clock+scheduleAheadMS):
		return refuse(RejectInvalidData, "at: must be "+strconv.FormatInt(sc.Next, 10)+" or a later time that has come, not "+strconv.FormatInt(b.At, 10))
	case b.Next == 0:
		return nil
	case b.Next-b.At < ScheduleEachMS:
		return refuse(RejectInvalidData, "next: must be at least a minute after at")
	}
	return nextFault(b.At, b.Next)
}

// fire requests the run of a firing, unless it was missed.
func (s *State) fire(sc *Schedule, b *ScheduleFired) {
	expected, spread := sc.Next, sc.Due-sc.Next
	isLate := s.Clock-(b.At+spread) > ScheduleLateMS
	sc.Last, sc.Next, sc.Due = b.At, b.Next, b.Next+spread
	runs := !isLate || sc.CatchUp != CatchUpNone
	if b.At > expected || !runs {
		s.notifySkipped(sc, expected, SkipMissed, "")
	}
	if runs {
		s.requestScheduled(sc, b.At)
	}
	if b.Next == 0 && sc.Paused == "" {
		s.stopSchedule(sc, StopNoNext, "no next time could be computed for "+sc.Times())
	}
}

// requestScheduled requests the run of a firing at a time of the expression.
func (s *State) requestScheduled(sc *Schedule, at int64) {
	if s.Run != nil && (sc.WhenBusy == "" || sc.WhenBusy == ScheduleBusySkip) {
		s.notifySkipped(sc, at, SkipBusy, "run "+strconv.FormatUint(uint64(s.Run.Number), 10)+" is active")
		return
	}
	run := s.operatorsRun(sc.Config)
	run.Operators, run.InputBytes, run.Roles, run.Seq = true, sc.InputBytes, slices.Clone(sc.Roles), sc.Rev
	run.Scheduled = &Scheduled{At: at, Name: sc.Name, Rev: sc.Rev}
	if bad := s.newRun(run, sc.WhenBusy); bad != nil {
		s.notifySkipped(sc, at, string(bad.code), bad.detail)
		if bad.code != RejectQueueFull {
			s.countScheduled(run.Scheduled, Failed)
		}
	}
}

func (s *State) notifySkipped(sc *Schedule, at int64, code, detail string) {
	notify(s, NoticeScheduleSkipped, ScheduleSkipped{Schedule: sc.Name, At: at, Code: code, Detail: detail, Next: sc.Next})
}

// countScheduled counts how a run of a schedule ended. A schedule whose runs fail again
// and again is paused.
func (s *State) countScheduled(of *Scheduled, end Lifecycle) {
	if of == nil {
		return
	}
	sc, bad := s.scheduleOf(of.Name, of.Rev)
	switch {
	case bad != nil || sc.Paused != "":
	case end == Completed:
		sc.Failures = 0
	case end == Failed:
		if sc.Failures++; sc.Failures >= ScheduleFailuresMax {
			s.stopSchedule(sc, StopFailed, "its last "+strconv.Itoa(ScheduleFailuresMax)+" runs failed: resume it when their cause is repaired")
		}
	}
}

func (s *State) schedulesInvariant() error {
	if s.Overrides == nil {
		return nil
	}
	all := s.Overrides.Schedules
	if len(all) > SchedulesMax || s.Closed && all != nil {
		return fmt.Errorf("there are %d schedules, closed is %v", len(all), s.Closed)
	}
	open, size := 0, 0
	for i := range all {
		sc := &all[i]
		if err := sc.invariant(s); err != nil {
			return fmt.Errorf("schedule %q: %w", sc.Name, err)
		}
		if i > 0 && all[i-1].Name >= sc.Name {
			return fmt.Errorf("the schedules %q and %q are out of order", all[i-1].Name, sc.Name)
		}
		if size += sc.configBytes(); sc.Wake > 0 {
			open++
		}
	}
	if first := s.firstSchedule(); open > 1 || size > SchedulesBytesMax || first >= 0 && all[first].Wake == 0 {
		return fmt.Errorf("schedules have %d wakes, and configs of %d bytes", open, size)
	}
	return nil
}

func (sc *Schedule) invariant(s *State) error {
	of := ScheduleSet{
		At: 1, CatchUp: sc.CatchUp, Config: sc.Config, Cron: sc.Cron, Input: Content{Text: sc.Name}, Name: sc.Name,
		Next: max(sc.Next, 1), Roles: sc.Roles, WhenBusy: sc.WhenBusy, Zone: sc.Zone,
	}
	isPaused := isOneOf(sc.Paused, StopRequest, StopFailed, StopNoNext, StopBad)
	switch bad := of.limits(); {
	case bad != nil:
		return fmt.Errorf("%s: %s", bad.code, bad.detail)
	case !planner.IsName(sc.Name) || !isInput(sc.InputBytes):
		return fmt.Errorf("its input has %d bytes", sc.InputBytes)
	case sc.Rev == 0 || sc.Rev > s.Seq || sc.Last < 0 || sc.Failures > ScheduleFailuresMax:
		return fmt.Errorf("it is of event %d, fired at %d, and failed %d times", sc.Rev, sc.Last, sc.Failures)
	case sc.Paused != "" && !isPaused || isPaused == (sc.Next > 0) || isPaused != (sc.Due == 0) || isPaused && sc.Wake > 0:
		return fmt.Errorf("it is paused by %q, and fires at %d", sc.Paused, sc.Next)
	case sc.Due > 0 && sc.Due != sc.Next+scheduleSpread(s.Session, sc.Name):
		return fmt.Errorf("it fires at %d, of %d", sc.Due, sc.Next)
	case sc.Wake > 0 && (s.wakeAt(sc.Wake) < 0 || s.Wakes[s.wakeAt(sc.Wake)].Due != sc.Due):
		return fmt.Errorf("its wake is %s", wakeName(sc.Wake))
	}
	return nil
}

func (of *Scheduled) invariant(s *State) error {
	if of != nil && (of.At <= 0 || !planner.IsName(of.Name) || of.Rev == 0 || of.Rev > s.Seq) {
		return fmt.Errorf("it is of revision %d of the schedule %q, at %d", of.Rev, of.Name, of.At)
	}
	return nil
}

func (sc *Schedule) weight(install *Install) int {
	n := scheduleWeight + space.TextWeight(sc.Cron) + space.TextWeight(sc.Name) + space.TextWeight(sc.Zone) + space.ListWeight(sc.Roles)
	if sc.Config != nil {
		n += sc.Config.weight(install)
	}
	return n
}
