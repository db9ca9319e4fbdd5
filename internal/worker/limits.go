package worker

import (
	"time"

	"github.com/refold/refold/actors/session"
)

// Every limit of a bridge, with its unit. limits_test.go asserts their relations.
const (
	inlineBytesSlim = 4 << 10 // text in a settlement, for a server whose max_payload is below ours

	// The size of a call's arguments in an event without their text, the lengths
	// before them included; and the size of a reference in their place.
	argumentsFixedBytes = 32
	argumentsRefBytes   = 128

	filesMax = session.PartsMax - 1 // files of a result, whose text is a part too

	manifestsCacheBytes = 32 << 20    // manifests of packs whose tools are called
	deltaBytesMax       = 32 << 10    // text of one streaming delta
	heldBytesMax        = 64 << 10    // text that waits for the end of a character
	unclaimedFreshFor   = time.Second // age up to which a retry-safe call starts without a check that it is open

	slotsPassed = 7 // grants in a row that may pass over effects of a lower priority

	paceWaitMax       = 10 * time.Second // wait in a slot for the target's rate; a longer one is given back
	holdMax           = time.Hour        // pause that a provider may ask for
	breakerTrialDelay = 2 * time.Second  // before the next delivery of an effect that can't start during a trial

	aliveEvery    = 500 * time.Millisecond // between two heartbeats
	aliveGapMax   = 2 * time.Second        // without a heartbeat of our own: we were not listening
	holderGone    = 5 * time.Second        // of listening without a heartbeat of a claim's holder
	heldDelay     = 2 * time.Second        // before the next delivery of an effect that another bridge holds
	troubleDelay  = 2 * time.Second        // the same, after a temporary error
	isolateDelay  = 30 * time.Second       // the same, for an effect that must run alone, so that it does not hold the others up all the time
	newerDelay    = 10 * time.Second       // the same, for an effect that only a newer bridge can read
	stoppingDelay = 100 * time.Millisecond // the same, to another bridge, when this one stops

	deathsDefault  = 3                // processes that may die of an effect
	deathsLeast    = 2                // the same, whatever its tool says
	suspectFor     = 30 * time.Second // for which an effect that a process died of runs beside no call that is not retry-safe
	isolateWaitMax = 10 * time.Second // wait in a slot until others end, beside which an effect must not run
	releaseWait    = 2 * time.Second  // for the claim that releases an effect

	retryWaitMin = 100 * time.Millisecond // between attempts to store a settlement
	retryWaitMax = 5 * time.Second
	modelWaitMin = time.Second // between starts of a generation that failed and may be retried
	modelWaitMax = 30 * time.Second

	stopGrace   = 5 * time.Second // for an executor to return after its context ended
	settleGrace = 5 * time.Second // for the last settlements, after the grace time and stopGrace

	// settledKept is how long a settled effect stays in the table after its
	// start_by: longer than this process's clock is ever set back.
	settledKept = 10 * time.Minute

	deltaEvery = 20 * time.Millisecond // between two deltas of a fast generation

	ConcurrencyDefault = 16 // effects of one target that run at once
	ConcurrencyMax     = 1024
	SlotsMax           = 4096             // effects of all targets of a process that run at once
	GraceDefault       = 20 * time.Second // for executions in progress when a bridge is told to stop
	viewWait           = 2 * time.Second  // for a session's view
	LookAheadMax       = 4096             // effects of one target that are pulled and wait for a slot
	PriorityMax        = 100
	RateMax            = 1_000_000
	BreakerFaultsMax   = 1000

	inlineBytesMax = session.TextBytesMax // text in a settlement; more goes to a blob
)
