package account

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/roles"
)

// userInfo is the subject on which a server tells a user what it may do. Every account
// imports it.
const userInfo = "$SYS.REQ.USER.INFO"

// expiresSoon is before which credentials are worth a warning.
const expiresSoon = 30 * 24 * time.Hour

// permissions are a user's, as the server tells them. Without any it may do everything.
type permissions struct {
	Publish   *roles.Allowed `json:"publish"`
	Subscribe *roles.Allowed `json:"subscribe"`
}

// user compares the user's permissions with the rights of the roles.
func (d *diagnosis) user(ctx context.Context) {
	var answer struct {
		Data *struct {
			User        string        `json:"user"`
			UserName    string        `json:"user_name"`
			Account     string        `json:"account"`
			AccountName string        `json:"account_name"`
			Permissions permissions   `json:"permissions"`
			Expires     time.Duration `json:"expires"`
		} `json:"data"`
	}
	err := d.conn.Attempt(ctx, userInfo, func(ctx context.Context) error {
		msg, err := d.conn.NC.RequestWithContext(ctx, userInfo, nil)
		if err == nil {
			err = json.Unmarshal(msg.Data, &answer)
		}
		return err
	})
	if err != nil || answer.Data == nil {
		d.add(CodeUser, "", Unknown, "the server does not tell", "")
		if d.denied && !d.readsLog(ctx) { // every role may do one of these
			d.add(CodeRole, "", Breaks, "no role's rights", "all")
		}
		return
	}
	u := answer.Data
	d.add(CodeUser, "", OK, cmp.Or(u.UserName, u.User)+" in account "+cmp.Or(u.AccountName, u.Account), "")
	if u.Expires > 0 {
		r := OK
		if u.Expires < expiresSoon {
			r = Warning
		}
		d.add(CodeExpiry, "", r, "expire in "+u.Expires.Round(time.Minute).String(), "")
	}
	d.role(u.Permissions)
}

// role tells which roles the permissions suffice for. Those that Options name must be
// among them; without such a name at least one must.
func (d *diagnosis) role(p permissions) {
	var has []string
	for _, role := range roles.Roles() {
		rows := roles.Lacks(d.conn.Names(), role, d.conn.API, p.Publish, p.Subscribe)
		switch {
		case len(rows) == 0:
			has = append(has, string(role))
		case slices.Contains(d.o.Roles, role):
			d.add(CodeRole, string(role), Breaks, "lacks rights", strings.Join(rows, ", "))
		}
	}
	switch {
	case len(has) == len(roles.Roles()):
		d.add(CodeRole, "", OK, "every role", "")
	case len(has) > 0:
		d.add(CodeRole, "", OK, strings.Join(has, ", "), "")
	case len(d.o.Roles) == 0:
		d.add(CodeRole, "", Breaks, "no role's rights", "all")
	}
}

// readsLog reports whether the user may read the info of the log, which the roles may that
// may not ask for the account.
func (d *diagnosis) readsLog(ctx context.Context) bool {
	err := d.conn.Attempt(ctx, d.conn.API+"STREAM.INFO."+d.conn.Names().LogStream(), func(ctx context.Context) error {
		_, err := d.conn.JS.Stream(ctx, d.conn.Names().LogStream())
		return err
	})
	var denied *natsio.PermissionError
	return !errors.As(err, &denied)
}
