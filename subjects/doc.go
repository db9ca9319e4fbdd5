// Package subjects has every name that Refold uses on the wire: subjects, streams,
// buckets, consumers, keys and headers. No other package spells one.
//
// # Path
//
// A client publishes an event to refold.<door>.<sid> (Names.Log). The stream
// REFOLD_LOG stores it as refold.<p>.<door>.<sid> (Names.Stored), where p is
// the partition of the session; it stores an install record under its own subject.
// The lane of a partition is p mod the number of lanes; a lane is a durable
// consumer of its partitions and of the install records (Names.LaneFilters).
// A session-actor publishes an effect to refold.fx.<class>.<target>.<sid>.<effect>
// (Names.Effect), and a bridge settles it through the door with the name of the
// class (DoorOf).
//
// # Laws
//
//   - A name never changes: the golden test prints all of them.
//   - Functions that make names refuse text that is not a token. Functions that
//     parse names accept exactly the names that the others make.
//   - The prefix is one lower-case token. Streams and buckets have it in upper
//     case, so two prefixes share nothing.
//   - Partition is FNV-1a (32 bit) of the session id, mod 64, which is what the
//     server's {{partition(64,2)}} computes. It never changes.
//
// # Glossary
//
//   - token: the text between two dots; here 1 to 64 of A-Z a-z 0-9 _ -.
//   - door: the second token of a log subject. Permissions decide which users
//     may publish through which door.
//   - target: the provider or executor of an effect, or "-" for none.
//
// # Limits
//
// Tokens have at most 64 bytes, the prefix 32.
//
// # Testing
//
// testdata/names.golden has every name; go test -rewrite updates it.
package subjects
