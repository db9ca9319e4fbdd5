package spaces

import (
	"slices"
	"strconv"

	"github.com/refold/refold/actors/sentence"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/space"
)

// EffectPrefix begins the names of syncs' effects: y1.
const EffectPrefix = 'y'

// Name returns the name of the sync's effect.
func (o *Sync) Name() string { return string(EffectPrefix) + strconv.FormatUint(uint64(o.Number), 10) }

// isLook reports whether a sync is an operator's dry one: it changes nothing, so any
// number of them may be open beside another sync of their space.
func (o *Sync) isLook() bool { return o.Dry && o.Call == "" }

// Ended is a sync that the session ended, with the reason for the call that waits for
// it.
type Ended struct {
	Sync
	Code   string
	Detail sentence.Text
}

// Request opens a sync for an operator. o has what was requested: Apply, Catalog, Data,
// Dry, Only, Prompt, Space and Version. kind is the one that the space must have; empty:
// any. grant is a new one for the space, nil if the request brings none. The request
// withdraws an open sync of the space, unless that was requested with the same data. A
// dry sync withdraws none. Ended is the withdrawn one; nil: there is none.
func (x *Spaces) Request(o Sync, kind space.Kind, grant *Grant) (*Ended, *Refusal) {
	seq, clock := x.Session.Now()
	under, from := grant, seq
	if under == nil {
		under, from = x.GrantNow(o.Space)
	}
	if bad := o.grantFault(kind, under); bad != nil {
		return nil, bad
	}
	if x.findSync(func(open *Sync) bool { return open.Space == o.Space && open.Data == o.Data }) >= 0 {
		return nil, nil
	}
	at := -1
	if !o.Dry {
		at = x.OpenSyncOf(o.Space)
	}
	if bad := x.RoomFault(o.Space, o.Dry, at >= 0); bad != nil {
		return nil, bad
	}
	if grant != nil {
		if bad := x.takeGrant(grant); bad != nil {
			return nil, bad
		}
	}
	var withdrawn *Ended
	if at >= 0 {
		withdrawn = x.Withdraw(at, CodeCancelled, sentence.Say(sentence.AnotherSync))
		withdrawn.Detail = sentence.Say(sentence.AskedByOperator)
	}
	o.At, o.Deadline, o.RunMS = clock, clock+2*under.RunLimitMS(), under.RunLimitMS()
	o.Grant, o.Kind, o.Seq, o.Target = from, under.SpaceKind(), seq, under.TargetOf(o.Space)
	x.enter()
	o.Known = x.Known(o.Space)
	x.Open(o)
	x.Prune()
	return withdrawn, nil
}

// grantFault checks the request against its grant.
func (o *Sync) grantFault(kind space.Kind, grant *Grant) *Refusal {
	switch {
	case grant == nil:
		return unknownSpace(o.Space)
	case kind != "" && kind != grant.SpaceKind():
		return otherKind(o.Space, grant.SpaceKind(), kind)
	case !grant.MayRequest(AttachOperator):
		return refuse(NotPermitted, "workspace: only models may request "+sentence.Quoted(o.Space)+": see its attach")
	case grant.pinned() && len(o.Only) > 0:
		return refuse(NotPermitted, "only: the grant trusts whole manifests, by digests or keys")
	case o.Version != "" && !grant.Covers(o.Version):
		return refuse(NotPermitted, "version: the grant is for version "+grant.Version)
	}
	return nil
}

// Open opens a sync, and returns it with its number. It is valid until the next one.
func (x *Spaces) Open(o Sync) *Sync {
	x.enter()
	x.SyncsAsked++
	o.Number = x.SyncsAsked
	x.Syncs = append(x.Syncs, o)
	return &x.Syncs[len(x.Syncs)-1]
}

func unknownSpace(name string) *Refusal {
	return refuse(UnknownSpace, "workspace: no grant is about "+sentence.Quoted(name)+": bring one, or add it to the install record")
}

// otherKind refuses a request that names another kind than the space has.
func otherKind(name string, is, asked space.Kind) *Refusal {
	return refuse(InvalidData, "kind: "+sentence.Quoted(name)+" is a "+string(is)+", not a "+string(asked))
}

// OpenSyncOf returns the index of a space's open sync, -1 if there is none.
// An operator's dry syncs don't count.
func (x *Spaces) OpenSyncOf(name string) int {
	return x.findSync(func(o *Sync) bool { return o.Space == name && !o.isLook() })
}

// SyncAt returns the index of the open sync of a number, -1 if it is not open.
func (x *Spaces) SyncAt(n uint32) int {
	return x.findSync(func(o *Sync) bool { return o.Number == n })
}

// findSync returns the index of the first open sync that matches, -1 if none does.
func (x *Spaces) findSync(is func(*Sync) bool) int {
	if x.State != nil {
		for i := range x.Syncs {
			if is(&x.Syncs[i]) {
				return i
			}
		}
	}
	return -1
}

// RoomFault checks that there is room for a sync and for what it stages, which
// is nothing if it is dry. With again, it replaces an open sync of the space.
func (x *Spaces) RoomFault(name string, dry, again bool) *Refusal {
	if x.State == nil || again {
		return nil
	}
	if len(x.Syncs) >= SyncsMax {
		return refuse(LimitExceeded, "workspace: "+strconv.Itoa(SyncsMax)+" syncs are open: wait for one")
	}
	places := len(x.Staged)
	for i := range x.Syncs {
		if o := &x.Syncs[i]; !o.isLook() && x.stagedAt(o.Space) < 0 {
			places++
		}
	}
	if !dry && x.stagedAt(name) < 0 && places >= StagedMax {
		return refuse(LimitExceeded, "workspace: "+strconv.Itoa(StagedMax)+" spaces are staged: apply or detach one")
	}
	return nil
}

// stagedAt returns the index of a staged space, -1 if it is not staged.
func (x *Spaces) stagedAt(name string) int {
	return slices.IndexFunc(x.Staged, func(st Stage) bool { return st.Pin.Space == name })
}

// takeGrant stores a grant that came through ctl; it is valid at once. The first
// grant adds the session's own tools.
func (x *Spaces) takeGrant(grant *Grant) *Refusal {
	if x.State != nil && len(x.Grants) >= GrantsMax {
		if _, seq := x.GrantNow(grant.Space); seq == 0 {
			return refuse(LimitExceeded, "grant: a session holds "+strconv.Itoa(GrantsMax)+": detach a space")
		}
	}
	if !x.HasGrants() {
		st := x.Stack()
		st.own = x.Record.Own
		if bad := st.Compose(); bad != nil {
			return refuse(WorkspaceInvalid, "grant: the session's own tools do not fit: "+bad.Error())
		}
		x.enter()
		x.Recompose(&st)
	}
	x.enter()
	seq, _ := x.Session.Now()
	x.Grants = append(x.Grants, GrantPin{Grant: *grant, Seq: seq})
	return nil
}

// Known returns the session's manifests of a space.
func (x *Spaces) Known(name string) (out []Known) {
	if x.State == nil {
		return nil
	}
	add := func(p *Pin) {
		if p.Space == name && !slices.ContainsFunc(out, func(k Known) bool { return k.Hash == p.Hash }) {
			out = append(out, Known{Hash: p.Hash, Seq: p.Seq})
		}
	}
	for i := range x.Staged {
		add(&x.Staged[i].Pin)
	}
	for i := range x.Pending {
		add(&x.Pending[i].Pin)
	}
	for i := range x.Applied {
		add(&x.Applied[i])
	}
	return out
}

// End ends open sync i, whose settlement has a hash, and returns it.
func (x *Spaces) End(i int, hash codec.Hash) Sync {
	o := x.Syncs[i]
	x.Syncs = slices.Delete(x.Syncs, i, i+1)
	if len(x.SyncsDone) == SyncsDoneMax {
		x.SyncsDone = slices.Delete(x.SyncsDone, 0, 1)
	}
	x.SyncsDone = append(x.SyncsDone, Done{Hash: hash, Number: o.Number})
	return o
}

// Withdraw ends open sync i without a settlement, and publishes why.
func (x *Spaces) Withdraw(i int, code string, detail sentence.Text) *Ended {
	o := x.Syncs[i]
	x.Session.Withdraw(o.Number)
	x.notifyFailed(&o, nil, code, detail.String(), nil)
	return &Ended{x.End(i, codec.Hash{}), code, detail}
}

// WithdrawOf withdraws the sync of a number, if it is open.
func (x *Spaces) WithdrawOf(n uint32, code string, detail sentence.Text) {
	if i := x.SyncAt(n); i >= 0 {
		x.Withdraw(i, code, detail)
	}
}

// Overdue returns the index of the first open sync whose deadline has passed, -1 if there
// is none.
func (x *Spaces) Overdue() int {
	_, clock := x.Session.Now()
	return x.findSync(func(o *Sync) bool { return o.Deadline <= clock })
}

// Settlement returns the hash of an ended sync's settlement; zero if the session ended it,
// or if it is too long ago.
func (x *State) Settlement(n uint32) (hash codec.Hash) {
	if done := find(x.SyncsDone, func(d *Done) bool { return d.Number == n }); done != nil {
		hash = done.Hash
	}
	return hash
}

// TrustOf returns the trust of the grant that a sync is under, nil if that trusts
// whatever its reader reads.
func (x *Spaces) TrustOf(o *Sync) *space.Trust {
	grant := x.grant(o.Grant, o.Space)
	if grant == nil {
		return nil
	}
	if trust := grant.AsTrust(); len(trust.Digests) > 0 || len(trust.Keys) > 0 || trust.Version != "" {
		return trust
	}
	return nil
}
