package subjects

import (
	"slices"
	"strings"

	"github.com/refold/refold/actors/session"
)

// DefaultPrefix begins every subject unless the operator chooses another.
const DefaultPrefix = "refold"

// Every session's door, and every class of effects that bridges carry out, in the
// order of the docs.
var doors, classes = doorsAndClasses()

func doorsAndClasses() (doors []session.Door, classes []session.Class) {
	doors = []session.Door{session.DoorIn, session.DoorCtl, session.DoorApprove, session.DoorChild}
	for _, c := range session.Classes() {
		doors = append(doors, DoorOf(c.Class))
		if c.Bridged {
			classes = append(classes, c.Class)
		}
	}
	return doors, classes
}

// Doors returns every door of a session. The caller owns the slice.
func Doors() []session.Door { return slices.Clone(doors) }

// Classes returns every class of effects that bridges carry out: all but wakes,
// which are message schedules. The caller owns the slice.
func Classes() []session.Class { return slices.Clone(classes) }

// DoorOf returns the door through which effects of class are settled.
func DoorOf(class session.Class) session.Door { return session.Door(class) }

// Names makes the names under one prefix. The zero value is not usable.
type Names struct {
	prefix string // refold
	upper  string // REFOLD
}

// New returns the names under prefix; empty means DefaultPrefix. A prefix is
// 1 to 32 of a-z, 0-9, _ and -, beginning with a letter.
func New(prefix string) (Names, error) {
	if prefix == "" {
		prefix = DefaultPrefix
	}
	if err := validPrefix(prefix); err != nil {
		return Names{}, err
	}
	return Names{prefix: prefix, upper: strings.ToUpper(prefix)}, nil
}

// Prefix returns the prefix.
func (n Names) Prefix() string { return n.prefix }

// LogStream holds every event.
func (n Names) LogStream() string { return n.upper + "_LOG" }

// EffectsStream holds effects and claims.
func (n Names) EffectsStream() string { return n.upper + "_FX" }

// PacksStream holds published versions of packs.
func (n Names) PacksStream() string { return n.upper + "_PACKS" }

// NoticesStream holds notices.
func (n Names) NoticesStream() string { return n.upper + "_OUT" }

// DeadStream is the stream of dead letters: notices that no receiver of a webhook took.
func (n Names) DeadStream() string { return n.upper + "_DEAD" }

// ErasedStream is the ledger of erased messages.
func (n Names) ErasedStream() string { return n.upper + "_ERASED" }

// TimersStream holds message schedules and the due messages that they send.
func (n Names) TimersStream() string { return n.upper + "_TIMERS" }

// SnapshotsBucket is the key-value bucket of snapshots and quarantines.
func (n Names) SnapshotsBucket() string { return n.upper + "_SNAPSHOTS" }

// BlobsBucket is the object store of blobs.
func (n Names) BlobsBucket() string { return n.upper + "_BLOBS" }

// SnapshotsStream is the stream under the key-value bucket.
func (n Names) SnapshotsStream() string { return "KV_" + n.SnapshotsBucket() }

// BlobsStream is the stream under the object store.
func (n Names) BlobsStream() string { return "OBJ_" + n.BlobsBucket() }

// Streams returns every stream, those under buckets included.
func (n Names) Streams() []string {
	return []string{
		n.LogStream(), n.EffectsStream(), n.NoticesStream(), n.TimersStream(),
		n.SnapshotsStream(), n.BlobsStream(), n.PacksStream(), n.DeadStream(), n.ErasedStream(),
	}
}

// StreamSubjects returns the subjects that a stream of Streams stores, nil for any
// other name.
func (n Names) StreamSubjects(stream string) []string {
	switch stream {
	case n.LogStream():
		all := make([]string, 0, len(doors)+1)
		for _, d := range doors {
			all = append(all, n.join(string(d), "*"))
		}
		return append(all, n.Install())
	case n.EffectsStream():
		all := make([]string, 0, len(classes)+2)
		for _, c := range classes {
			all = append(all, n.join("fx", string(c), "*", "*", "*"))
		}
		return append(all, n.join("fx", claimToken, "*", "*", "*", "*"), n.join("fx", claimToken, "*", "*", "*", "*", "*"))
	case n.PacksStream():
		return []string{n.PackAll(), n.PackSignatures()}
	case n.DeadStream():
		return []string{n.DeadAll()}
	case n.ErasedStream():
		return []string{n.ErasedAll()}
	case n.NoticesStream():
		return []string{n.OutAll()}
	case n.TimersStream():
		return []string{n.TimersAll(), n.DueAll()}
	case n.SnapshotsStream():
		return []string{"$KV." + n.SnapshotsBucket() + ".>"}
	case n.BlobsStream():
		return []string{"$O." + n.BlobsBucket() + ".C.>", "$O." + n.BlobsBucket() + ".M.>"}
	default:
		return nil
	}
}

// LogTransform returns source and destination of the transform from published to
// stored subjects. An install record does not match the source, since it has no
// session, and keeps its subject.
func (n Names) LogTransform() (source, destination string) {
	return n.join("*", "*"), n.join("{{partition(64,2)}}", "{{wildcard(1)}}", "{{wildcard(2)}}")
}

// ServiceName is the name under which a daemon of a kind registers as a micro service.
func (n Names) ServiceName(kind string) string { return n.prefix + "-" + kind }

// ServiceStats is the subject on which one daemon of a kind answers with its own
// counts: $SRV.STATS.<service>.<instance>. Micro services answer on subjects of this
// form, so it needs no further permission.
func (n Names) ServiceStats(kind, instance string) (string, error) {
	if err := ValidInstance(instance); err != nil {
		return "", err
	}
	return "$SRV.STATS." + n.ServiceName(kind) + "." + instance, nil
}

// checked returns the subject with these tokens, or err if it is not nil.
func (n Names) checked(err error, tokens ...string) (string, error) {
	if err != nil {
		return "", err
	}
	return n.join(tokens...), nil
}

func (n Names) join(tokens ...string) string {
	size := len(n.prefix)
	for _, t := range tokens {
		size += 1 + len(t)
	}
	var b strings.Builder // one allocation, since every message needs a subject
	b.Grow(size)
	b.WriteString(n.prefix)
	for _, t := range tokens {
		b.WriteByte('.')
		b.WriteString(t)
	}
	return b.String()
}
