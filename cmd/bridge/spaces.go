package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/refold/refold/bridge"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/internal/spacefiles"
)

// byName reads the spaces of one target, each with its own reader.
type byName map[string]executor.SpaceReader

// ReadSpace reads the requested space.
func (b byName) ReadSpace(ctx context.Context, r executor.SpaceRequest) (executor.SpaceContent, error) {
	reader, ok := b[r.Space]
	if !ok {
		reader, ok = b[spacefiles.AnySpace]
	}
	if !ok {
		return executor.SpaceContent{}, &executor.Error{
			Code:   "space_unknown",
			Detail: fmt.Sprintf("this bridge does not read the space %s for this target, only %s: name it in the file of --spaces", r.Space, strings.Join(slices.Sorted(maps.Keys(b)), ", ")),
		}
	}
	return reader.ReadSpace(ctx, r)
}

// serveSpaces registers the targets of the file of --spaces with b.
func serveSpaces(b *bridge.Bridge, c *spacefiles.Config, f *flags) error {
	if c == nil {
		return nil
	}
	var all []error
	for _, target := range slices.Sorted(maps.Keys(c.Targets)) {
		readers := byName{}
		for name, s := range c.Targets[target].Spaces {
			noScan := s.Scan != nil && !*s.Scan
			switch {
			case s.Packs:
				readers[name] = bridge.Published{Bridge: b}
			case s.Dir != "":
				readers[name] = bridge.Folder{Dir: s.Dir, NoScan: noScan}
			default:
				readers[name] = bridge.Bucket{Bridge: b, Name: s.Bucket, Prefix: s.Prefix, NoScan: noScan}
			}
		}
		all = append(all, b.Space(target, readers, f.options("space/"+target)...))
	}
	return errors.Join(all...)
}
