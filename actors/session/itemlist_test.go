package session_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/refold/refold/actors/sentence"
	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
)

// itemsOf returns the items that an effect lists.
func itemsOf(t rapid.TB, list session.ItemList) []session.Item {
	t.Helper()
	items, err := list.Items()
	if err != nil {
		t.Fatal(err)
	}
	return items
}

// A list gives back its items, however their sequences are ordered: a steer may be
// older than the result before it.
func TestItemListGivesItsItemsBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var items []session.Item
		call := 0
		for range rapid.IntRange(0, 40).Draw(t, "items") {
			it := session.Item{
				Role: rapid.SampledFrom([]session.Role{session.RoleUser, session.RoleAssistant, session.RoleTool}).Draw(t, "role"),
				Seq:  rapid.Uint64Range(1, 1<<63).Draw(t, "seq"),
			}
			switch it.Role {
			case session.RoleAssistant:
				call = 0
			case session.RoleTool:
				it.Call = int16(call)
				call++
			}
			if rapid.Bool().Draw(t, "extra") {
				it.Code, it.Detail = rapid.String().Draw(t, "code"), sentence.Own(rapid.StringMatching(`[a-zé ]{0,40}`).Draw(t, "detail"))
				it.Edit = rapid.Uint64().Draw(t, "edit")
			}
			items = append(items, it)
		}
		payload, err := codec.Marshal(session.Generation{Items: session.ListItems(items...)})
		if err != nil {
			t.Fatal(err)
		}
		var g session.Generation
		if err := codec.Unmarshal(payload, &g); err != nil {
			t.Fatal(err)
		}
		if got := itemsOf(t, g.Items); !slices.Equal(got, items) {
			t.Fatalf("got %v, want %v", got, items)
		}
	})
}

// A later version may know more roles, and bytes may be damaged.
func TestItemListOfOthersIsRefused(t *testing.T) {
	t.Parallel()
	for want, list := range map[string]session.ItemList{
		"program is too old": {Roles: "ux", Seqs: []int64{1, 2}},
		"2 roles and 1 seq":  {Roles: "ua", Seqs: []int64{1}},
		"not in order":       {Roles: "ua", Seqs: []int64{1, 2}, Extra: []session.ItemExtra{{Item: 1, Code: "c"}, {Item: 0, Code: "c"}}},
		"that it has not":    {Roles: "u", Seqs: []int64{1}, Extra: []session.ItemExtra{{Item: 1, Code: "c"}}},
	} {
		if items, err := list.Items(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v, %v; want an error with %q", list, items, err, want)
		}
	}
}

// Every turn lists the whole transcript, so a list must be small.
func TestItemListTakesThreeBytesAnItem(t *testing.T) {
	t.Parallel()
	var items []session.Item
	for seq := uint64(1 << 30); len(items) < session.ItemsMax; seq += 40 { // other sessions publish, too
		items = append(items, session.Item{Role: session.RoleUser, Seq: seq}, session.Item{Role: session.RoleAssistant, Seq: seq + 12}, session.Item{Role: session.RoleTool, Seq: seq + 20}, session.Item{Role: session.RoleTool, Call: 1, Seq: seq + 23})
	}
	payload, err := codec.Marshal(session.ListItems(items...))
	if got := len(payload); err != nil || got > 3*len(items) {
		t.Errorf("%d items take %d bytes (%v), want at most 3 each", len(items), got, err)
	}
}
