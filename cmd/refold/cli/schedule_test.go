package cli

import (
	"strings"
	"testing"
)

// TestSchedule: a schedule is set, listed, paused, resumed and removed; what can't be is
// told before anything is published.
func TestSchedule(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	config := `{"provider":"p","model":"m"}`
	if _, errOut := w.does(statusFailed, "schedule", "set", "s1", "report", "--cron", "@daily", "--text", "x"); !strings.Contains(errOut, "the log holds no event of this session") {
		t.Errorf("of no session: got %q", errOut)
	}
	w.does(0, "run", "s1", "hi", "--no-follow", "--config", config)
	w.does(0, "schedule", "set", "s1", "report", "--cron", "0 9 * * 1-5", "--zone", "Europe/Berlin", "--text", "Write the report.", "--config", config, "--when-busy", "queue")
	w.prints(0, `^report  0 9 \* \* 1-5 Europe/Berlin  next \d{4}-\d\d-\d\d 09:00:\d\d \+0[12]00  when busy queue  no failures\n$`, "schedule", "list", "s1")
	w.does(0, "schedule", "pause", "s1", "report")
	w.prints(0, `^report .* paused: request  when busy queue`, "schedule", "list", "s1")
	w.does(0, "schedule", "resume", "s1", "report")
	w.prints(0, `^{"schedules":\[{.*"cron":"0 9 \* \* 1-5".*"next":\d+`, "schedule", "list", "s1", "--json")
	w.does(0, "schedule", "remove", "s1", "report")
	w.prints(0, `^no schedules\n$`, "schedule", "list", "s1")
	for _, c := range []struct{ args, want string }{
		{"remove s1 report", "unknown_schedule"},
		{"resume s1 report", "unknown_schedule"},
		{"set s1 report --text x --cron @every", "cron: "},
		{"set s1 report --text x --cron @daily --zone Mars/Base", `zone: there is no zone "Mars/Base"`},
		{"set s1 no.token --text x --cron @daily", "name: must be a token"},
	} {
		if _, errOut := w.does(statusFailed, append([]string{"schedule"}, strings.Fields(c.args)...)...); !strings.Contains(errOut, c.want) {
			t.Errorf("%s: got %q, want %q in it", c.args, errOut, c.want)
		}
	}
}
