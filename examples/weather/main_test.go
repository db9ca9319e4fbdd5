package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/bridge/bridgetest"
	"github.com/refold/refold/bridge/function"
	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/devserver"
	"github.com/refold/refold/internal/llm/scripted"
)

// TestWeather: the program prints a record and serves its tools, and a session
// of that record uses both of them; a second session has them in a registry of
// its own.
func TestWeather(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var record bytes.Buffer
	if err := run(ctx, []string{"-record"}, nil, &record); err != nil {
		t.Fatal(err)
	}
	var again bytes.Buffer
	if err := run(ctx, []string{"-record", "-base"}, &record, &again); err != nil {
		t.Fatal(err)
	}
	model, err := scripted.Load("model.yaml")
	if err != nil {
		t.Fatal(err)
	}
	server, err := devserver.Start(ctx, devserver.Options{Dir: t.TempDir(), Install: again.Bytes(), Serve: func(b *bridge.Bridge) error {
		return b.Model("scripted", scripted.NewModel(model))
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	serving, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	var said bytes.Buffer
	go func() { ended <- run(serving, []string{"-nats", server.URL()}, nil, &said) }()

	c, err := client.Connect(ctx, client.Options{URL: server.URL()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"Done: warning 1 is sent to Bergen: Take an umbrella.", "Done: warning 2 is sent to Bergen: Take an umbrella."}
	if !strings.Contains(string(readme), "    "+want[0]) {
		t.Errorf("README.md does not say that it answers %q", want[0])
	}
	for i, sid := range []string{"s1", "s2"} {
		if sid == "s2" { // by a registry of its own, which is the same here
			specs, err := function.Specs(newStation().tools()...)
			if err != nil {
				t.Fatal(err)
			}
			seq, err := c.SetRegistry(ctx, sid, specs, "")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Taken(ctx, sid, seq); err != nil {
				t.Fatal(err)
			}
		}
		from, err := c.LastNotice(ctx)
		if err != nil {
			t.Fatal(err)
		}
		seq, err := c.Run(ctx, sid, "Warn Bergen if it rains.", client.RunOptions{})
		if err != nil {
			t.Fatal(err)
		}
		end, err := c.End(ctx, sid, seq, from+1, nil)
		if err != nil || end.Output == nil || end.Output.Text != want[i] {
			t.Errorf("%s: got %+v, %v, want %q", sid, end, err, want[i])
		}
	}
	stop()
	if err := <-ended; err != nil || said.String() != "serving [tool/weather]\n" {
		t.Errorf("the program ended with %v and said %q", err, said.String())
	}
}

// TestTools is a unit test of the tools: one call at a time.
func TestTools(t *testing.T) {
	t.Parallel()
	s := newStation()
	get, warn := s.tools()[0], s.tools()[1]
	for _, c := range []struct {
		tool      *function.Function
		arguments any
		shown     string
	}{
		{get, forecastArguments{City: "Oslo", Days: 3}, `{"city":"Oslo","days":["sun","clouds","sun"]}`},
		{get, forecastArguments{City: "Oslo"}, `{"city":"Oslo","days":["sun"]}`},
		{get, forecastArguments{City: "Atlantis"}, "error: unknown_city: ask for Bergen or Oslo"},
		{get, `{"city":"Oslo","days":4}`, `error: invalid_arguments: /days: is at most 3`},
		{warn, warnArguments{"Oslo", "Hats."}, "warning 1 is sent to Oslo: Hats."},
		{warn, warnArguments{"Oslo", "Hats."}, "warning 1 is sent to Oslo: Hats."}, // the same call again
		{warn, warnArguments{"Atlantis", "Swim."}, "error: unknown_city: nobody is there to be warned"},
	} {
		if r := bridgetest.Call(t, c.tool, c.arguments); r.Shown != c.shown {
			t.Errorf("%s %v: shown %q, want %q", c.tool.ToolID(), c.arguments, r.Shown, c.shown)
		}
	}
}
