package session

import (
	"errors"
	"fmt"
	"strings"
)

// ItemList lists items of a transcript in two or three bytes each. A list of whole
// items takes 40 to 60 bytes each, and every turn has one: the effects of a session
// of 10,000 turns took 865 MB.
type ItemList struct {
	Extra []ItemExtra `msgpack:"extra,omitempty"` // what some of the items also have, in the order of the items
	Roles string      `msgpack:"roles"`           // a character for each item: see roleChars
	Seqs  []int64     `msgpack:"seqs"`            // for each item its sequence, less that of the item before
}

// ItemExtra is what an item has beside its role and sequence.
type ItemExtra struct {
	Code   string `msgpack:"code,omitempty"`
	Detail string `msgpack:"detail,omitempty"`
	Edit   uint64 `msgpack:"edit,omitempty"`
	Item   int    `msgpack:"item"` // index in the list
}

// roleChars has the character of each role in a list.
var roleChars = [...]struct {
	char byte
	role Role
}{{'a', RoleAssistant}, {'t', RoleTool}, {'u', RoleUser}}

// ListItems lists items. Of the items with role tool after an answer, the first is
// the result of the answer's first call, and so on.
func ListItems(items ...Item) ItemList {
	list := ItemList{Seqs: make([]int64, len(items))}
	var roles strings.Builder
	roles.Grow(len(items))
	var before uint64
	for i := range items {
		it := &items[i]
		for _, r := range roleChars {
			if r.role == it.Role {
				roles.WriteByte(r.char)
			}
		}
		list.Seqs[i] = int64(it.Seq - before)
		before = it.Seq
		if it.Code != "" || it.Detail != "" || it.Edit != 0 {
			list.Extra = append(list.Extra, ItemExtra{Code: it.Code, Detail: it.Detail, Edit: it.Edit, Item: i})
		}
	}
	list.Roles = roles.String()
	return list
}

// Items returns the items of a list. It fails if the list comes from a later
// version, which has other roles, or is damaged.
func (l ItemList) Items() ([]Item, error) {
	if len(l.Roles) != len(l.Seqs) {
		return nil, fmt.Errorf("the list has %d roles and %d sequences", len(l.Roles), len(l.Seqs))
	}
	items, extra, seq, call := make([]Item, len(l.Seqs)), l.Extra, uint64(0), 0
	for i := range items {
		it := &items[i]
		for _, r := range roleChars {
			if r.char == l.Roles[i] {
				it.Role = r.role
			}
		}
		seq += uint64(l.Seqs[i])
		it.Seq = seq
		switch it.Role {
		case "":
			return nil, fmt.Errorf("the item of sequence %d has the role %q: this program is too old", seq, l.Roles[i])
		case RoleTool:
			it.Call = call
			call++
		case RoleAssistant:
			call = 0
		case RoleUser:
		}
		if len(extra) > 0 && extra[0].Item == i {
			it.Code, it.Detail, it.Edit = extra[0].Code, extra[0].Detail, extra[0].Edit
			extra = extra[1:]
		}
	}
	if len(extra) > 0 {
		return nil, errors.New("the list has something of an item that it has not, or not in order")
	}
	return items, nil
}
