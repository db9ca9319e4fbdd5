// Package webhook posts notices of sessions to receivers elsewhere, as Standard Webhooks
// says (https://www.standardwebhooks.com). docs/http.md is its page for users.
//
// # Path
//
// Read reads the file of webhooks. Run pulls, for each webhook, from a durable consumer of
// REFOLD_OUT that all servers share (delivery.NoticePuller). A worker queues its messages
// by session, picks the notices that the webhook sends, and posts them (send.go). A message
// is acknowledged when the receiver has answered 2xx to each of its notices, or when they
// are dead letters.
//
// # At least once
//
// A message is acknowledged after its last notice was delivered, so a server that dies
// before leaves it to another one, which sends all of it again. The header webhook-id is
// made from the notice's number in its session, so a repeat has the same one, whichever
// server sends it: receivers drop what they have.
//
// # Order
//
// The notices of a session reach the receiver for the first time in the order of the log:
//
//   - One server delivers at a time: JetStream pins it, and gives the others nothing.
//   - It sends one notice of a session after the other. One that fails is retried before
//     the next. Other sessions go on meanwhile.
//   - When another server is pinned, it begins nothing before it holds all messages that
//     are not acknowledged: those that the former server gave back, and those that come
//     when the leases of a dead one end, after 10 seconds.
//
// A server that is cut off from NATS, and alive, goes on with the notice of each session
// that it was sending. The receiver may then get it again after a newer one: a repeat, with
// its webhook-id.
//
// # Failures
//
// A try fails if there is no answer within 15 seconds, or another one than 2xx, redirects
// included. It is repeated after 1 s, 2 s, … up to 15 minutes. A notice whose try fails
// when it is a day old is a dead letter: it is stored in REFOLD_DEAD, and the next one of
// its session follows. A notice that waited for longer still gets one try.
//
// # Limits
//
// A webhook has 16 tries under way, and holds 1,000 messages (max_ack_pending in
// streams.conf). So receivers that refuse all of 1,000 messages hold up the others of their
// webhook, until these are a day old. Webhooks don't hold up one another: each has a
// consumer. Notices are kept for a week.
//
// Nothing is sent to addresses of private networks unless the webhook allows it. What is
// checked is the address that is dialled, after its name was resolved.
//
// # Testing
//
// The tests run servers and receivers on loopback, and check signatures with the reference
// library. Waits and the clock are theirs.
package webhook
