package spaces

import (
	"github.com/refold/refold/space"
)

// The limits of a session's spaces, with their units.
const (
	GrantsMax         = 64             // grants of a record, and of a session through ctl
	GrantTargetsMax   = 16             // targets of a grant
	PacksMax          = 16             // packs that are applied
	GrantDigestsMax   = 16             // digests of a grant
	GrantKeysMax      = 8              // keys of a grant
	StagedMax         = 64             // spaces that are staged
	SyncsMax          = 8              // syncs that are open
	SyncsDoneMax      = 8              // ended syncs that are remembered
	SyncRunDefaultMS  = 60 * 1000      // limit of one reading of a space; its sync has twice that
	SyncRunMinMS      = 1000           // lower limit
	SyncRunMaxMS      = 20 * 60 * 1000 // upper limit
	RevisionBytesMax  = 128            // a source's revision
	LacksMax          = space.LacksMax // needs that a reader reports as not met
	NoticeProblemsMax = 16             // problems in a notice
)

// onlyMax is how many parts of a space a sync may name.
const onlyMax = 4

// KnownMax is how many manifests of one space a session has: staged, pending,
// applied.
const KnownMax = 3

// nameBytesMax is how much of a name a state may hold, whatever it names.
const nameBytesMax = 128
