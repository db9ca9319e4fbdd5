package session

import (
	"slices"
	"strconv"
	"strings"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// factsSet sets and removes facts, all of them or none.
func (s *State) factsSet(b *FactsSet) *refusal {
	facts := slices.Clone(s.Facts)
	for _, pair := range b.Facts {
		var value *string
		if err := codec.Decode(pair.Value, &value); err != nil {
			return refuse(RejectInvalidData, "facts: "+quoted(pair.Key)+" is text or null")
		}
		switch {
		case pair.Key == "" || len(pair.Key) > FactNameBytesMax:
			return refuse(RejectInvalidData, "facts: a name is 1 to "+strconv.Itoa(FactNameBytesMax)+" bytes")
		case value != nil && len(*value) > FactValueBytesMax:
			return refuse(RejectLimitExceeded, "facts: "+quoted(pair.Key)+" has at most "+strconv.Itoa(FactValueBytesMax)+" bytes")
		}
		at, found := slices.BinarySearchFunc(facts, pair.Key, func(f planner.Fact, name string) int {
			return strings.Compare(f.Name, name)
		})
		switch {
		case value == nil && found:
			facts = slices.Delete(facts, at, at+1)
		case value != nil && found:
			facts[at].Value = *value
		case value != nil:
			facts = slices.Insert(facts, at, planner.Fact{Name: pair.Key, Value: *value})
		}
	}
	if len(facts) > FactsMax {
		return refuse(RejectLimitExceeded, "facts: a session has at most "+strconv.Itoa(FactsMax))
	}
	s.Facts, s.toolsMoved = facts, true
	return nil
}
