package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/refold/refold/internal/account"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/roles"
	streamconf "github.com/refold/refold/internal/streams"
	"github.com/refold/refold/subjects"
)

// systemsCommand has the diagnoses of what Refold runs on.
type systemsCommand struct {
	NATS doctorNATS `cmd:"" name:"nats" help:"Compare what a NATS account gives with what Refold needs, and say what to ask its operator for; exit status 1 if something breaks a promise."`
}

// doctorNATS asks a NATS account what it gives.
type doctorNATS struct {
	Replicas    int          `placeholder:"N" help:"Copies that the streams shall have. Default: as many as the log has; without a log 3 on a cluster, else 1."`
	Role        []roles.Role `placeholder:"ROLE" help:"A role that this user must be allowed, such as session-actor. May be repeated. Default: any."`
	Try         bool         `help:"Create each stream and consumer under a prefix of its own, and delete it again. Nothing is stored without it."`
	Monitor     string       `placeholder:"URL" help:"Monitoring addresses of all servers, separated by commas, to ask how they sync."`
	SystemCreds string       `type:"existingfile" placeholder:"FILE" help:"Credentials or context file of a user of the system account, to ask how the servers sync."`
	asJSON
}

// Help returns the help text above the flags.
func (doctorNATS) Help() string {
	return `It needs only the connection that other commands take: no system account, no
configuration of the servers. Run it with the credentials of a session-actor before
the first start, and before an account is ordered with those of any account of the
same kind. Limits of the account are compared with what streams.conf needs.

    refold doctor nats --nats tls://connect.example --creds actor.creds --role session-actor

The rights of a role are compared without those that depend on its targets: refold
roles check tries these too, where refold roles has written the accounts.
docs/operations.md, A managed NATS, has more.`
}

func (c doctorNATS) Run(ctx context.Context, s streams, conn connection) error {
	names, err := subjects.New(conn.Prefix)
	if err != nil {
		return &statusError{statusUsage, err.Error()}
	}
	for _, role := range c.Role {
		if !slices.Contains(roles.Roles(), role) {
			return &statusError{statusUsage, fmt.Sprintf("--role %s: use one of %v", role, roles.Roles())}
		}
	}
	conf, err := streamconf.ParseConf(streamconf.File, names)
	if err != nil {
		return err
	}
	o := natsio.Options{
		URL: conn.NATS, Creds: conn.Creds, Context: conn.Context, Prefix: conn.Prefix, Name: "refold", Domain: conf.Domain(),
		Unchecked: true, SystemCreds: c.SystemCreds,
	}
	if c.Monitor != "" {
		if o.Monitor, err = streamconf.ParseMonitors(c.Monitor); err != nil {
			return &statusError{statusUsage, err.Error()}
		}
	}
	nc, err := natsio.Connect(ctx, o)
	if err != nil {
		return err
	}
	defer nc.Close()
	asked, err := streamconf.New(ctx, nc, o)
	if err != nil {
		return err
	}
	checks, err := account.Diagnose(ctx, nc, asked, conf, account.Options{Replicas: c.Replicas, Roles: c.Role, Try: c.Try})
	if err != nil {
		return err
	}
	return c.print(s, checks)
}

// print prints the checks, and what to do about those that are not ok.
func (c doctorNATS) print(s streams, checks []account.Check) error {
	breaks := 0
	table := newWholeTable(s.out, "CHECK", "RESULT", "HAS", "NEEDS")
	for _, check := range checks {
		if check.Result == account.Breaks {
			breaks++
		}
		if c.JSON {
			printJSON(s.out, check)
			continue
		}
		table.texts(nameOf(check), string(check.Result), cmp.Or(check.Has, "-"), cmp.Or(check.Needs, "-"))
	}
	if !c.JSON {
		table.flush()
		for _, check := range checks {
			if check.Result != account.OK {
				fmt.Fprintf(s.out, "%s: %s: %s: %s\n", check.Result, nameOf(check), check.Means, cmp.Or(check.Do, "-"))
			}
		}
	}
	if breaks > 0 {
		return &statusError{statusFailed, fmt.Sprintf("%d checks break a promise: give the lines above to the operator of the account", breaks)}
	}
	return nil
}

func nameOf(c account.Check) string {
	if c.Of == "" {
		return string(c.Code)
	}
	return string(c.Code) + " " + c.Of
}
