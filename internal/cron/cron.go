// Package cron computes when a schedule fires: the times of a cron expression in a time
// zone.
//
// An expression has five fields (minute, hour, day of the month, month, day of the week)
// or is a word, such as @daily. It names times as a clock on a wall shows them:
//
//   - A time that a change of summer time skips fires in the first minute after the gap.
//     Several such times are one firing.
//   - A time that a change repeats fires once, at its first occurrence.
//
// The robfig library, which reads the expressions, does neither: it skips the first and
// repeats the second. So it is given the wall's clock as a time in UTC, where nothing is
// skipped or repeated, and its result is placed in the zone here.
package cron

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // zones, where the system has none

	"github.com/robfig/cron/v3"
)

// Limits of a schedule's texts, in bytes.
const (
	ExpressionBytesMax = 256
	ZoneBytesMax       = 64
)

const (
	fields    = 5
	example   = "five fields, such as 0 9 * * 1-5 (minute, hour, day of the month, month, day of the week)"
	zoneNames = "a name of the IANA database, such as Europe/Berlin or UTC"
)

// parser reads what is left after the checks of Parse.
var parser = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

// Table is the firings of a schedule. It may be used concurrently.
type Table struct {
	wall cron.Schedule // by the wall's clock, as if that was UTC
	zone *time.Location
}

// Parse reads an expression and the name of a zone of the IANA database; an empty one
// is UTC. An error begins with `cron` or `zone`, and says what is allowed.
func Parse(expression, zone string) (*Table, error) {
	loc, err := parseZone(zone)
	if err != nil {
		return nil, err
	}
	parts := strings.Fields(expression)
	switch {
	case len(parts) == 0:
		return nil, fmt.Errorf("cron: is empty: %s", example)
	case len(expression) > ExpressionBytesMax:
		return nil, fmt.Errorf("cron: has %d bytes, at most %d are allowed", len(expression), ExpressionBytesMax)
	case strings.HasPrefix(parts[0], "TZ=") || strings.HasPrefix(parts[0], "CRON_TZ="):
		return nil, fmt.Errorf("cron: has a zone: give it as the zone, such as Europe/Berlin")
	case parts[0] == "@every":
		return nil, fmt.Errorf("cron: %s is no time of the day: five fields, such as */30 * * * * for each half hour", expression)
	case parts[0][0] == '@':
	case len(parts) > fields:
		return nil, fmt.Errorf("cron: has %d fields, and a schedule fires once a minute at most: %s", len(parts), example)
	case len(parts) < fields:
		return nil, fmt.Errorf("cron: has %d fields: %s", len(parts), example)
	default:
		parts[fields-1] = sundays(parts[fields-1])
	}
	wall, err := parser.Parse(strings.Join(parts, " "))
	if err != nil {
		return nil, fmt.Errorf("cron: %w: %s", err, example)
	}
	t := &Table{wall: wall, zone: loc}
	if _, ok := t.Next(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)); !ok {
		return nil, fmt.Errorf("cron: never fires within five years: %s", example)
	}
	return t, nil
}

func parseZone(name string) (*time.Location, error) {
	if name == "" {
		return time.UTC, nil
	}
	loc, err := time.LoadLocation(name)
	if err != nil || name == "Local" || len(name) > ZoneBytesMax {
		return nil, fmt.Errorf("zone: there is no zone %s: %s", strconv.Quote(name[:min(len(name), ZoneBytesMax)]), zoneNames)
	}
	return loc, nil
}

// sundays writes a day of the week 7 as 0, which is how the library spells Sunday.
func sundays(field string) string {
	parts := strings.Split(field, ",")
	for i, part := range parts {
		switch from, ranged := strings.CutSuffix(part, "-7"); {
		case part == "7":
			parts[i] = "0"
		case ranged && from == "6":
			parts[i] = "6,0"
		case ranged && from == "7":
			parts[i] = "0"
		case ranged && from != "":
			parts[i] = from + "-6,0"
		}
	}
	return strings.Join(parts, ",")
}

// Next returns the first firing after a time, to the minute. It is false if there is
// none within five years.
func (t *Table) Next(after time.Time) (time.Time, bool) {
	wall := onWall(after.In(t.zone))
	for {
		wall = t.wall.Next(wall)
		if wall.IsZero() {
			return time.Time{}, false
		}
		if at := t.place(wall); at.After(after) { // else it is within a gap or an overlap that has fired
			return at, true
		}
	}
}

// Last returns the latest firing until a time, of those from first on. It is first if
// there is none later.
func (t *Table) Last(first, until time.Time) time.Time {
	// Next(at) is not after until for all at before the latest firing, and for no later one.
	low, high := first, until
	for high.Sub(low) > time.Minute {
		middle := low.Add(high.Sub(low) / 2)
		if at, ok := t.Next(middle); ok && !at.After(until) {
			low = at
		} else {
			high = middle
		}
	}
	if at, ok := t.Next(low); ok && !at.After(until) {
		return at
	}
	return low
}

// onWall returns what a clock on the wall shows at a time, as a time in UTC.
func onWall(at time.Time) time.Time {
	return time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), at.Second(), 0, time.UTC)
}

// place returns when the wall's clock shows a time for the first time, else the end of
// the gap that skips it.
func (t *Table) place(wall time.Time) time.Time {
	at := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), 0, 0, t.zone)
	start, end := at.ZoneBounds()
	if shown := onWall(at); !shown.Equal(wall) { // it is skipped, and at is before the gap or behind it
		if shown.After(wall) {
			return start
		}
		return end
	}
	if start.IsZero() {
		return at
	}
	_, before := start.Add(-time.Second).Zone()
	_, now := at.Zone()
	if earlier := at.Add(time.Duration(now-before) * time.Second); earlier.Before(start) && onWall(earlier).Equal(wall) {
		return earlier
	}
	return at
}
