package subjects

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Out returns the subject of a session's notices.
func (n Names) Out(sid string) (string, error) { return n.perSession("out", sid) }

// OutAll matches the notices of every session.
func (n Names) OutAll() string { return n.join("out", "*") }

// ParseOut returns the session of a notice's subject.
func (n Names) ParseOut(subject string) (string, error) { return n.parsePerSession("out", subject) }

// Erased returns the subject of a session's entries in the ledger of erased messages.
func (n Names) Erased(sid string) (string, error) { return n.perSession("erased", sid) }

// ParseErased is the inverse of Erased.
func (n Names) ParseErased(subject string) (sid string, err error) {
	return n.parsePerSession("erased", subject)
}

// Redacted returns the subject of an event's entries in the ledger, whose text was
// removed: those of the event at sequence seq of the log.
func (n Names) Redacted(sid string, seq uint64) (string, error) {
	return n.checked(ValidSession(sid), "erased", sid, strconv.FormatUint(seq, 10))
}

// RedactedAll matches the entries of all events whose text was removed.
func (n Names) RedactedAll() string { return n.join("erased", "*", "*") }

// ErasedAll matches all entries of the ledger.
func (n Names) ErasedAll() string { return n.join("erased", ">") }

// Live returns the subject of a session's streaming deltas.
func (n Names) Live(sid string) (string, error) { return n.perSession("live", sid) }

// LiveAll matches the deltas of every session.
func (n Names) LiveAll() string { return n.join("live", "*") }

// ParseLive returns the session of a delta's subject.
func (n Names) ParseLive(subject string) (string, error) { return n.parsePerSession("live", subject) }

// Progress returns the subject of the progress of a session's active run.
func (n Names) Progress(sid string) (string, error) { return n.perSession("progress", sid) }

// ProgressAll matches the progress of every session.
func (n Names) ProgressAll() string { return n.join("progress", "*") }

// Cancel returns the subject on which a session withdraws effects from bridges.
func (n Names) Cancel(sid string) (string, error) { return n.perSession("cancel", sid) }

// CancelAll matches the cancellations of every session.
func (n Names) CancelAll() string { return n.join("cancel", "*") }

// ParseCancel returns the session of a cancellation's subject.
func (n Names) ParseCancel(subject string) (string, error) {
	return n.parsePerSession("cancel", subject)
}

// View returns the subject that answers requests with a session's View.
func (n Names) View(sid string) (string, error) { return n.perSession("view", sid) }

// ViewAll matches requests for any session's View.
func (n Names) ViewAll() string { return n.join("view", "*") }

// ParseView returns the session of a View's subject.
func (n Names) ParseView(subject string) (string, error) { return n.parsePerSession("view", subject) }

// Readers returns the subject on which a bridge that reads the spaces of a target
// answers what it would read now.
func (n Names) Readers(target string) (string, error) {
	return n.checked(ValidTarget(target), "spaces", target)
}

// ReadersAll matches those requests for any target.
func (n Names) ReadersAll() string { return n.join("spaces", "*") }

// The kinds of daemons, as in the subjects of heartbeats and the names of services.
const (
	KindSessionActor = "session-actor"
	KindBridge       = "bridge"
)

// Alive returns the subject of a daemon's heartbeats: refold.alive.<kind>.<instance>.
func (n Names) Alive(kind, instance string) (string, error) {
	if kind != KindSessionActor && kind != KindBridge {
		return "", fmt.Errorf("subjects: no such kind of daemon %q: use %s or %s", kind, KindSessionActor, KindBridge)
	}
	return n.checked(ValidInstance(instance), "alive", kind, instance)
}

// AliveAll matches the heartbeats of every daemon of a kind.
func (n Names) AliveAll(kind string) string { return n.join("alive", kind, "*") }

// ParseAlive returns kind and instance of a heartbeat's subject.
func (n Names) ParseAlive(subject string) (kind, instance string, err error) {
	if tokens := strings.Split(subject, "."); len(tokens) == 4 {
		if made, err := n.Alive(tokens[2], tokens[3]); err == nil && made == subject {
			return tokens[2], tokens[3], nil
		}
	}
	return "", "", fmt.Errorf("subjects: %q is no %s.alive.<kind>.<instance>", subject, n.prefix)
}

// Timer returns the subject of the message schedule of a wake that is due at a time in
// Unix milliseconds. A wake of the same name with another time has another subject:
// after a server lost the end of its streams, a session-actor may schedule a wake of a
// lost event, which must not replace the valid one.
func (n Names) Timer(sid, wake string, due int64) (string, error) {
	subject, err := n.perWake("timer", sid, wake)
	return subject + "." + strconv.FormatInt(due, 10), err
}

// ParseTimer returns the session of a subject that Timer made.
func (n Names) ParseTimer(subject string) (sid string, err error) {
	if tokens := strings.Split(subject, "."); len(tokens) == 5 {
		due, notNumber := strconv.ParseInt(tokens[4], 10, 64)
		if made, err := n.Timer(tokens[2], tokens[3], due); err == nil && notNumber == nil && made == subject {
			return tokens[2], nil
		}
	}
	return "", fmt.Errorf("subjects: %q is no %s.timer.<session>.<wake>.<time>", subject, n.prefix)
}

// Due returns the subject to which the schedule of a wake sends the due wake.
func (n Names) Due(sid, wake string) (string, error) { return n.perWake("due", sid, wake) }

// DueConsumer is the name of the consumer from which session-actors pull due wakes.
const DueConsumer = "due"

// DueAll matches all due wakes.
func (n Names) DueAll() string { return n.join("due", "*", "*") }

// ParseDue returns session and wake of a subject that Due made.
func (n Names) ParseDue(subject string) (sid, wake string, err error) {
	tokens := strings.Split(subject, ".")
	if len(tokens) == 4 {
		if made, err := n.Due(tokens[2], tokens[3]); err == nil && made == subject {
			return tokens[2], tokens[3], nil
		}
	}
	return "", "", fmt.Errorf("subjects: %q is no %s.due.<session>.<wake>", subject, n.prefix)
}

func (n Names) perWake(token, sid, wake string) (string, error) {
	return n.checked(cmp.Or(ValidSession(sid), ValidEffect(wake)), token, sid, wake)
}

func (n Names) perSession(token, sid string) (string, error) {
	return n.checked(ValidSession(sid), token, sid)
}

func (n Names) parsePerSession(token, subject string) (string, error) {
	sid, ok := strings.CutPrefix(subject, n.join(token, ""))
	if !ok {
		return "", fmt.Errorf("subjects: %q is no %s.%s.<session>", subject, n.prefix, token)
	}
	if err := ValidSession(sid); err != nil {
		return "", err
	}
	return sid, nil
}
