package account

import "strings"

// Result is what a comparison came to.
type Result string

// The results, the best one first.
const (
	OK      Result = "ok"
	Unknown Result = "unknown" // nobody could be asked
	Warning Result = "warning" // a promise is weaker than it can be
	Breaks  Result = "breaks"  // Refold does not work, or breaks a promise
)

// Code names what was compared.
type Code string

// The codes.
const (
	CodeVersion     Code = "server_version"
	CodeHeaders     Code = "headers"
	CodeCluster     Code = "cluster"
	CodeJetStream   Code = "jetstream"
	CodeAPILevel    Code = "api_level"
	CodeTier        Code = "tier"
	CodeStorage     Code = "max_storage"
	CodeStreamsMax  Code = "max_streams"
	CodeConsumers   Code = "max_consumers"
	CodeAckPending  Code = "max_ack_pending"
	CodeBytes       Code = "max_bytes_required"
	CodeStreams     Code = "streams"
	CodeStream      Code = "stream"    // a finding about one of them
	CodePlacement   Code = "placement" // where the copies of one are
	CodeSync        Code = "sync"
	CodeUser        Code = "user"
	CodeExpiry      Code = "credentials"
	CodeRole        Code = "role"
	CodeTry         Code = "try"
	CodeTryConsumer Code = "try_consumer"
	CodePayload     Code = "max_payload"
	CodeLeft        Code = "left" // a stream of Try that could not be deleted
)

// Check is one comparison.
type Check struct {
	Code   Code   `json:"code"`
	Of     string `json:"of,omitempty"` // the stream, consumer or role, if there are several
	Result Result `json:"result"`
	Has    string `json:"has,omitempty"`
	Needs  string `json:"needs,omitempty"`
	Means  string `json:"means,omitempty"` // what it means for Refold; empty if OK
	Do     string `json:"do,omitempty"`    // what to do, or to ask the operator for
}

// text is what a code means if its result is not OK.
type text struct{ means, do string }

// texts has each code that can be other than OK. In do, {needs} is what is needed.
var texts = map[Code]text{
	CodeVersion:     {"older servers can't reset consumers or store batches: no daemon starts", "ask for nats-server {needs} on all servers"},
	CodeHeaders:     {"every message names its log in a header: nothing can be published", "ask for servers with headers (no_header_support: false)"},
	CodePayload:     {"events, effects and chunks of blobs take up to this much: no daemon starts, or its connection is closed when it publishes one", "ask for a max_payload of {needs} bytes, of the servers, the account and the user"},
	CodeCluster:     {"so many copies need a cluster of as many servers", "ask for an account on a cluster {needs}, or use --replicas 1"},
	CodeJetStream:   {"nothing can be stored", "ask for JetStream with file storage for this account"},
	CodeAPILevel:    {"the servers that decide about streams are older than 2.14, whatever the connected one is", "ask for nats-server 2.14 or later on all servers"},
	CodeTier:        {"the account may have no stream with so many copies", "ask for limits of the tier {needs}, or start session-actors with another --replicas"},
	CodeStorage:     {"a full account stores no event; sessions wait, and clients are refused at 90 %", "ask for at least {needs} of file storage"},
	CodeStreamsMax:  {"a session-actor can't create all its streams, and does not start", "ask for max_streams of at least {needs}"},
	CodeConsumers:   {"lanes, bridges and followers have a consumer each: those that come last can't start", "ask for max_consumers of at least {needs}, and one more for each target, webhook and follower"},
	CodeAckPending:  {"the server refuses the consumers of streams.conf", "ask for max_ack_pending of at least {needs}"},
	CodeBytes:       {"the server refuses streams without max_bytes, and those of streams.conf have none", "ask for max_bytes_required off"},
	CodeStreams:     {"this user may not see them, or JetStream does not answer", "connect as a user that may read their info"},
	CodePlacement:   {"the stream is unavailable while the server of its copy is, and lost with its disk", "start all session-actors with --replicas {needs}"},
	CodeSync:        {"a power failure may lose the newest acknowledged events, unless the servers sync always", "ask for sync_interval, and start daemons with the --durability that it allows: always, or replicated with three copies, or interval"},
	CodeUser:        {"the permissions of this user are not known", "compare them with `refold roles table`"},
	CodeExpiry:      {"when they expire the servers close the connection, and nothing continues", "ask for credentials that last, or renew them in time"},
	CodeRole:        {"the user lacks rights of this role", "ask for what `refold roles table` lists in these rows: {needs}"},
	CodeTry:         {"the servers refuse the stream as a session-actor creates it", "ask for what the answer names"},
	CodeTryConsumer: {"the servers refuse the consumer as a session-actor creates and resets it", "ask for what the answer names"},
	CodeLeft:        {"it takes room, and counts against the limits", "delete it: nats stream rm {needs}"},
}

// found returns a check with this result. Unless that is OK, it says what its code means.
func found(code Code, of string, r Result, has, needs string) Check {
	c := Check{Code: code, Of: of, Result: r, Has: has, Needs: needs}
	if r != OK {
		c.Means, c.Do = texts[code].means, strings.ReplaceAll(texts[code].do, "{needs}", needs)
	}
	return c
}
