package host

import (
	"slices"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/bus"
)

func TestUnserved(t *testing.T) {
	t.Parallel()
	open := []session.ViewEffect{
		{Effect: "r1t2c1", Class: session.ClassTool, Target: "mail"},
		{Effect: "r1t2c0", Class: session.ClassTool, Target: "host"},
		{Effect: "r1t2c2", Class: session.ClassTool, Target: "mail"},
		{Effect: "w1", Class: session.ClassWake, Target: "-"},
	}
	for _, c := range []struct {
		name   string
		open   []session.ViewEffect
		served bus.Served
		sure   bool
		want   []string
	}{
		{"one is served", open, bus.Served{"tool/host": 2}, true, []string{"tool/mail"}},
		{"none is", open, nil, true, []string{"tool/host", "tool/mail"}},
		{"the name of another class", open, bus.Served{"tool/host": 1, "llm/mail": 1}, true, []string{"tool/mail"}},
		{"nobody can tell yet", open, nil, false, nil},
		{"only a wake is open", open[3:], nil, true, nil},
		{"nothing is open", nil, nil, true, nil},
	} {
		if got := unserved(c.open, func() (bus.Served, bool) { return c.served, c.sure }); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}
