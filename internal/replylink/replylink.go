// Package replylink makes and reads tokens that let somebody without a login answer one
// call.
//
// A token names a session, a call, the hash of its arguments, who may answer and when it
// expires, and ends with an HMAC-SHA256 under a key that only the servers of the HTTP API
// have. It is no secret store: the session takes the first answer, so a token is good for
// one. A new secret ends all tokens of the old one.
package replylink

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/refold/refold/planner"
)

// Link is what a token is good for.
type Link struct {
	Session  string // without a dot, as all names of sessions
	Call     string // r1t2c0
	ArgsHash string // of the arguments that are answered
	By       string // planner.ByApprovers or planner.ByClients
	Expires  time.Time
}

// Errors of Open.
var (
	ErrToken   = errors.New("it is no token of this server, or its secret has changed")
	ErrExpired = errors.New("it has expired")
)

// purpose keeps these tokens apart from all else that a server signs with its secret.
const purpose = "refold reply link 1\n"

// Mint returns the token of a link. It has only characters that stand for themselves in a
// path.
func Mint(secret []byte, l Link) string {
	text := strings.Join([]string{l.Session, l.Call, l.ArgsHash, l.By, strconv.FormatInt(l.Expires.UnixMilli(), 10)}, ".")
	return text + "." + base64.RawURLEncoding.EncodeToString(mac(secret, text))
}

// Open returns what a token is good for. The error is ErrToken or ErrExpired.
func Open(secret []byte, token string, now time.Time) (Link, error) {
	at := strings.LastIndexByte(token, '.')
	if at < 0 {
		return Link{}, ErrToken
	}
	given, err := base64.RawURLEncoding.DecodeString(token[at+1:])
	if err != nil || !hmac.Equal(given, mac(secret, token[:at])) {
		return Link{}, ErrToken
	}
	parts := strings.Split(token[:at], ".")
	if len(parts) != 5 || parts[3] != planner.ByApprovers && parts[3] != planner.ByClients {
		return Link{}, ErrToken
	}
	ms, err := strconv.ParseInt(parts[4], 10, 64)
	if err != nil {
		return Link{}, fmt.Errorf("%w: %w", ErrToken, err)
	}
	l := Link{Session: parts[0], Call: parts[1], ArgsHash: parts[2], By: parts[3], Expires: time.UnixMilli(ms)}
	if !now.Before(l.Expires) {
		return l, ErrExpired
	}
	return l, nil
}

func mac(secret []byte, text string) []byte {
	h := hmac.New(sha256.New, secret)
	_, _ = h.Write([]byte(purpose + text)) // never fails
	return h.Sum(nil)
}
