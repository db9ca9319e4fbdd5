package cron_test

import (
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/internal/cron"
)

// local is how the times of a zone are written in these tests.
const local = "Mon 2006-01-02 15:04 -0700"

// firings returns the first n firings after a time, in the times of the zone.
func firings(t *testing.T, expression, zone, after string, n int) []string {
	t.Helper()
	table, err := cron.Parse(expression, zone)
	if err != nil {
		t.Fatal(err)
	}
	loc, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	at, err := time.ParseInLocation("2006-01-02 15:04", after, loc)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for range n {
		var ok bool
		if at, ok = table.Next(at); !ok {
			return append(all, "none")
		}
		all = append(all, at.In(loc).Format(local))
	}
	return all
}

// A time of the day that a change of summer time skips fires in the first minute after
// the gap. One that a change repeats fires once.
func TestNextOverChangesOfSummerTime(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		expression, zone, after string
		want                    []string
	}{
		"in the gap": {"30 2 * * *", "Europe/Berlin", "2026-03-28 03:00", []string{
			"Sun 2026-03-29 03:00 +0200", "Mon 2026-03-30 02:30 +0200",
		}},
		"all minutes of the gap are one": {"*/15 2 * * *", "Europe/Berlin", "2026-03-28 03:00", []string{
			"Sun 2026-03-29 03:00 +0200", "Mon 2026-03-30 02:00 +0200",
		}},
		"every hour over the gap": {"0 * * * *", "Europe/Berlin", "2026-03-29 00:30", []string{
			"Sun 2026-03-29 01:00 +0100", "Sun 2026-03-29 03:00 +0200", "Sun 2026-03-29 04:00 +0200",
		}},
		"in the overlap": {"30 2 * * *", "Europe/Berlin", "2026-10-24 03:00", []string{
			"Sun 2026-10-25 02:30 +0200", "Mon 2026-10-26 02:30 +0100",
		}},
		"every hour over the overlap": {"0 * * * *", "Europe/Berlin", "2026-10-25 00:30", []string{
			"Sun 2026-10-25 01:00 +0200", "Sun 2026-10-25 02:00 +0200", "Sun 2026-10-25 03:00 +0100",
		}},
		"a working day around both": {"0 9 * * 1-5", "Europe/Berlin", "2026-03-27 10:00", []string{
			"Mon 2026-03-30 09:00 +0200", "Tue 2026-03-31 09:00 +0200",
		}},
		"Mondays in Santiago, whose clocks change at midnight": {"0 9 * * 1", "America/Santiago", "2026-03-31 00:00", []string{
			"Mon 2026-04-06 09:00 -0400", "Mon 2026-04-13 09:00 -0400",
		}},
		"Mondays in Santiago in spring": {"0 9 * * MON", "America/Santiago", "2026-08-31 10:00", []string{
			"Mon 2026-09-07 09:00 -0300", "Mon 2026-09-14 09:00 -0300",
		}},
		"midnight that does not exist": {"0 0 * * *", "America/Santiago", "2026-09-05 12:00", []string{
			"Sun 2026-09-06 01:00 -0300", "Mon 2026-09-07 00:00 -0300",
		}},
		"midnight before the clocks are put back to it": {"30 23 * * 6", "America/Santiago", "2026-04-04 12:00", []string{
			"Sat 2026-04-04 23:30 -0300", "Sat 2026-04-11 23:30 -0400",
		}},
		"a day that does not exist": {"0 12 30 12 *", "Pacific/Apia", "2011-12-01 00:00", []string{
			"Sat 2011-12-31 00:00 +1400", "Sun 2012-12-30 12:00 +1400",
		}},
		"no zone":     {"0 9 * * *", "", "2026-03-29 10:00", []string{"Mon 2026-03-30 09:00 +0000"}},
		"Sunday is 7": {"0 9 * * 6-7", "UTC", "2026-03-27 10:00", []string{"Sat 2026-03-28 09:00 +0000", "Sun 2026-03-29 09:00 +0000"}},
		"29 February": {"0 9 29 2 *", "UTC", "2025-01-01 00:00", []string{"Tue 2028-02-29 09:00 +0000"}},
		"a word":      {"@weekly", "UTC", "2026-03-27 10:00", []string{"Sun 2026-03-29 00:00 +0000"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := firings(t, c.expression, c.zone, c.after, len(c.want))
			if strings.Join(got, "\n") != strings.Join(c.want, "\n") {
				t.Errorf("%s in %s fires at\n%s\nwant\n%s", c.expression, c.zone, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

// Last finds the firing before a time that Next finds by going through all of them.
func TestLastIsTheLatestFiring(t *testing.T) {
	t.Parallel()
	for _, expression := range []string{"* * * * *", "*/7 * * * *", "30 2 * * *", "0 9 * * 1-5", "0 0 1 1 *", "* * * 1 *"} {
		table, err := cron.Parse(expression, "Europe/Berlin")
		if err != nil {
			t.Fatal(err)
		}
		from := time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)
		for _, until := range []time.Time{
			from.Add(time.Minute), from.Add(3 * time.Hour), time.Date(2026, 3, 29, 0, 59, 0, 0, time.UTC),
			time.Date(2026, 3, 29, 1, 0, 0, 0, time.UTC), time.Date(2026, 10, 25, 1, 30, 0, 0, time.UTC), time.Date(2026, 10, 25, 0, 59, 30, 0, time.UTC),
		} {
			first, _ := table.Next(from)
			want := first
			for at := first; !at.After(until); at, _ = table.Next(at) {
				want = at
				if until.Sub(at) > 40*24*time.Hour { // the whole way would take too long
					at = until.Add(-40 * 24 * time.Hour)
				}
			}
			if got := table.Last(first, until); !got.Equal(want) && want.After(until.Add(-30*24*time.Hour)) {
				t.Errorf("%s: the last firing until %s is %s, want %s", expression, until, got, want)
			}
		}
	}
}

// Of a long down time, Last takes few steps.
func TestLastOfYears(t *testing.T) {
	t.Parallel()
	table, err := cron.Parse("* * * * *", "America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	first, until := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 6, 1, 12, 0, 30, 0, time.UTC)
	if got, want := table.Last(first, until), until.Add(-30*time.Second); !got.Equal(want) {
		t.Errorf("the last firing is %s, want %s", got, want)
	}
}

// An error names the field, says what is wrong, and gives an example.
func TestParseErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ expression, zone, want string }{
		{"", "", "cron: is empty: five fields, such as 0 9 * * 1-5 (minute, hour, day of the month, month, day of the week)"},
		{"0 9 * *", "", "cron: has 4 fields: five fields, such as 0 9 * * 1-5"},
		{"*/10 * * * * *", "", "cron: has 6 fields, and a schedule fires once a minute at most: five fields, such as 0 9 * * 1-5"},
		{"@every 10s", "", "cron: @every 10s is no time of the day: five fields, such as */30 * * * * for each half hour"},
		{"TZ=UTC 0 9 * * *", "", "cron: has a zone: give it as the zone, such as Europe/Berlin"},
		{"61 9 * * *", "", "cron: end of range (61) above maximum (59): 61: five fields, such as 0 9 * * 1-5"},
		{"0 0 30 2 *", "", "cron: never fires within five years: five fields, such as 0 9 * * 1-5"},
		{"0 9 * * 1-5", "Europe/Bonn", "zone: there is no zone \"Europe/Bonn\": a name of the IANA database, such as Europe/Berlin or UTC"},
		{"0 9 * * 1-5", "Local", "zone: there is no zone \"Local\": a name of the IANA database, such as Europe/Berlin or UTC"},
		{strings.Repeat("1,", 200) + "1 9 * * *", "", "cron: has 409 bytes, at most 256 are allowed"},
	} {
		_, err := cron.Parse(c.expression, c.zone)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("Parse(%q, %q) fails with\n%v\nwant\n%s", c.expression, c.zone, err, c.want)
		}
	}
}
