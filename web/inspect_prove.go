package web

import (
	"net/http"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/prove"
)

// Limits of a page of a session's log.
const (
	logEventsMax = 2000
	logBytesMax  = 8 << 20 // an event that begins below it is in the page as a whole
	logWrite     = 256 << 10
)

// getProof returns what the server has of a session, to be compared with another fold.
func (c *call) getProof() (any, error) {
	// What is stored is read before the log, so that the log has the events it comes from.
	proof := Proof{Session: c.sid, Checkpoints: []ProofState{}, Effects: []ProofEffect{}}
	stored, err := c.client.Effects(c.ctx(), c.sid)
	switch {
	case client.IsDenied(err):
		proof.Unknown = err.Error()
	case err != nil:
		return nil, err
	}
	for _, e := range stored {
		if e.Class != session.ClassWake {
			proof.Effects = append(proof.Effects, ProofEffect{Effect: e.Name, Hash: codec.Sum(e.Payload).String()})
		}
	}
	snap, err := c.client.Snapshot(c.ctx(), c.sid)
	if err != nil {
		return nil, err
	}
	if snap != nil {
		proof.Snapshot = &ProofSnapshot{Seq: snap.Seq, Hash: snap.Hash.String()}
	}
	h, leave, err := c.history()
	if err != nil {
		return nil, err
	}
	defer leave()
	for i, kept := range h.states {
		proof.Checkpoints = append(proof.Checkpoints, ProofState{N: 1 + i*checkpointEach, Hash: kept.Hash.String()})
	}
	proof.Install, proof.Events, proof.Seq = h.latest.Install.String(), len(h.heads), h.latest.Seq
	proof.Chain, proof.Hash = h.latest.Chain.String(), h.latest.Hash().String()
	return proof, nil
}

// getInstall sends the install record that the session pinned.
func (c *call) getInstall() (any, error) {
	h, leave, err := c.history()
	if err != nil {
		return nil, err
	}
	defer leave()
	record, err := c.client.PinnedInstall(c.ctx(), h.latest.Install, h.heads[0].Seq)
	if err != nil {
		return nil, err
	}
	c.raw("application/octet-stream", record)
	return nil, nil
}

// getLog sends a page of the session's events as they are stored, and with each of them
// the chain of the fold that the other pages show. It holds a part of the page at a time.
func (c *call) getLog() (any, error) {
	from, err := c.sequence("from")
	if err != nil {
		return nil, err
	}
	to, err := c.sequence("to")
	if err != nil {
		return nil, err
	}
	h, leave, err := c.history()
	if err != nil {
		return nil, err
	}
	last, err := h.find(to)
	place := 0
	if err == nil && from > h.heads[0].Seq {
		if place, err = h.find(from); err == nil && h.heads[place].Seq < from {
			place++
		}
	}
	end := min(place+logEventsMax, last+1)
	if err != nil || place >= end {
		leave()
		if err == nil {
			err = problem(http.StatusNotFound, CodeNoEvent, "the session has no event from %d to %d", from, to)
		}
		return nil, err
	}
	heads, chains := h.heads[place:end:end], h.chains[place:end:end] // they only grow
	after := uint64(0)
	if end <= last {
		after = h.heads[end].Seq
	}
	leave() // a slow reader keeps nobody else from the session
	return nil, c.sendLog(heads, chains, after)
}

// sendLog sends events, each with the chain after it; after is where the next page begins.
func (c *call) sendLog(heads []EventHead, chains []codec.Hash, after uint64) error {
	var part []byte
	send := func() error {
		if !c.sent {
			c.w.Header().Set("Content-Type", "application/octet-stream")
			c.sent = true
		}
		_, err := c.w.Write(part)
		part = part[:0]
		return err
	}
	sent, n := 0, 0
	for e, err := range c.client.Read(c.ctx(), c.sid, heads[0].Seq, heads[len(heads)-1].Seq) {
		if err != nil && c.sent {
			return errSent // the page has no end, which its reader sees
		}
		if err != nil {
			return err
		}
		if n == len(heads) || sent+len(part) > logBytesMax {
			after = e.Seq
			break
		}
		part = prove.Append(part, e, chains[n])
		if n++; len(part) >= logWrite {
			sent += len(part)
			if send() != nil {
				return errSent
			}
		}
	}
	part = prove.AppendEnd(part, after)
	if send() != nil {
		return errSent
	}
	return nil
}
