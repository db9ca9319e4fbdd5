package webhook

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/replylink"
)

// A webhook with reply links gets the path at which the call is answered, and any other
// gets the notice as it is.
func TestReplyRequestedBringsALink(t *testing.T) {
	t.Parallel()
	secret := []byte(strings.Repeat("s", 32))
	hash := strings.Repeat("a", 64)
	const deadline = 1_763_802_000_000
	payload := []byte(`{"v":1,"n":3,"type":"ReplyRequested","session":"acme-s1","seq":4,"at":1,"data":{"call":"r1t1c0","tool_id":"x","tool_name":"x","arguments":"{}","args_hash":"` + hash + `","by":"clients","deadline":1763802000000}}`)
	hooks := []Hook{
		{Name: "with", Events: []string{session.NoticeReplyRequested}, Scope: "acme-", ReplyLinks: true},
		{Name: "without", Events: []string{session.NoticeReplyRequested}, Scope: "acme-"},
	}
	if err := SignLinks(hooks, nil); err == nil || !strings.Contains(err.Error(), "with has reply_links") {
		t.Errorf("without a secret: got %v", err)
	}
	if err := SignLinks(hooks, secret); err != nil {
		t.Fatal(err)
	}
	path := func(h *Hook) string {
		var n struct {
			Data struct {
				Path string `json:"reply_path"`
				Hash string `json:"args_hash"`
			} `json:"data"`
		}
		all := h.notices("acme-s1", "", payload)
		if len(all) != 1 || json.Unmarshal(all[0].body, &n) != nil || n.Data.Hash != hash {
			t.Fatalf("%s: got %v", h.Name, all)
		}
		return n.Data.Path
	}
	if got := path(&hooks[1]); got != "" {
		t.Errorf("without reply_links: got %q", got)
	}
	token, ok := strings.CutPrefix(path(&hooks[0]), "/v1/replies/")
	want := replylink.Link{Session: "acme-s1", Call: "r1t1c0", ArgsHash: hash, By: "clients", Expires: time.UnixMilli(deadline)}
	if link, err := replylink.Open(secret, token, time.UnixMilli(1)); !ok || err != nil || link != want {
		t.Errorf("got %+v, %v; want %+v", link, err, want)
	}
}
