package replylink_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/refold/refold/internal/replylink"
)

func TestTokensOpenWithTheirSecretUntilTheyExpire(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_000_000)
	secret, other := []byte(strings.Repeat("a", 32)), []byte(strings.Repeat("b", 32))
	want := replylink.Link{Session: "s1", Call: "r1t2c0", ArgsHash: strings.Repeat("0", 64), By: "clients", Expires: now.Add(time.Hour)}
	token := replylink.Mint(secret, want)
	if got, err := replylink.Open(secret, token, now); err != nil || got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	for name, of := range map[string]struct {
		secret []byte
		token  string
		now    time.Time
		want   error
	}{
		"another secret":  {other, token, now, replylink.ErrToken},
		"another session": {secret, strings.Replace(token, "s1.", "s2.", 1), now, replylink.ErrToken},
		"another call":    {secret, strings.Replace(token, "c0.", "c1.", 1), now, replylink.ErrToken},
		"another right":   {secret, strings.Replace(token, "clients", "approvers", 1), now, replylink.ErrToken},
		"cut":             {secret, token[:len(token)-1], now, replylink.ErrToken},
		"empty":           {secret, "", now, replylink.ErrToken},
		"no signature":    {secret, token[:strings.LastIndexByte(token, '.')], now, replylink.ErrToken},
		"expired":         {secret, token, now.Add(time.Hour), replylink.ErrExpired},
	} {
		if _, err := replylink.Open(of.secret, of.token, of.now); !errors.Is(err, of.want) {
			t.Errorf("%s: got %v, want %v", name, err, of.want)
		}
	}
}
