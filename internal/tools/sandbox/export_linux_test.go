package sandbox

import (
	"errors"
	"slices"
)

// NewBy is New with one of the ways to start children, as New does it where the
// better ones are not allowed.
func NewBy(c Config, means string) (*Box, Report, error) {
	c = c.withDefaults()
	b := &Box{config: c}
	for _, w := range ways() {
		if w.means == means {
			trials, clean, err := newTrial()
			if err != nil {
				return nil, Report{}, err
			}
			defer clean()
			end, err := b.try(w, trials)
			if err != nil {
				return nil, Report{}, err
			}
			b.way = w
			b.judge(*end.Found)
			return b, b.report, nil
		}
	}
	return nil, Report{}, errors.New("no such way: " + means)
}

// Means says how the box starts children.
func (b *Box) Means() string { return b.way.means }

// Means are all ways to start children, the best first.
func Means() (all []string) {
	for _, w := range ways() {
		all = append(all, w.means)
	}
	return all
}

// SystemPaths returns what every command may read.
func SystemPaths() []string { return slices.Concat(systemRead, systemFiles, systemDevices) }
