package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// errPriority shows how to write a priority.
var errPriority = errors.New("write TARGET=N, with N from -100 to 100, as in llm/openai=2")

// priorities parses --priority, by target. Its error has every problem.
func (f *flags) priorities() (map[string]int, error) {
	var served []string
	for _, text := range f.Models {
		served = append(served, "llm/"+parseOffer(text).name)
	}
	for _, text := range f.Tools {
		served = append(served, "tool/"+parseOffer(text).name)
	}
	all := make(map[string]int)
	var wrong []error
	for _, text := range f.Priorities {
		target, number, _ := strings.Cut(text, "=")
		n, err := strconv.Atoi(number)
		_, twice := all[target]
		switch {
		case err != nil || n < -100 || n > 100:
			err = errPriority
		case !slices.Contains(served, target):
			err = fmt.Errorf("%s is not served here; served are: %s", target, strings.Join(served, ", "))
		case twice:
			err = errors.New("it has a priority already")
		case f.Slots == 0:
			err = errors.New("targets that share no slots don't wait for one another: set with --slots how many they share")
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("--priority %s: %w", text, err))
			continue
		}
		all[target] = n
	}
	return all, errors.Join(wrong...)
}
