package scenario

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/refold/refold/actors/session"
)

// defaultCron is the expression of a schedule that names none. The fold does not read it.
const defaultCron = "0 9 * * *"

// firstClock is the clock of a session without events: about when the tests of the fold
// begin.
const firstClock = 1_000_000

// readSchedule parses what operators say of schedules: set NAME "text" next=+1h, remove
// NAME, pause NAME, resume NAME next=+1h. at= is the view's clock if absent, or so much
// later; next= is so much after at.
func readSchedule(rest string, view []session.View) (Action, error) {
	verb, rest := cutWord(rest)
	typ := map[string]string{
		"set": session.TypeScheduleSet, "remove": session.TypeScheduleRemoved, "pause": session.TypeSchedulePause, "resume": session.TypeScheduleResume,
	}[verb]
	words, err := fields(rest)
	if err != nil || typ == "" || len(words) == 0 {
		return Action{}, fmt.Errorf("scenario: schedule set|remove|pause|resume NAME …, not %s %q: %w", verb, rest, err)
	}
	data := map[string]any{"name": words[0].text}
	words = words[1:]
	clock := int64(firstClock)
	if len(view) > 0 {
		clock = max(clock, view[0].Clock)
		if sc := scheduleOf(view[0], func(sc session.Schedule) bool { return sc.Name == data["name"] }); verb == "resume" && sc != nil {
			data["rev"] = sc.Rev
		}
	}
	if verb == "set" {
		data["cron"] = defaultCron
		if len(words) > 0 && words[0].key == "" {
			data["input"], words = map[string]any{"text": words[0].text}, words[1:]
		}
	}
	if verb == "set" || verb == "resume" {
		data["at"] = clock
	}
	return scheduleEvent(typ, session.DoorCtl, data, words)
}

// readFired parses the firing of a schedule, which has an open wake: fire NAME next=+24h. at= is the time that the
// view's schedule expects if absent, or so much later; next= is so much after at, or none.
func readFired(rest string, view []session.View) (Action, error) {
	name, rest := cutWord(rest)
	words, err := fields(rest)
	if err != nil {
		return Action{}, err
	}
	effect := "w1"
	data := map[string]any{"effect": effect, "name": name, "rev": 1, "at": int64(firstClock)}
	if len(view) > 0 {
		for _, e := range view[0].Open {
			if sc := scheduleOf(view[0], isDue(e)); sc != nil && sc.Name == name {
				effect = e.Effect
				data["effect"], data["rev"], data["at"] = effect, sc.Rev, sc.Next
			}
		}
	}
	a, err := scheduleEvent(session.TypeScheduleFired, session.DoorWake, data, words)
	a.Settles = effect
	return a, err
}

// scheduleEvent returns an event about a schedule, with the fields that words give.
func scheduleEvent(typ string, door session.Door, data map[string]any, words []word) (Action, error) {
	for _, w := range words {
		switch w.key {
		case "":
			return Action{}, fmt.Errorf("scenario: a schedule: unknown %q", w.text)
		case "via":
			door = session.Door(w.text)
		case "rev":
			data["rev"] = json.Number(w.text)
		case "at", "next":
			from, _ := data["at"].(int64)
			after, err := parseSpan(strings.TrimPrefix(w.text, "-"))
			if err != nil {
				return Action{}, err
			}
			if strings.HasPrefix(w.text, "-") {
				after = -after
			}
			data[w.key] = from + after
		default:
			data[w.key] = valueOf(w)
		}
	}
	return event(door, typ, data)
}

func scheduleOf(v session.View, is func(session.Schedule) bool) *session.Schedule {
	for i := range v.Schedules {
		if is(v.Schedules[i]) {
			return &v.Schedules[i]
		}
	}
	return nil
}

// isDue reports whether a wake is that of a schedule.
func isDue(e session.ViewEffect) func(session.Schedule) bool {
	return func(sc session.Schedule) bool { return e.Class == session.ClassWake && sc.Due == e.Deadline }
}

// schedulesText lists the schedules of a view, with the time of their expression from the
// session's clock on, to the second.
func schedulesText(v session.View) string {
	if len(v.Schedules) == 0 {
		return " none"
	}
	text := ""
	for i := range v.Schedules {
		sc := &v.Schedules[i]
		text += " " + sc.Name
		switch {
		case sc.Paused != "":
			text += " paused (" + sc.Paused + ")"
		default:
			text += " at " + strconv.FormatInt(sc.Next, 10)
		}
		if sc.Failures > 0 {
			text += ", " + count(int(sc.Failures), "failure")
		}
	}
	return text
}
