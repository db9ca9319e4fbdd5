package main

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/refoldtest"
)

// The program prints what its README says, each time that it runs on a directory.
func TestFrontDoor(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(readme), "It prints:\n\n")
	want, _, _ := strings.Cut(rest, "\n\n")
	want = strings.ReplaceAll("\n"+want, "\n    ", "\n")[1:] + "\n"
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	model := refoldtest.Model(refoldtest.Calls(refoldtest.To("weather_get", place{"Bergen"})), refoldtest.Say("It rains in Bergen."))
	for range 2 {
		var out strings.Builder
		if err := run(ctx, dir, model, &out); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Errorf("got %q, want %q", out.String(), want)
		}
	}
	// Without a model's turns: the log alone answers.
	var out strings.Builder
	if err := run(ctx, dir, refoldtest.Model(), &out); err != nil || out.String() != want {
		t.Errorf("asked again: got %q (%v), want %q", out.String(), err, want)
	}
}
