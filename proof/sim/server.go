package sim

// The server of the simulation: the streams of streams.conf on the model of
// JetStream, with the calls of internal/journal and internal/delivery. The
// referee sees every stored message at once.

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/presence"
	"github.com/refold/refold/proof/jetmodel"
	"github.com/refold/refold/subjects"
)

// scheduleMost is the longest time of a schedule. On a server it is years: a
// later wake fires early, and is scheduled again.
const scheduleMost = 4 * time.Minute

// laneTTL is how long a pin lasts.
const laneTTL = 2 * time.Second

// jetServer is the server.
type jetServer struct {
	*stage
	failures
	names subjects.Names
	judge *referee
	play  *sim

	log, fx, out, due *jetmodel.Stream
	lanes             [laneCount]*laneEnd
	targets           []*target
	goneNotices       []jetmodel.Message // of deleted streams
	dues              *jetmodel.Consumer
	saved             map[*jetmodel.Consumer]jetmodel.Saved // as flushed last
	behind            uint64                                // the most events that a replica lacks
	skew              time.Duration                         // how far ahead the server's clock is
	latest            time.Time                             // the latest time that anybody took for the server's

	blobs       map[codec.Ref][]byte
	former      map[string][][]byte // values of the bucket, the latest last
	timers      map[string]schedule // by the subject of the schedule
	newestTimer journal.Newest
	alive       map[string]*proc    // by instance
	stops       map[string][]byte   // quarantines
	notes       map[string]laneNote // notes of lane owners, by key
}

// target is a consumer of effects.
type target struct {
	class    session.Class
	target   string
	consumer *jetmodel.Consumer
}

// laneNote is the note of a lane.
type laneNote struct {
	note []byte
	rev  uint64
}

// schedule is a message that becomes due at a time.
type schedule struct {
	at      time.Time
	target  string // its subject
	payload []byte
}

func newServer(s *stage) *jetServer {
	names, err := subjects.New("")
	if err != nil {
		panic(err)
	}
	j := new(jetServer)
	*j = jetServer{
		stage: s, names: names,
		failures: failures{odd: map[string]string{}, healed: map[string]time.Time{}, down: map[string]bool{}},
		log:      j.stream(jetmodel.Config{Window: 2 * time.Minute}),
		fx:       j.stream(jetmodel.Config{OnePerSubject: true, Age: time.Hour, Window: 2 * time.Minute}),
		out:      j.stream(jetmodel.Config{Window: 2 * time.Minute}),
		saved:    map[*jetmodel.Consumer]jetmodel.Saved{}, blobs: map[codec.Ref][]byte{}, former: map[string][][]byte{},
		timers: map[string]schedule{}, alive: map[string]*proc{}, stops: map[string][]byte{}, notes: map[string]laneNote{},
	}
	for n := range j.lanes {
		j.lanes[n] = &laneEnd{number: n, consumer: j.log.Consumer(jetmodel.ConsumerConfig{
			Filters: names.LaneFilters(n, laneCount), AckWait: 30 * time.Second, AckPending: 1000, Pinned: laneTTL,
		})}
	}
	for _, of := range []*target{
		{class: session.ClassLLM, target: "p"}, {class: session.ClassTool, target: "x"}, {class: session.ClassStep, target: "h"},
		{class: session.ClassSpace, target: "s"},
	} {
		filter, err := names.BridgeFilter(of.class, of.target)
		if err != nil {
			panic(err)
		}
		wait := 10 * time.Second
		if of.class == session.ClassStep {
			wait = 5 * time.Second
		}
		of.consumer = j.fx.Consumer(jetmodel.ConsumerConfig{Filters: []string{filter}, AckWait: wait, AckPending: 10000})
		j.targets = append(j.targets, of)
	}
	j.newDue()
	j.flush()
	j.judge = newReferee(j)
	return j
}

// now returns the server's time.
func (j *jetServer) now() time.Time { return time.Now().Add(j.skew) }

// consumers returns all consumers.
func (j *jetServer) consumers() []*jetmodel.Consumer {
	all := []*jetmodel.Consumer{j.dues}
	for _, l := range j.lanes {
		all = append(all, l.consumer)
	}
	for _, of := range j.targets {
		all = append(all, of.consumer)
	}
	return all
}

// flush saves the consumers.
func (j *jetServer) flush() {
	for _, c := range j.consumers() {
		j.saved[c] = c.Saved()
	}
}

// restart sets every consumer back to its flushed state.
func (j *jetServer) restart() {
	for _, c := range j.consumers() {
		c.Restore(j.saved[c])
	}
	for _, l := range j.lanes {
		l.restart(j.play)
	}
}

// append stores an event.
func (j *jetServer) append(door session.Door, sid, id string, payload []byte) (uint64, error) {
	subject, err := j.names.Stored(door, sid)
	if err != nil {
		return 0, err
	}
	if door == session.DoorInstall {
		subject = j.names.Install()
	}
	if id != "" {
		id = subjects.EventID(sid, id)
	}
	ack, err := j.log.Publish(jetmodel.Put{Subject: subject, Data: payload, ID: id})
	if err != nil {
		return 0, err
	}
	if ack.Duplicate {
		held, err := j.log.At(ack.Seq, 0)
		if err != nil || held.Subject != subject || !bytes.Equal(held.Data, payload) {
			return 0, journal.ErrIDTaken
		}
		return ack.Seq, nil
	}
	m, err := j.log.At(ack.Seq, 0)
	if err != nil {
		return 0, err
	}
	if sid != "" {
		j.judge.event(j.event(m))
	}
	return ack.Seq, nil
}

// event returns the event of a message.
func (j *jetServer) event(m jetmodel.Message) session.Event {
	door, sid, err := j.names.ParseStored(m.Subject)
	if err != nil {
		panic(err)
	}
	return session.Event{Session: sid, Door: door, Seq: m.Seq, Time: m.Time.UnixMilli(), Payload: m.Data}
}

// history returns the events of a session from one sequence to another, from a
// replica that may lack some of the latest.
func (j *jetServer) history(sid string, from, to uint64, leader bool) (all []session.Event) {
	filter, err := j.names.Session(sid)
	if err != nil {
		panic(err)
	}
	end := j.log.LastSeq()
	if !leader && !j.calm {
		end -= min(end-1, uint64(j.draw(int(j.behind)+1)))
	}
	if to > 0 {
		end = min(end, to)
	}
	for _, m := range j.log.All(filter, from, end) {
		all = append(all, j.event(m))
	}
	return all
}

// fence stores the only message of a subject, or returns the existing one.
func (j *jetServer) fence(subject string, data []byte) (won bool, holder []byte) {
	if _, err := j.fx.Publish(jetmodel.Put{Subject: subject, Data: data, Fenced: true}); err == nil {
		j.judge.stored(subject, data)
		return true, data
	}
	j.did("conflict")
	m, err := j.fx.Last(subject, 0)
	if err != nil {
		panic(fmt.Sprintf("%s is refused and does not exist", subject))
	}
	return bytes.Equal(m.Data, data), m.Data
}

// group stores effects and withdrawals as one batch. If a name is taken, nothing
// is stored: it compares the taken ones, and returns the others.
func (j *jetServer) group(outputs []journal.Output, left []int, errs []error) (still []int) {
	var batch []jetmodel.Put
	for _, i := range left {
		subject, data := j.outputOf(&outputs[i])
		batch = append(batch, jetmodel.Put{Subject: subject, Data: data, Fenced: true})
	}
	if _, err := j.fx.PublishBatch(batch); err == nil {
		j.did("group stored")
		for i, p := range batch {
			j.judge.stored(p.Subject, p.Data)
			errs[left[i]] = nil
		}
		return nil
	}
	j.did("group rejected")
	for n, i := range left {
		m, err := j.fx.Last(batch[n].Subject, 0)
		if err == nil {
			errs[i] = j.compare(&outputs[i], m)
		}
		if err != nil || errors.Is(errs[i], errNextClaim) {
			still = append(still, i)
		}
	}
	return still
}

// single stores one effect or withdrawal.
func (j *jetServer) single(o *journal.Output) error {
	subject, data := j.outputOf(o)
	j.fence(subject, data)
	m, err := j.fx.Last(subject, 0)
	if err != nil {
		return errRefused
	}
	return j.compare(o, m)
}

// errNextClaim means that a withdrawal must be stored as the next claim.
var errNextClaim = errors.New("the claim is of another effect")

// compare returns an error if another output has taken a name.
func (j *jetServer) compare(o *journal.Output, held jetmodel.Message) error {
	subject, data := j.outputOf(o)
	switch {
	case o.Withdraw == nil:
	case journal.WithdrawsNext(o.Withdraw, held.Data):
		o.N = max(o.N, 1) + 1
		j.did("withdrawn at the next claim")
		return errNextClaim
	default:
		j.did([]string{"withdrawn first", "withdrawn too late"}[min(1, strings.Count(string(held.Data), "by"))])
		return nil
	}
	if !bytes.Equal(held.Data, data) {
		return &journal.ViolationError{Subject: subject, Stored: held.Data, Wanted: data}
	}
	return nil
}

func (j *jetServer) outputOf(o *journal.Output) (subject string, data []byte) {
	var err error
	switch {
	case o.Withdraw != nil:
		of := subjects.EffectName{Class: o.Withdraw.Class, Target: o.Withdraw.Target, Session: o.Session, Effect: o.Withdraw.Name}
		subject, err = j.names.Claim(subjects.ClaimName{EffectName: of, N: max(int(o.N), 1)})
		data = journal.Withdrawn(o.Withdraw)
	case o.Effect.Class == session.ClassWake:
		subject, err = j.names.Timer(o.Session, o.Effect.Name, o.Effect.Deadline)
		data = o.Effect.Payload
	default:
		subject, err = j.names.Effect(subjects.EffectName{Class: o.Effect.Class, Target: o.Effect.Target, Session: o.Session, Effect: o.Effect.Name})
		data = o.Effect.Payload
	}
	if err != nil {
		panic(err)
	}
	return subject, data
}

func (j *jetServer) notice(o *journal.Output) {
	id := subjects.NoticeID(o.Session, o.N)
	if o.N == 0 {
		id = subjects.UnnumberedID(o.Session, codec.Digest(o.Notice).String())
	}
	ack, err := j.out.Publish(jetmodel.Put{Subject: o.Session, Data: o.Notice, ID: id, Header: strconv.FormatUint(o.N, 10)})
	if err == nil && !ack.Duplicate {
		noticesIn(o.Notice, o.N, func(n uint64, line []byte) { j.judge.notice(o.Session, n, line) })
	}
}

// schedule stores a wake, in place of an earlier one of its name.
func (j *jetServer) schedule(o *journal.Output) {
	subject, data := j.outputOf(o)
	target, err := j.names.Due(o.Session, o.Effect.Name)
	if err != nil {
		panic(err)
	}
	at := time.UnixMilli(o.Effect.Deadline)
	if most := j.now().Add(scheduleMost); at.After(most) {
		j.did("wake fires early")
		at = most
	}
	j.timers[subject] = schedule{at, target, data}
	j.newestTimer.Seq, j.newestTimer.Session = j.newestTimer.Seq+1, o.Session
	j.judge.scheduled(o, subject)
}

// put stores a snapshot.
func (j *jetServer) put(sid string, data []byte) {
	j.former[sid] = append(j.former[sid], data)
	j.former[sid] = j.former[sid][max(0, len(j.former[sid])-4):]
}

// snapshot returns the snapshot of a session, now and then an earlier one.
func (j *jetServer) snapshot(sid string) (data []byte, found bool) {
	all := j.former[sid]
	if len(all) == 0 {
		return nil, false
	}
	back := 0
	if !j.calm && j.behind > 0 {
		back = j.draw(len(all))
	}
	if back > 0 {
		j.did("snapshot used late")
	}
	return all[len(all)-1-back], true
}

// fire publishes due schedules.
func (j *jetServer) fire() {
	for _, subject := range sortedKeys(j.timers) {
		s := j.timers[subject]
		if s.at.After(j.now()) {
			continue
		}
		if _, err := j.due.Publish(jetmodel.Put{Subject: s.target, Data: s.payload}); err != nil {
			panic(err)
		}
		delete(j.timers, subject)
	}
}

// heard returns when observer received the last heartbeat of an instance. Every
// live process that is not cut off sends one every HeartbeatEvery.
func (j *jetServer) heard(observer *proc, instance string) (time.Time, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	of := j.alive[instance]
	if of == nil {
		return time.Time{}, false
	}
	at := time.Now()
	for _, p := range []*proc{of, observer} {
		if p.cut() && p.cutAt.Before(at) {
			at = p.cutAt
		}
	}
	if of.dead && of.deadAt.Before(at) {
		at = of.deadAt
	}
	if at.Before(of.bornAt) || at.Before(observer.bornAt) {
		return time.Time{}, false
	}
	return at.Truncate(presence.HeartbeatEvery), true
}
