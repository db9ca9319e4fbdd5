package prove

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

// Claims are what a server says of a session: JSON. Package web documents the fields, as
// Proof.
type Claims struct {
	Session     string       `json:"session"`
	Install     codec.Hash   `json:"install"`
	Events      int          `json:"events"`
	Seq         uint64       `json:"seq"`
	Chain       codec.Hash   `json:"chain"`
	Hash        codec.Hash   `json:"hash"`
	Checkpoints []Checkpoint `json:"checkpoints"`
	Snapshot    *Snapshot    `json:"snapshot"`
	Effects     []Effect     `json:"effects"`
	Unknown     string       `json:"unknown"`
}

// Checkpoint is the hash of the state after the event with the number N, from 1.
type Checkpoint struct {
	N    int        `json:"n"`
	Hash codec.Hash `json:"hash"`
}

// Snapshot is the hash of the state that is stored as the session's snapshot.
type Snapshot struct {
	Seq  uint64     `json:"seq"`
	Hash codec.Hash `json:"hash"`
}

// Effect is the SHA-256 of the bytes of a stored effect.
type Effect struct {
	Effect string     `json:"effect"`
	Hash   codec.Hash `json:"hash"`
}

// Report says what was compared, and what differs.
type Report struct {
	Events      int          `json:"events"`                // folded
	Rejected    int          `json:"rejected"`              // of them
	Seq         uint64       `json:"seq"`                   // of the last one
	Chain       string       `json:"chain"`                 // after it
	Hash        string       `json:"hash"`                  // of the state after it
	States      int          `json:"states"`                // hashes of states that are the same
	SnapshotAt  uint64       `json:"snapshot_at,omitempty"` // sequence of the snapshot that was compared; 0: none
	EffectsSame int          `json:"effects_same"`          // effects whose stored bytes are those of the fold
	EffectsGone int          `json:"effects_gone"`          // effects that are not stored any more
	Unknown     string       `json:"unknown,omitempty"`     // why the server does not know what is stored
	Differences []Difference `json:"differences"`           // none: all that was compared is the same
}

// Difference is one between the fold and the claims. N is the number of the event that
// shows it, from 1; 0: none does.
type Difference struct {
	N        int    `json:"n,omitempty"`
	Text     string `json:"text"`
	Expected string `json:"expected,omitempty"` // the server's hash
	Found    string `json:"found,omitempty"`    // that of the fold
}

// differencesMax is how many differences a report has.
const differencesMax = 20

// Session is a session that is folded again. It is for one goroutine.
type Session struct {
	claims Claims
	states map[int]codec.Hash    // claimed, by the event's number
	stored map[string]codec.Hash // effects that are not compared yet
	state  *session.State
	open   map[string]bool
	room   []byte
	report Report
	last   bool // the log's last page came
	broken bool // an event differs: nothing after it is folded
}

// Begin begins to fold a session. It fails if the claims or the record can't be read, or
// if the record is not the one that the claims name.
func Begin(claims, install []byte) (*Session, error) {
	p := &Session{states: map[int]codec.Hash{}, stored: map[string]codec.Hash{}, open: map[string]bool{}}
	d := json.NewDecoder(bytes.NewReader(claims))
	d.DisallowUnknownFields()
	if err := d.Decode(&p.claims); err != nil {
		return nil, fmt.Errorf("what the server says of the session can't be read: %w", err)
	}
	parsed, err := session.ParseInstall(install)
	if err != nil {
		return nil, err
	}
	if parsed.Hash != p.claims.Install {
		return nil, fmt.Errorf("the install record that came has the hash %s, and the session's is %s", parsed.Hash, p.claims.Install)
	}
	for _, c := range p.claims.Checkpoints {
		p.states[c.N] = c.Hash
	}
	p.states[p.claims.Events] = p.claims.Hash
	for _, e := range p.claims.Effects {
		p.stored[e.Effect] = e.Hash
	}
	p.state = session.New(parsed, p.claims.Session)
	p.state.SetQuiet(true)
	p.report.Unknown, p.report.Differences = p.claims.Unknown, []Difference{}
	return p, nil
}

// Page folds a page of the log. It returns how many events are folded so far, and the
// sequence with which the next page begins; 0: there is nothing more to fold.
func (p *Session) Page(page []byte) (events int, next uint64) {
	r := &reader{rest: page}
	for !p.broken && !p.last {
		e, chain, after, isEnd, err := r.next()
		switch {
		case err != nil:
			p.breaks(p.report.Events+1, fmt.Sprintf("event number %d can't be read as it came: %v", p.report.Events+1, err), "", "")
		case isEnd && after == 0:
			p.last = true
		case isEnd:
			return p.report.Events, after
		case p.report.Events == p.claims.Events:
			p.breaks(p.report.Events, fmt.Sprintf("the server folded %d events, and more came", p.claims.Events), "", "")
		default:
			e.Session = p.claims.Session
			p.event(e, chain)
		}
	}
	return p.report.Events, 0
}

// event folds an event, and breaks off if it is not the one that the server folded.
func (p *Session) event(e session.Event, chain codec.Hash) {
	n := p.report.Events + 1
	defer func() {
		if v := recover(); v != nil {
			p.breaks(n, fmt.Sprintf("the fold panicked at event number %d: %v", n, v), "", "")
		}
	}()
	if err := p.state.Foldable(); err != nil {
		p.breaks(n, err.Error(), "", "")
		return
	}
	_, rejected := p.state.Evolve(e)
	if p.state.Chain != chain {
		p.breaks(n, fmt.Sprintf("event number %d is not the one that the server folded: it was altered, or one before it is missing", n), chain.String(), p.state.Chain.String())
		return
	}
	if rejected != nil {
		p.report.Rejected++
	}
	p.report.Events, p.report.Seq = n, e.Seq
	p.compareEffects(n)
	p.compareState(n)
}

func (p *Session) compareState(n int) {
	claimed, compared := p.states[n]
	snapshot := p.claims.Snapshot
	isSnapshot := snapshot != nil && snapshot.Seq == p.report.Seq
	if !compared && !isSnapshot {
		return
	}
	hash := p.state.Hash()
	if compared && p.same(n, fmt.Sprintf("the state after event number %d is another one here: the events are the same, so another build folded them", n), claimed, hash) {
		p.report.States++
	}
	if isSnapshot {
		p.same(n, fmt.Sprintf("the snapshot after event number %d is of another state", n), snapshot.Hash, hash)
		p.report.SnapshotAt = snapshot.Seq
	}
}

// compareEffects compares the effects that the latest event opened.
func (p *Session) compareEffects(n int) {
	now := map[string]bool{}
	p.room = p.state.EachOpen(p.room, func(place session.Place) bool {
		name := place.String()
		now[name] = true
		return p.open[name] || place.Class() == session.ClassWake // a wake is a schedule, which is gone once it has fired
	}, func(_ session.Place, e session.Effect) {
		claimed, stored := p.stored[e.Name]
		if !stored {
			p.report.EffectsGone++
			return
		}
		delete(p.stored, e.Name)
		if p.same(n, fmt.Sprintf("effect %s is stored with other bytes than event number %d asks for", e.Name, n), claimed, codec.Sum(e.Payload)) {
			p.report.EffectsSame++
		}
	})
	p.open = now
}

// End ends the proof.
func (p *Session) End() *Report {
	if !p.broken {
		if p.report.Events < p.claims.Events {
			p.breaks(p.report.Events+1, fmt.Sprintf("the server folded %d events, and %d came", p.claims.Events, p.report.Events), "", "")
		} else {
			p.same(p.report.Events, "the chain over all events is another one", p.claims.Chain, p.state.Chain)
			for _, name := range slices.Sorted(maps.Keys(p.stored)) {
				p.differ(Difference{Text: fmt.Sprintf("effect %s is stored, and no event asks for it", name), Expected: p.stored[name].String()})
			}
		}
	}
	p.report.Chain, p.report.Hash = p.state.Chain.String(), p.state.Hash().String()
	return &p.report
}

// same compares two hashes.
func (p *Session) same(n int, text string, expected, found codec.Hash) bool {
	if expected == found {
		return true
	}
	p.differ(Difference{N: n, Text: text, Expected: expected.String(), Found: found.String()})
	return false
}

// breaks adds a difference after which nothing is folded.
func (p *Session) breaks(n int, text, expected, found string) {
	p.broken = true
	p.differ(Difference{N: n, Text: text, Expected: expected, Found: found})
}

func (p *Session) differ(d Difference) {
	if len(p.report.Differences) < differencesMax {
		p.report.Differences = append(p.report.Differences, d)
	}
}
