package cli

// The summary of `refold chaos`: it reports missed points and trials that were
// not begun, and left points are not a success.

import (
	"errors"
	"strings"
	"testing"

	"github.com/refold/refold/proof/chaos"
)

func chaosCourse(t *testing.T, name string) chaos.Course {
	t.Helper()
	course, err := chaos.ParseCourse(name)
	if err != nil {
		t.Fatal(err)
	}
	return course
}

func TestChaosLeft(t *testing.T) {
	t.Parallel()
	one := chaosCourse(t, "bridge/after/claim.r1t1/1")
	many := chaosCourse(t, "bridge/before/claim.r1t1/1&bridge/before/claim.r1t2/1&bridge/before/claim.r1t3/1")
	sum := counters{k: 1, n: 1, skip: 4}
	sum.take([]chaos.Course{one, one, one, one, one, many, one}, 9)
	sum.add(chaos.Verdict{Course: one})
	if err := sum.verdict(0); err != nil {
		t.Errorf("nothing is left: %v", err)
	}
	sum.leave([]chaos.Course{many, one})
	for what, text := range map[string]string{"the summary": sum.line(), "the error": errorText(sum.verdict(100))} {
		for _, want := range []string{"2 trials", "4 points", "--skip 5"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q, want %q in it", what, text, want)
			}
		}
	}
	if err := new(Error); !errors.As(sum.verdict(100), &err) || err.Status != Left {
		t.Errorf("got %v, want the status of what is left", sum.verdict(100))
	}
	none := counters{k: 1, n: 1}
	none.take([]chaos.Course{one}, 2)
	none.leave([]chaos.Course{one})
	if text := errorText(none.verdict(100)); !strings.Contains(text, "--skip 0") {
		t.Errorf("nothing was begun: %q", text)
	}
}

func errorText(err error) string {
	if err == nil {
		return "no error"
	}
	return err.Error()
}

func TestChaosReportsMissedPoints(t *testing.T) {
	t.Parallel()
	one := chaosCourse(t, "bridge/after/claim.r1t1/1")
	sum := counters{k: 1, n: 1}
	sum.add(chaos.Verdict{Course: one})
	if text := sum.line(); strings.Contains(text, "\nmissed") {
		t.Errorf("nothing was missed: %q", text)
	}
	for range missingShown + 2 {
		sum.add(chaos.Verdict{Course: one, Missed: one})
	}
	if text := sum.line(); !strings.Contains(text, "\nmissed: bridge/after/claim.r1t1/1, ") || !strings.Contains(text, ", and 2 more\n") {
		t.Errorf("%q does not tell what was missed", text)
	}
}
