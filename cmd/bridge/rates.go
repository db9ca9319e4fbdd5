package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/internal/llm/provider"
)

// limit is one part of --rate: NAME=N/UNIT, or NAME/MODEL=N/UNIT.
type limit struct {
	name, model string
	rate        bridge.Rate
}

// units are the units of time of rates.
var units = map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour}

// errRate shows how to write a rate.
var errRate = errors.New("write NAME=N/UNIT or NAME/MODEL=N/UNIT, with s, m, h or d for the unit, as in openai=60/m")

func parseLimit(text string) (limit, error) {
	at := strings.LastIndexByte(text, '=') // a model's name may contain one
	if at < 0 {
		return limit{}, errRate
	}
	l := limit{}
	l.name, l.model, _ = strings.Cut(text[:at], "/")
	count, unit, _ := strings.Cut(text[at+1:], "/")
	n, err := strconv.Atoi(count)
	per, known := units[unit]
	if err != nil || !known || n < 1 || n > 1_000_000 || l.name == "" || strings.HasSuffix(text[:at], "/") {
		return limit{}, errRate
	}
	l.rate = bridge.Rate{N: n, Per: per}
	return l, nil
}

// limits parses --rate. Its error has every problem.
func (f *flags) limits() (all []limit, err error) {
	var names []string
	for _, text := range f.Models {
		names = append(names, parseOffer(text).name)
	}
	var wrong []error
	for _, text := range f.Rates {
		l, err := parseLimit(text)
		switch {
		case err != nil:
		case !slices.Contains(names, l.name):
			err = fmt.Errorf("no --model is served as %s; served are: %s", l.name, strings.Join(names, ", "))
		case slices.ContainsFunc(all, func(other limit) bool { return other.name == l.name && other.model == l.model }):
			err = errors.New("it has a rate already")
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("--rate %s: %w", text, err))
			continue
		}
		all = append(all, l)
	}
	return all, errors.Join(wrong...)
}

// optionsOf returns the options with which to serve a model.
func (f *flags) optionsOf(of offer) []bridge.ServeOption {
	options := f.options("llm/" + of.name)
	limits, _ := f.limits() // its problems were reported before
	for _, l := range limits {
		if l.name == of.name {
			options = append(options, bridge.Limit(l.model, l.rate))
		}
	}
	if _, ofNetwork := provider.Of(of.kind); ofNetwork && f.BreakerFaults > 0 {
		options = append(options, bridge.Breaker(f.BreakerFaults, f.BreakerPause))
	}
	return options
}

// options returns the options of any target.
func (f *flags) options(target string) []bridge.ServeOption {
	options := []bridge.ServeOption{bridge.Concurrency(f.Concurrency)}
	if first, _ := f.priorities(); first[target] != 0 { // its problems were reported before
		options = append(options, bridge.Priority(first[target]))
	}
	if f.Fair > 0 && strings.HasPrefix(target, "tool/") { // a session has only one generation open
		options = append(options, bridge.Fair(f.Fair))
	}
	return options
}
