package refold_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/refold/refold"
	"github.com/refold/refold/refoldtest"
)

// A session that writes a report each working day at nine in Berlin.
func ExampleSchedule() {
	ctx, t := exampleContext()
	defer t.end()
	reporter, err := refoldtest.Open(t).Agent("reporter", refold.Model(refoldtest.Model(refoldtest.Say("All is well."))))
	check(err)
	s := reporter.Session("desk")
	check(s.SetSchedule(ctx, refold.Schedule{Name: "report", Cron: "0 9 * * 1-5", Zone: "Europe/Berlin", Text: "Write the report."}))
	check(s.SetSchedule(ctx, refold.Schedule{Name: "tidy", Cron: "@daily", Text: "Tidy up.", WhenBusy: "queue"}))

	check(s.PauseSchedule(ctx, "tidy"))
	all, err := s.Schedules(ctx)
	check(err)
	berlin, err := time.LoadLocation("Europe/Berlin")
	check(err)
	for _, of := range all {
		if of.Paused != "" {
			fmt.Println(of.Name, of.Cron, "is paused by", of.Paused)
			continue
		}
		fmt.Println(of.Name, of.Cron, "fires next at", time.UnixMilli(of.Next).In(berlin).Format("15:04"))
	}
	check(s.ResumeSchedule(ctx, "tidy"))
	check(s.RemoveSchedule(ctx, "tidy"))

	var refused *refold.RejectedError
	err = s.SetSchedule(ctx, refold.Schedule{Name: "never", Cron: "0 9 31 2 *", Text: "x"})
	fmt.Println(errors.As(err, &refused), err)
	// Output:
	// report 0 9 * * 1-5 fires next at 09:00
	// tidy @daily is paused by request
	// true rejected: invalid_data: cron: never fires within five years: five fields, such as 0 9 * * 1-5 (minute, hour, day of the month, month, day of the week)
}

// A schedule as another process finds it.
func ExampleScheduleState() {
	ctx, t := exampleContext()
	defer t.end()
	reporter, err := refoldtest.Open(t).Agent("reporter", refold.Model(refoldtest.Model(refoldtest.Say("All is well."))))
	check(err)
	s := reporter.Session("desk")
	check(s.SetSchedule(ctx, refold.Schedule{Name: "report", Cron: "0 9 * * 1-5", Text: "Write the report."}))
	var all []refold.ScheduleState
	all, err = s.Schedules(ctx)
	check(err)
	fmt.Println(all[0].Name, all[0].Times(), time.UnixMilli(all[0].Next).UTC().Format("15:04"))
	// Output: report 0 9 * * 1-5 UTC 09:00
}
