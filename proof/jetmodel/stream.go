package jetmodel

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Codes of JetStream's errors.
const (
	CodeNotFound      = 10037 // no message found
	CodeWrongLast     = 10071 // the subject's last sequence is another one
	CodeSubjectFull   = 10077 // the subject has its one message
	CodeWrongLastHere = 10164 // the same, because the batch has a message of the subject already
	CodeBatchRepeats  = 10201 // an id of an atomic batch was stored before, or is in it twice
)

// Error is JetStream's refusal of a request.
type Error struct {
	Code int
	Text string
}

func (e *Error) Error() string { return fmt.Sprintf("%s (%d)", e.Text, e.Code) }

var (
	errNotFound      = &Error{CodeNotFound, "no message found"}
	errSubjectFull   = &Error{CodeSubjectFull, "maximum messages per subject exceeded"}
	errWrongLastHere = &Error{CodeWrongLastHere, "wrong last sequence"}
	errBatchRepeats  = &Error{CodeBatchRepeats, "atomic publish batch contains duplicate message id"}
)

func errWrongLast(last uint64) *Error {
	return &Error{CodeWrongLast, fmt.Sprintf("wrong last sequence: %d", last)}
}

// Config configures a stream. The zero value keeps everything for good.
type Config struct {
	OnePerSubject bool                        // a second message of a subject is refused
	LastOnly      bool                        // a second message of a subject replaces the first: a key-value bucket
	Age           time.Duration               // after which messages expire; 0: never
	Window        time.Duration               // in which a message id counts once; 0: ids are ignored
	Transform     func(subject string) string // of stored subjects; nil: as published
	Wall          func() time.Time            // the clock of timestamps and ages, which may jump; nil: the clock of everything else
}

// Message is a stored message. Data is shared: read it only.
type Message struct {
	Subject string
	Seq     uint64
	Time    time.Time
	Header  string // any text of the publisher
	Data    []byte
}

// Put is a message to store.
type Put struct {
	Subject string
	Header  string
	Data    []byte
	ID      string // Nats-Msg-Id; "": none
	Fenced  bool   // the last message of the subject must have the sequence Last
	Last    uint64 // 0: there must be no message
}

// Ack is the acknowledgement of a stored message.
type Ack struct {
	Seq       uint64
	Duplicate bool // a message with its id was stored before, at Seq
}

// Stream is a stream with its consumers.
type Stream struct {
	cfg       Config
	now       func() time.Time
	msgs      []*Message // ascending
	last      uint64     // last sequence
	ids       map[string]seenID
	consumers []*Consumer
}

type seenID struct {
	seq uint64
	at  time.Time
}

// NewStream returns an empty stream. now is its server's clock.
func NewStream(cfg Config, now func() time.Time) *Stream {
	if cfg.Wall == nil {
		cfg.Wall = now
	}
	return &Stream{cfg: cfg, now: now, ids: map[string]seenID{}}
}

// LastSeq returns the last sequence.
func (s *Stream) LastSeq() uint64 { return s.last }

// Publish stores a message, or returns an *Error.
func (s *Stream) Publish(p Put) (Ack, error) {
	s.expire()
	subject := s.subject(p.Subject)
	if err := s.wrongLast(p, subject); err != nil {
		return Ack{}, err
	}
	if seen, ok := s.seen(p.ID); ok {
		return Ack{seen, true}, nil
	}
	if err := s.full(subject); err != nil {
		return Ack{}, err
	}
	return s.store(p, subject), nil
}

func (s *Stream) subject(published string) string {
	if s.cfg.Transform == nil {
		return published
	}
	return s.cfg.Transform(published)
}

// seen returns the sequence of the message with an id within the window.
func (s *Stream) seen(id string) (uint64, bool) {
	if id == "" || s.cfg.Window == 0 {
		return 0, false
	}
	have, ok := s.ids[id]
	if !ok || s.now().Sub(have.at) >= s.cfg.Window {
		return 0, false
	}
	return have.seq, true
}

// wrongLast returns why a fence refuses a message, or nil.
func (s *Stream) wrongLast(p Put, subject string) error {
	if !p.Fenced {
		return nil
	}
	have := uint64(0)
	if last := s.lastOf(subject, 0); last != nil {
		have = last.Seq
	}
	if have != p.Last {
		return errWrongLast(have)
	}
	return nil
}

// full returns why a subject refuses a message, or nil.
func (s *Stream) full(subject string) error {
	if s.cfg.OnePerSubject && s.lastOf(subject, 0) != nil {
		return errSubjectFull
	}
	return nil
}

func (s *Stream) store(p Put, subject string) Ack {
	if s.cfg.LastOnly {
		s.msgs = slices.DeleteFunc(s.msgs, func(m *Message) bool { return m.Subject == subject })
	}
	s.last++
	s.msgs = append(s.msgs, &Message{Subject: subject, Seq: s.last, Time: s.cfg.Wall(), Header: p.Header, Data: p.Data})
	if p.ID != "" && s.cfg.Window > 0 {
		s.ids[p.ID] = seenID{s.last, s.now()}
	}
	return Ack{Seq: s.last}
}

// expire removes expired messages.
func (s *Stream) expire() {
	if s.cfg.Age == 0 {
		return
	}
	from, n := s.cfg.Wall().Add(-s.cfg.Age), 0
	for n < len(s.msgs) && !s.msgs[n].Time.After(from) {
		n++
	}
	s.msgs = s.msgs[n:]
}

// At returns the message at a sequence, from a replica at end; 0: from the
// leader.
func (s *Stream) At(seq, end uint64) (Message, error) {
	s.expire()
	i, found := s.find(seq)
	if !found || beyond(seq, end) {
		return Message{}, errNotFound
	}
	return *s.msgs[i], nil
}

// Last returns the last message of a subject, as At does.
func (s *Stream) Last(subject string, end uint64) (Message, error) {
	s.expire()
	m := s.lastOf(subject, end)
	if m == nil {
		return Message{}, errNotFound
	}
	return *m, nil
}

// lastOf returns the last message that a filter matches, or nil.
func (s *Stream) lastOf(filter string, end uint64) *Message {
	for i := len(s.msgs) - 1; i >= 0; i-- {
		if m := s.msgs[i]; !beyond(m.Seq, end) && Matches(filter, m.Subject) {
			return m
		}
	}
	return nil
}

// Next returns the first message from a sequence on that a filter matches; see
// At.
func (s *Stream) Next(filter string, from, end uint64) (Message, error) {
	s.expire()
	if m := s.next(func(subject string) bool { return Matches(filter, subject) }, from, end); m != nil {
		return *m, nil
	}
	return Message{}, errNotFound
}

func (s *Stream) next(matches func(string) bool, from, end uint64) *Message {
	i, _ := s.find(from)
	for ; i < len(s.msgs) && !beyond(s.msgs[i].Seq, end); i++ {
		if matches(s.msgs[i].Subject) {
			return s.msgs[i]
		}
	}
	return nil
}

// All returns all messages from a sequence on that a filter matches; see At.
func (s *Stream) All(filter string, from, end uint64) (all []Message) {
	s.expire()
	i, _ := s.find(from)
	for ; i < len(s.msgs) && !beyond(s.msgs[i].Seq, end); i++ {
		if Matches(filter, s.msgs[i].Subject) {
			all = append(all, *s.msgs[i])
		}
	}
	return all
}

// find returns the index of the message at a sequence, or where it would be.
func (s *Stream) find(seq uint64) (int, bool) {
	return slices.BinarySearchFunc(s.msgs, seq, func(m *Message, seq uint64) int {
		switch {
		case m.Seq < seq:
			return -1
		case m.Seq > seq:
			return 1
		}
		return 0
	})
}

func beyond(seq, end uint64) bool { return end > 0 && seq > end }

// Lose removes all messages from a sequence on, as a power loss without a sync
// does. The sequence is given again, and consumers past it go back to it.
func (s *Stream) Lose(from uint64) {
	if from > s.last {
		return
	}
	i, _ := s.find(from)
	s.msgs = slices.Clone(s.msgs[:i])
	s.last = from - 1
	for id, seen := range s.ids {
		if seen.seq >= from {
			delete(s.ids, id)
		}
	}
	for _, c := range s.consumers {
		c.lose(from)
	}
}

// Matches reports whether a filter with the wildcards * and > matches a subject.
func Matches(filter, subject string) bool {
	for {
		want, filterRest, more := strings.Cut(filter, ".")
		have, subjectRest, longer := strings.Cut(subject, ".")
		switch {
		case want == ">" && !more:
			return true
		case want != "*" && want != have:
			return false
		case more != longer:
			return false
		case !more:
			return true
		}
		filter, subject = filterRest, subjectRest
	}
}
