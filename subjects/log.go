package subjects

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/refold/refold/actors/session"
)

// Partitions is the number of partitions of the log. It can never change, since
// stored subjects have the partition.
const Partitions = 64

// LanesDefault is the default number of lanes.
const LanesDefault = 8

// Partition returns the partition of a session: FNV-1a (32 bit) of its id,
// mod Partitions.
func Partition(sid string) int {
	h := fnv.New32a()
	h.Write([]byte(sid)) // a hash.Hash never fails
	return int(h.Sum32() % Partitions)
}

// Lane returns the lane of a partition among LanesDefault lanes.
func Lane(partition int) int { return LaneOf(partition, LanesDefault) }

// LaneOf returns the lane of a partition among count lanes.
func LaneOf(partition, count int) int { return partition % count }

// LaneName returns the name of a lane's consumer: l0, l1, ….
func LaneName(lane int) string { return "l" + strconv.Itoa(lane) }

// ParseLaneName is the inverse of LaneName; ok is false for any other name.
func ParseLaneName(name string) (lane int, ok bool) {
	digits, found := strings.CutPrefix(name, "l")
	lane, err := strconv.Atoi(digits)
	if !found || err != nil || lane < 0 || LaneName(lane) != name {
		return 0, false
	}
	return lane, true
}

// LaneGroup is a lane's priority group: the client pinned in it owns the lane.
const LaneGroup = "owner"

// LaneFilters returns the filters of a lane among count lanes: its partitions, and
// the install records.
func (n Names) LaneFilters(lane, count int) []string {
	var all []string
	for p := lane; p < Partitions; p += count {
		all = append(all, n.join(strconv.Itoa(p), "*", "*"))
	}
	return append(all, n.Install())
}

// Install is the subject to which install records are published, and under which they
// are stored.
func (n Names) Install() string { return n.prefix + ".install" }

// Log returns the subject to which an event is published: refold.<door>.<sid>, or
// refold.install for DoorInstall with an empty sid.
func (n Names) Log(door session.Door, sid string) (string, error) {
	if door == session.DoorInstall {
		return n.install(sid)
	}
	return n.checked(validDoorSession(door, sid), string(door), sid)
}

// Stored returns the subject under which the log holds an event:
// refold.<p>.<door>.<sid>, or refold.install for DoorInstall.
func (n Names) Stored(door session.Door, sid string) (string, error) {
	if door == session.DoorInstall {
		return n.install(sid)
	}
	return n.checked(validDoorSession(door, sid), strconv.Itoa(Partition(sid)), string(door), sid)
}

// Session returns the filter of a session's stored events: refold.<p>.*.<sid>.
func (n Names) Session(sid string) (string, error) {
	return n.checked(ValidSession(sid), strconv.Itoa(Partition(sid)), "*", sid)
}

// ParseStored parses a subject that Stored made. Its error says why another subject is
// refused. Anybody may publish to the log, so a reader skips and logs a message with
// such a subject.
func (n Names) ParseStored(subject string) (session.Door, string, error) {
	if subject == n.Install() {
		return session.DoorInstall, "", nil
	}
	rest, ours := strings.CutPrefix(subject, n.prefix+".")
	partition, rest, _ := strings.Cut(rest, ".")
	first, sid, found := strings.Cut(rest, ".")
	if !ours || !found || strings.Contains(sid, ".") {
		return "", "", fmt.Errorf("subjects: %q is no stored event: want %s.<partition>.<door>.<session>", subject, n.prefix)
	}
	door := session.Door(first)
	if err := validDoorSession(door, sid); err != nil {
		return "", "", err
	}
	if want := strconv.Itoa(Partition(sid)); partition != want {
		return "", "", fmt.Errorf("subjects: %q has partition %s, but %s is the session's", subject, partition, want)
	}
	return door, sid, nil
}

func (n Names) install(sid string) (string, error) {
	if sid != "" {
		return "", fmt.Errorf("subjects: an install record has no session, got %q", sid)
	}
	return n.Install(), nil
}

func validDoorSession(door session.Door, sid string) error {
	return cmp.Or(ValidDoor(door), ValidSession(sid))
}
