package web

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
)

// handle is what a client has in place of a blob's hash: whoever knows a hash could have
// a model read it. It is good for one session, until it expires.
type handle struct {
	Session string          `json:"s"`
	Expires int64           `json:"e"` // Unix seconds
	Part    session.Content `json:"p"`
}

// handleGood is how long a handle is good.
const handleGood = 24 * time.Hour

// sign returns the text of a handle.
func (s *server) sign(h handle) (string, error) {
	text, err := json.Marshal(h)
	if err != nil {
		return "", err
	}
	mac := hmac.New(sha256.New, s.o.Secret)
	mac.Write(text)
	return base64.RawURLEncoding.EncodeToString(text) + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil)), nil
}

// openBlob returns the part of an input that a handle stands for.
func (c *call) openBlob(text string) (session.Content, error) {
	bad := problem(http.StatusUnprocessableEntity, CodeBadBlob, "the handle of a blob is not of this session, or has expired: store the file again")
	first, second, _ := strings.Cut(text, ".")
	signed, err := base64.RawURLEncoding.DecodeString(first)
	if err != nil {
		return session.Content{}, bad
	}
	sum, err := base64.RawURLEncoding.DecodeString(second)
	mac := hmac.New(sha256.New, c.o.Secret)
	mac.Write(signed)
	var h handle
	if err != nil || !hmac.Equal(sum, mac.Sum(nil)) || json.Unmarshal(signed, &h) != nil || h.Session != c.sid || time.Now().Unix() > h.Expires {
		return session.Content{}, bad
	}
	there, err := c.client.Keep(c.ctx(), h.Part)
	if err == nil && !there {
		err = problem(http.StatusUnprocessableEntity, CodeBadBlob, "the file is not stored any more: store it again")
	}
	return h.Part, err
}

// storeFile stores the body as a file.
func (c *call) storeFile() (any, error) {
	data, err := io.ReadAll(c.r.Body)
	if err != nil {
		return nil, err
	}
	return c.store(c.r.URL.Query().Get("name"), data)
}

// put stores a file as a part of an input, within the caller's quota.
func (c *call) put(file client.File) (session.Content, error) {
	if err := c.usage.store(c.caller.key(), int64(len(file.Data)), &c.o.Limits); err != nil {
		return session.Content{}, err
	}
	part, err := c.client.Store(c.ctx(), file)
	if errors.Is(err, client.ErrFile) {
		err = problem(http.StatusUnprocessableEntity, CodeMediaType, "%v", err)
	}
	return part, err
}

// store stores a file, within the caller's quota, and returns its handle.
func (c *call) store(name string, data []byte) (*Blob, error) {
	part, err := c.put(client.File{Name: name, Data: data})
	if err != nil {
		return nil, err
	}
	return c.handle(part)
}

// handle returns the handle of a part of the session.
func (c *call) handle(part session.Content) (*Blob, error) {
	expires := time.Now().Add(handleGood)
	text, err := c.sign(handle{Session: c.sid, Expires: expires.Unix(), Part: part})
	if err != nil {
		return nil, err
	}
	return &Blob{Blob: text, MediaType: part.MediaType, Size: part.Size, Expires: expires.UnixMilli()}, nil
}
