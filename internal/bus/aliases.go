package bus

import (
	"github.com/refold/refold/internal/delivery"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/presence"
	"github.com/refold/refold/internal/streams"
)

type (
	Backlog          = streams.Backlog
	BridgeHeard      = presence.BridgeHeard
	ClaimBody        = journal.ClaimBody
	Claiming         = journal.Claiming
	Conf             = streams.Conf
	Delivery         = delivery.Delivery
	DueDelivery      = delivery.DueDelivery
	Durability       = natsio.Durability
	EffectDelivery   = delivery.EffectDelivery
	EffectPuller     = delivery.EffectPuller
	Endpoint         = presence.Endpoint
	FoundEndpoint    = presence.FoundEndpoint
	FoundService     = presence.FoundService
	InstallLog       = journal.InstallLog
	Installs         = journal.Installs
	Kept             = journal.Kept
	Lane             = delivery.Lane
	LaneModel        = delivery.LaneModel
	LaneModelInfo    = delivery.LaneModelInfo
	LaneModelMessage = delivery.LaneModelMessage
	LaneModelPull    = delivery.LaneModelPull
	LaneOwner        = delivery.LaneOwner
	LastSaid         = journal.LastSaid
	MaxPayloadError  = natsio.MaxPayloadError
	Member           = presence.Member
	Members          = presence.Members
	Notice           = journal.Notice
	Options          = natsio.Options
	Output           = journal.Output
	PermissionError  = natsio.PermissionError
	Published        = journal.Published
	Running          = presence.Running
	Scanned          = journal.Scanned
	Service          = presence.Service
	ServiceReply     = presence.ServiceReply
	ServiceRequest   = presence.ServiceRequest
	SnapshotAt       = journal.SnapshotAt
	Stop             = journal.Stop
	StoredEffect     = journal.StoredEffect
	StoredOutputs    = journal.StoredOutputs
	UnreadableError  = journal.UnreadableError
	ViolationError   = journal.ViolationError
)

const (
	DurabilityAlways   = natsio.DurabilityAlways
	DurabilityInterval = natsio.DurabilityInterval
	DurabilityUnknown  = natsio.DurabilityUnknown
	GoneAfter          = presence.GoneAfter
	HeartbeatEvery     = presence.HeartbeatEvery
	LastNoticesMax     = journal.LastNoticesMax
	Partitions         = journal.Partitions
	SilentAfter        = presence.SilentAfter
)

var (
	ClaimedBy         = journal.ClaimedBy
	ErrAnswerLost     = presence.ErrAnswerLost
	ErrClosed         = natsio.ErrClosed
	ErrIDTaken        = journal.ErrIDTaken
	ErrNoInstall      = journal.ErrNoInstall
	ErrNoServer       = natsio.ErrNoServer
	ErrNoStream       = natsio.ErrNoStream
	ErrNoView         = natsio.ErrNoView
	ErrNobodyServes   = presence.ErrNobodyServes
	ErrNotFound       = natsio.ErrNotFound
	ErrOtherBytes     = journal.ErrOtherBytes
	ErrOvertaken      = journal.ErrOvertaken
	ErrStreamFull     = natsio.ErrStreamFull
	ErrTooLarge       = journal.ErrTooLarge
	ErrUnknownOutcome = journal.ErrUnknownOutcome
	NewInstalls       = journal.NewInstalls
	NewModelLane      = delivery.NewModelLane
	NewStop           = journal.NewStop
	ParseClaimBody    = journal.ParseClaimBody
	ParseConf         = streams.ParseConf
	ParseDurability   = natsio.ParseDurability
	ParseMonitors     = streams.ParseMonitors
	ParseStop         = journal.ParseStop
)
