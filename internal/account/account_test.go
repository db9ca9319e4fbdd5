package account_test

// What Diagnose tells of accounts as providers and companies give them: servers in
// operator mode, with limits that are each too small, users without rights, old servers,
// a cluster with placement.

import (
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/internal/account"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/roles"
	"github.com/refold/refold/internal/streams"
)

// diagnose connects and diagnoses.
func diagnose(t *testing.T, to natsio.Options, o account.Options) []account.Check {
	t.Helper()
	ctx := testbus.Context(t)
	to.Unchecked = true
	conn, err := natsio.Connect(ctx, to)
	bustest.OK(t, err)
	defer conn.Close()
	s, err := streams.New(ctx, conn, to)
	bustest.OK(t, err)
	checks, err := account.Diagnose(ctx, conn, s, testbus.Conf(t, ""), o)
	bustest.OK(t, err)
	for _, c := range checks {
		if c.Result != account.OK && (c.Means == "" || c.Do == "" && c.Code != account.CodeStream || strings.Contains(c.Do, "{")) {
			t.Errorf("%+v: want what it means and what to do", c)
		}
	}
	return checks
}

// breaks returns the codes of what breaks a promise, each once.
func breaks(checks []account.Check) (codes []string) {
	for _, c := range checks {
		if c.Result == account.Breaks {
			codes = append(codes, string(c.Code))
		}
	}
	return slices.Compact(codes)
}

// of returns the only check of a code.
func of(t *testing.T, checks []account.Check, code account.Code) account.Check {
	t.Helper()
	all := slices.DeleteFunc(slices.Clone(checks), func(c account.Check) bool { return c.Code != code })
	if len(all) != 1 {
		t.Fatalf("%d checks of %s, want one: %+v", len(all), code, all)
	}
	return all[0]
}

// TestLimitsThatAreTooSmall: each is found, and nothing else.
func TestLimitsThatAreTooSmall(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*jwt.AccountClaims, *jwt.UserClaims)
		breaks []string
	}{
		"unlimited": {func(*jwt.AccountClaims, *jwt.UserClaims) {}, nil},
		"as little as suffices": {func(a *jwt.AccountClaims, _ *jwt.UserClaims) {
			a.Limits.JetStreamLimits = jwt.JetStreamLimits{DiskStorage: 1 << 30, Streams: 9, Consumer: 11, MaxAckPending: 100_000}
			a.Limits.Payload = 1 << 20
		}, nil},
		"streams":      {func(a *jwt.AccountClaims, _ *jwt.UserClaims) { a.Limits.Streams = 8 }, []string{"max_streams"}},
		"consumers":    {func(a *jwt.AccountClaims, _ *jwt.UserClaims) { a.Limits.Consumer = 10 }, []string{"max_consumers"}},
		"storage":      {func(a *jwt.AccountClaims, _ *jwt.UserClaims) { a.Limits.DiskStorage = 64 << 20 }, []string{"max_storage"}},
		"memory alone": {func(a *jwt.AccountClaims, _ *jwt.UserClaims) { a.Limits.DiskStorage = 0 }, []string{"max_storage"}},
		"payload":      {func(a *jwt.AccountClaims, _ *jwt.UserClaims) { a.Limits.Payload = 64 << 10 }, []string{"max_payload"}},
		"user payload": {func(_ *jwt.AccountClaims, u *jwt.UserClaims) { u.Limits.Payload = 64 << 10 }, []string{"max_payload"}},
		"ack pending":  {func(a *jwt.AccountClaims, _ *jwt.UserClaims) { a.Limits.MaxAckPending = 500 }, []string{"max_ack_pending"}},
		"max_bytes":    {func(a *jwt.AccountClaims, _ *jwt.UserClaims) { a.Limits.MaxBytesRequired = true }, []string{"max_bytes_required"}},
		"no JetStream": {func(a *jwt.AccountClaims, _ *jwt.UserClaims) { a.Limits.JetStreamLimits = jwt.JetStreamLimits{} }, []string{"jetstream"}},
		"another tier": {tiered("R3", jwt.JetStreamLimits{DiskStorage: -1, Streams: -1, Consumer: -1}), []string{"tier"}},
		"a small tier": {tiered("R1", jwt.JetStreamLimits{DiskStorage: -1, Streams: 2, Consumer: -1}), []string{"max_streams"}},
		"no rights":    {func(_ *jwt.AccountClaims, u *jwt.UserClaims) { u.Pub.Allow.Add("other"); u.Sub.Allow.Add("_INBOX.>") }, []string{"role"}},
		"only its info": {func(_ *jwt.AccountClaims, u *jwt.UserClaims) {
			u.Pub.Allow.Add("$SYS.REQ.USER.INFO")
			u.Sub.Allow.Add("_INBOX.>")
		}, []string{"role"}},
		"no purge": {func(_ *jwt.AccountClaims, u *jwt.UserClaims) { u.Pub.Deny.Add("$JS.API.STREAM.PURGE.>") }, []string{"role"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, creds := bustest.Operated(t, tc.change)
			o := account.Options{}
			if name == "no purge" {
				o.Roles = []roles.Role{roles.SessionActor, roles.Client}
			}
			checks := diagnose(t, natsio.Options{URL: n.URL(), Creds: creds}, o)
			if got := breaks(checks); !slices.Equal(got, tc.breaks) {
				t.Errorf("got %q, want %q: %+v", got, tc.breaks, checks)
			}
			if s := of(t, checks, account.CodeSync); s.Result != account.Unknown {
				t.Errorf("nobody could be asked how the server syncs: %+v", s)
			}
		})
	}
}

// tiered gives limits to one number of copies alone.
func tiered(tier string, l jwt.JetStreamLimits) func(*jwt.AccountClaims, *jwt.UserClaims) {
	return func(a *jwt.AccountClaims, _ *jwt.UserClaims) {
		a.Limits.JetStreamLimits, a.Limits.JetStreamTieredLimits = jwt.JetStreamLimits{}, jwt.JetStreamTieredLimits{tier: l}
	}
}

// TestTryFindsWhatLimitsDoNotTell: the server refuses what Diagnose announced, and takes
// all else; nothing is left.
func TestTryFindsWhatLimitsDoNotTell(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*jwt.AccountClaims, *jwt.UserClaims)
		breaks []string
	}{
		"unlimited":   {func(*jwt.AccountClaims, *jwt.UserClaims) {}, nil},
		"max_bytes":   {func(a *jwt.AccountClaims, _ *jwt.UserClaims) { a.Limits.MaxBytesRequired = true }, []string{"max_bytes_required", "try"}},
		"ack pending": {func(a *jwt.AccountClaims, _ *jwt.UserClaims) { a.Limits.MaxAckPending = 50_000 }, []string{"max_ack_pending", "try_consumer"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, creds := bustest.Operated(t, tc.change)
			to := natsio.Options{URL: n.URL(), Creds: creds}
			checks := diagnose(t, to, account.Options{Try: true})
			if got := breaks(checks); !slices.Equal(got, tc.breaks) {
				t.Errorf("got %q, want %q: %+v", got, tc.breaks, checks)
			}
			tried := 0
			for _, c := range checks {
				if c.Code == account.CodeTry {
					tried++
				}
			}
			if tried != 9 {
				t.Errorf("%d streams were tried, want 9: %+v", tried, checks)
			}
			conn, err := natsio.Connect(testbus.Context(t), to)
			bustest.OK(t, err)
			defer conn.Close()
			info, err := conn.JS.AccountInfo(testbus.Context(t))
			bustest.OK(t, err)
			if info.Streams != 0 {
				t.Errorf("%d streams are left", info.Streams)
			}
		})
	}
}

// TestDiagnoseWritesNothing: a user who may write nothing is refused nothing. With Try it
// is, and the result is not known.
func TestDiagnoseWritesNothing(t *testing.T) {
	t.Parallel()
	n, creds := bustest.Operated(t, func(_ *jwt.AccountClaims, u *jwt.UserClaims) {
		u.Pub.Deny.Add("refold.>", "refold-try-*.>", "$KV.>", "$O.>", "$JS.API.*.CREATE.>", "$JS.API.*.UPDATE.>", "$JS.API.*.DELETE.>", "$JS.API.*.PURGE.>", "$JS.API.*.*.CREATE.>", "$JS.API.*.MSG.>")
	})
	for try, refused := range map[bool]bool{false: false, true: true} {
		logged := new(testbus.Log)
		checks := diagnose(t, natsio.Options{URL: n.URL(), Creds: creds, Logger: slog.New(slog.NewTextHandler(logged, nil))}, account.Options{Try: try, Roles: []roles.Role{roles.Client}})
		if got := len(logged.Lines("nats_permission_denied")) > 0; got != refused {
			t.Errorf("try %t: a request was refused: %t, want %t", try, got, refused)
		}
		if c := of(t, checks, account.CodeStreams); c.Result != account.OK || c.Has != "0 of 9" {
			t.Errorf("%+v: want that none of the streams exists", c)
		}
		for _, c := range checks {
			if c.Code == account.CodeTry && c.Result != account.Unknown {
				t.Errorf("%+v: want that it is not known", c)
			}
		}
	}
}

// TestOldServer: its version is the finding, not a failed connection.
func TestOldServer(t *testing.T) {
	t.Parallel()
	checks := diagnose(t, natsio.Options{URL: bustest.OldServer(t, "2.10.29")}, account.Options{})
	if got := breaks(checks); !slices.Equal(got, []string{"server_version"}) {
		t.Errorf("got %q, want the version alone: %+v", got, checks)
	}
}

// TestPlacementOfACluster: Diagnose tells where copies are, and which stream has too few;
// with Try, where new ones would be.
func TestPlacementOfACluster(t *testing.T) {
	t.Parallel()
	nodes := bustest.Cluster(t, 3, func(o *server.Options) { o.Tags = jwt.TagList{"zone:" + o.ServerName, "disk:ssd"} })
	to := natsio.Options{URL: nodes[0].URL()}
	checks := diagnose(t, to, account.Options{Try: true})
	if got := breaks(checks); got != nil {
		t.Errorf("an empty cluster: got %q, want nothing", got)
	}
	for _, c := range checks {
		if c.Code == account.CodeTry && c.Has != "3 in file storage, cluster test: n0 n1 n2" {
			t.Errorf("tried: %+v, want three copies on all servers", c)
		}
	}
	ctx := testbus.Context(t)
	bustest.OK(t, testbus.ConnectWith(t, to).Provision(ctx, testbus.Conf(t, ""), 3))
	_, js := testbus.JS(t, nodes[0])
	testbus.Reconfigure(t, js, "REFOLD_LOG", func(c *jetstream.StreamConfig) { c.Placement = &jetstream.Placement{Tags: []string{"disk:ssd"}} })
	testbus.Reconfigure(t, js, "REFOLD_PACKS", func(c *jetstream.StreamConfig) { c.Replicas = 1 })
	testbus.Reconfigure(t, js, "REFOLD_FX", func(c *jetstream.StreamConfig) { c.MaxAge *= 2 })
	bustest.OK(t, js.DeleteStream(ctx, "REFOLD_ERASED"))
	placed := map[string]account.Check{}
	for _, c := range diagnose(t, to, account.Options{}) {
		if c.Code == account.CodePlacement || c.Code == account.CodeStream {
			placed[string(c.Code)+" "+c.Of] = c
		}
	}
	for key, want := range map[string]struct {
		result account.Result
		has    string
	}{
		"placement REFOLD_LOG":   {account.OK, "3 in file storage, cluster test: n0 n1 n2, tags disk:ssd"},
		"placement REFOLD_PACKS": {account.Warning, "1 in file storage, cluster test: "},
		"stream REFOLD_FX":       {account.Breaks, ""}, "stream REFOLD_ERASED": {account.Breaks, ""},
	} {
		if c := placed[key]; c.Result != want.result || !strings.HasPrefix(c.Has, want.has) {
			t.Errorf("%s: got %+v, want %+v", key, c, want)
		}
	}
}

// TestHowServersSync: monitoring tells it.
func TestHowServersSync(t *testing.T) {
	t.Parallel()
	for always, want := range map[bool]account.Result{true: account.OK, false: account.Warning} {
		n := bustest.Server(t, func(o *server.Options) { o.HTTPHost, o.HTTPPort = "127.0.0.1", -1 }, func(o *server.Options) {
			if !always {
				bustest.Interval(o)
			}
		})
		c := of(t, diagnose(t, natsio.Options{URL: n.URL(), Monitor: []string{"http://" + n.Raw().MonitorAddr().String()}}, account.Options{}), account.CodeSync)
		if c.Result != want {
			t.Errorf("sync always %t: %+v", always, c)
		}
	}
}
