// Package subjects holds every name that Refold uses on the wire: subjects,
// streams, buckets, consumers, keys and headers. No other package spells one.
//
// # Path
//
// A client publishes an event to refold.<door>.<sid> (Names.Log). The stream
// REFOLD_LOG stores it as refold.<p>.<door>.<sid> (Names.Stored), where p is
// the partition of the session; an install record is stored as it was sent.
// The lane of a partition is p mod the count of lanes; a lane is a durable
// consumer of its partitions and of the install records (Names.LaneFilters).
// A session-actor asks for an effect on refold.fx.<class>.<target>.<sid>.<effect>
// (Names.Effect), and the settlement comes back through the door that has the
// name of the class (DoorOf).
//
// # Laws
//
//   - A name is chosen once: the golden test prints all of them.
//   - Functions that make names refuse text that is no token. Functions that
//     parse names accept exactly the names that those make.
//   - The prefix is one lower-case token. Streams and buckets carry it in
//     upper case, so two prefixes share nothing.
//   - Partition is FNV-1a (32 bit) of the session id, mod 64, which is what the
//     server's {{partition(64,2)}} computes. It never changes.
//
// # Glossary
//
//   - token: the text between two dots; here 1 to 64 of A-Z a-z 0-9 _ -.
//   - door: the second token of a log subject. Permissions decide which users
//     may publish through which door.
//   - target: what carries an effect out: a provider, an executor, or "-".
//
// # Limits
//
// Tokens have at most 64 bytes, the prefix 32.
//
// # Testing
//
// testdata/names.golden has every name; go test -rewrite writes it again.
package subjects
