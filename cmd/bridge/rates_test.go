package main

import (
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/cmd/settings"
	"github.com/refold/refold/internal/bus/bustest"
)

func TestRatesAreParsed(t *testing.T) {
	t.Parallel()
	env := settings.Environment{}
	f, _, err := parse([]string{
		"--model", "openai", "--model", "local=openai-chat:http://127.0.0.1:1/v1",
		"--rate", "openai=60/m,openai/gpt-x=10/s", "--rate", "local/a/b=c=5/h",
	}, env, io.Discard, io.Discard)
	bustest.OK(t, err)
	got, err := f.limits()
	want := []limit{
		{"openai", "", bridge.Rate{N: 60, Per: time.Minute}},
		{"openai", "gpt-x", bridge.Rate{N: 10, Per: time.Second}},
		{"local", "a/b=c", bridge.Rate{N: 5, Per: time.Hour}},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	for _, c := range []struct{ args, want string }{
		{"--rate opnai=60/m", "--rate opnai=60/m: no --model is served as opnai; served are: openai"},
		{"--rate openai=60/x", "--rate openai=60/x: write NAME=N/UNIT"},
		{"--rate openai=0/m", "--rate openai=0/m: write"},
		{"--rate openai", "--rate openai: write"},
		{"--rate openai/=1/s", "--rate openai/=1/s: write"},
		{"--rate openai=60/m,openai=1/s", "--rate openai=1/s: it has a rate already"},
		{"--breaker-faults=-1", "--breaker-faults: 0 to 1000"},
		{"--breaker-pause 1ms", "--breaker-pause: 1s to 1h"},
		{"--fair 5000", "--fair: 0 to 4096"},
	} {
		args := append([]string{"--model", "openai"}, strings.Fields(c.args)...)
		if _, _, err := parse(args, env, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.args, err, c.want)
		}
	}
}

// TestFairIsForTools: prefetched model turns would be kept from other bridges,
// and a session has only one.
func TestFairIsForTools(t *testing.T) {
	t.Parallel()
	f := flags{Concurrency: 1, Fair: 64}
	if got := len(f.options("tool/mail")); got != 2 {
		t.Errorf("tool/mail has %d options, want concurrency and fairness", got)
	}
	if got := len(f.options("llm/openai")); got != 1 {
		t.Errorf("llm/openai has %d options, want concurrency alone", got)
	}
}
