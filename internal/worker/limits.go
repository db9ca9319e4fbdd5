package worker

import (
	"time"

	"github.com/refold/refold/actors/session"
)

// Every limit of a bridge, with its unit. limits_test.go asserts how they
// relate.
const (
	inlineBytesSlim = 4 << 10 // text that a settlement holds itself, for a server whose max_payload is below ours

	// What a call's arguments take of an event in addition to their text, the lengths
	// before them included; and what a reference takes in their place.
	argumentsFixedBytes = 32
	argumentsApartBytes = 128

	filesMax = session.PartsMax - 1 // of a result: its text is a part too

	manifestsCacheBytes = 32 << 20    // manifests of packs whose tools are called
	deltaBytesMax       = 32 << 10    // text of one streaming delta
	heldBytesMax        = 64 << 10    // that waits for the end of a character
	unclaimedFreshFor   = time.Second // for so long after it was asked, a retry-safe call is started without a look
	claimsMax           = 1024        // claims of one model turn: each but the last is of a bridge that is gone

	slotsPassed = 7 // slots in a row that go past effects of a lower priority

	paceWaitMax       = 10 * time.Second // that an effect waits in its slot for its target's rate; else it is given back
	holdMax           = time.Hour        // that a provider is left alone because it asks for it
	breakerTrialDelay = 2 * time.Second  // until what can't start while one is tried is offered again

	aliveEvery    = 500 * time.Millisecond // between two heartbeats
	aliveGapMax   = 2 * time.Second        // without a heartbeat of our own: we were not listening
	holderGone    = 5 * time.Second        // of listening without a heartbeat of a claim's holder
	heldDelay     = 2 * time.Second        // until what another bridge holds is offered again
	troubleDelay  = 2 * time.Second        // until what could not be looked at is offered again
	newerDelay    = 10 * time.Second       // until what only a newer bridge can read is offered again
	stoppingDelay = 100 * time.Millisecond // until what a stopping bridge has is offered to others: not to itself

	retryWaitMin = 100 * time.Millisecond // between attempts to store a settlement
	retryWaitMax = 5 * time.Second
	modelWaitMin = time.Second // between starts of a generation that failed and may be retried
	modelWaitMax = 30 * time.Second

	stopGrace   = 5 * time.Second // for an executor to return after its context ended
	settleGrace = 5 * time.Second // for the last settlements, after the grace time and stopGrace

	// settledKept is for how long after its start_by an effect that was settled
	// here is remembered: longer than this process's clock is ever set back.
	settledKept = 10 * time.Minute

	deltaEvery = 20 * time.Millisecond // between two deltas of a generation that speaks fast

	ConcurrencyDefault = 16 // effects of one target that run at once
	ConcurrencyMax     = 1024
	SlotsMax           = 4096             // effects of all targets of a process that run at once
	GraceDefault       = 20 * time.Second // for what runs when a bridge is told to stop
	viewWait           = 2 * time.Second  // for an answer with a session's view
	LookAheadMax       = 4096             // effects of one target that are pulled and wait for a slot
	PriorityMax        = 100
	RateMax            = 1_000_000
	BreakerFaultsMax   = 1000

	inlineBytesMax = session.TextBytesMax // text that a settlement holds itself; more goes to a blob
)
