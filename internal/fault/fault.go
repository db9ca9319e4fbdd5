// Package fault names the faults that are injected in hosts and bridges, to see
// that the simulation finds them (docs/simulator.md). In a build without the tag
// faults nothing is injected: On is a constant, and the compiler leaves out what
// it guards.
package fault

// Fault is one fault, by its name.
type Fault string

// Faults of bridges.
const (
	NoClaim            Fault = "no-claim"             // starts what must be claimed without a claim
	ClaimNotLooked     Fault = "claim-not-looked"     // takes a claim that was not answered as won
	ConflictIsOurs     Fault = "conflict-is-ours"     // starts under another's claim
	WithdrawnIgnored   Fault = "withdrawn-ignored"    // starts what is withdrawn
	HolderAliveIgnored Fault = "holder-alive-ignored" // takes every holder for gone
	UnsafeRestarted    Fault = "unsafe-restarted"     // claims an unsafe call anew whose holder is gone
	ClaimNotRaised     Fault = "claim-not-raised"     // takes a model turn over without a claim of its own
	FirstAskForgotten  Fault = "first-ask-forgotten"  // asks whether it was heard since its latest ask for a claim, not since its first
	TakenOverSettled   Fault = "taken-over-settled"   // takes a model turn over without a look whether it is open
	SecondLookLeftOut  Fault = "second-look-left-out" // does not read the clock after the claim
	LateNotWithdrawn   Fault = "late-not-withdrawn"   // settles what is late without withdrawing it first
	ForgottenBelieved  Fault = "forgotten-believed"   // believes that a call which nobody has claimed was never started, though claims are forgotten
	SettledForgotten   Fault = "settled-forgotten"    // forgets what it settled
	AckBeforeSettled   Fault = "ack-before-settled"   // acks though the settlement is not stored
	StoppedIsFailed    Fault = "stopped-is-failed"    // settles an unsafe call that was stopped as failed
)

// Faults of hosts.
const (
	AckOnFolded         Fault = "ack-on-folded"         // acknowledges what is folded and not stored
	StoreFailureIgnored Fault = "store-failure-ignored" // takes what could not be stored as stored
	CompareSkipped      Fault = "compare-skipped"       // takes other bytes under a name as its own
	WithdrawalLeftOut   Fault = "withdrawal-left-out"   // stores no withdrawals
	CancelLeftOut       Fault = "cancel-left-out"       // does not tell bridges what is withdrawn
	SnapshotEarly       Fault = "snapshot-early"        // puts a snapshot before its state is stored
	LoadToTail          Fault = "load-to-tail"          // folds the delivered event in the load
	StaleReadAccepted   Fault = "stale-read-accepted"   // takes a read for complete that ends before the delivered event
	NotProven           Fault = "not-proven"            // believes in a new epoch what is in memory
	FoldedTwice         Fault = "folded-twice"          // folds a redelivered event again
	NoticeReused        Fault = "notice-reused"         // gives a notice the number of another
	NoticeDropped       Fault = "notice-dropped"        // drops the first of several notices
	LoadedIsAsked       Fault = "loaded-is-asked"       // takes all that a loaded session has open as asked
	SnapshotBelieved    Fault = "snapshot-believed"     // believes a snapshot whose event the log does not have
	RewrittenBelieved   Fault = "rewritten-believed"    // believes a session whose last event the log does not have
	BytesNotFrozen      Fault = "bytes-not-frozen"      // asks with bytes that depend on the clock
	BatchRenamed        Fault = "batch-renamed"         // stores under new names what may be stored
	WakeEarly           Fault = "wake-early"            // settles a wake that fires before it is due
	WakeAckedUnsaid     Fault = "wake-acked-unsaid"     // acks a wake though its settlement is not stored
	WakeNotScheduled    Fault = "wake-not-scheduled"    // acknowledges an event though its wake is not scheduled
	NothingForgotten    Fault = "nothing-forgotten"     // keeps every session in memory
)

// Faults of a host's end of a lane.
const (
	ResetForgotten Fault = "reset-forgotten" // does not reset a lane that it takes over
	GapIgnored     Fault = "gap-ignored"     // takes a delivery that does not follow the last one
	AckAllLate     Fault = "ack-all-late"    // acks all that came before, also what another host has taken over
	AckedHeldAgain Fault = "acked-again"     // takes an acknowledged event that comes again as under way
)

// All returns every fault, those of bridges first.
func All() []Fault {
	return []Fault{
		NoClaim, ClaimNotLooked, ConflictIsOurs, WithdrawnIgnored, HolderAliveIgnored, UnsafeRestarted, ClaimNotRaised, FirstAskForgotten, TakenOverSettled,
		SecondLookLeftOut, LateNotWithdrawn, ForgottenBelieved, SettledForgotten, AckBeforeSettled, StoppedIsFailed,
		AckOnFolded, StoreFailureIgnored, CompareSkipped, WithdrawalLeftOut, CancelLeftOut, SnapshotEarly, LoadToTail, StaleReadAccepted,
		NotProven, FoldedTwice, NoticeReused, NoticeDropped, LoadedIsAsked, SnapshotBelieved, RewrittenBelieved, BytesNotFrozen,
		BatchRenamed, WakeEarly, WakeAckedUnsaid, WakeNotScheduled, NothingForgotten,
		ResetForgotten, GapIgnored, AckAllLate, AckedHeldAgain,
	}
}
