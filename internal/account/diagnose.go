package account

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/roles"
	"github.com/refold/refold/internal/streams"
)

// apiLevelLeast is the level of JetStream's API in nats-server 2.14.
const apiLevelLeast = 4

// copiesBest is how many copies survive the loss of a server.
const copiesBest = 3

// Options say what to compare with.
type Options struct {
	// Replicas is how many copies the streams shall have; 0: as many as the log has,
	// without a log three on a cluster, and else one.
	Replicas int
	Roles    []roles.Role // that the user must be allowed; none: it is told which it has
	Try      bool         // create each stream under a prefix of its own, and delete it
}

// diagnosis is one run of Diagnose.
type diagnosis struct {
	conn    *natsio.Conn
	streams *streams.Streams
	conf    *streams.Conf
	o       Options

	info   *jetstream.AccountInfo
	denied bool                             // this user may not ask for it
	have   map[string]*jetstream.StreamInfo // Refold's streams that exist
	checks []Check
}

// Diagnose compares what the servers and the account of a connection give with what
// conf needs. The connection may be one to any server (natsio.Options.Unchecked). What is
// not answered is Unknown. An error means that ctx has ended.
func Diagnose(ctx context.Context, conn *natsio.Conn, s *streams.Streams, conf *streams.Conf, o Options) ([]Check, error) {
	d := &diagnosis{conn: conn, streams: s, conf: conf, o: o, have: map[string]*jetstream.StreamInfo{}}
	d.server()
	if d.jetStream(ctx) {
		d.readStreams(ctx)
		d.limits()
		d.checkStreams(ctx)
	}
	d.sync()
	d.user(ctx)
	if o.Try && d.info != nil {
		d.try(ctx)
	}
	d.payload(ctx) // last, since it may end the connection
	return d.checks, ctx.Err()
}

func (d *diagnosis) add(code Code, of string, r Result, has, needs string) {
	d.checks = append(d.checks, found(code, of, r, has, needs))
}

// holds adds a check that is OK or Breaks.
func (d *diagnosis) holds(code Code, holds bool, has, needs string) {
	r := OK
	if !holds {
		r = Breaks
	}
	d.add(code, "", r, has, needs)
}

// server compares what the connected server said when it greeted.
func (d *diagnosis) server() {
	nc := d.conn.NC
	d.holds(CodeVersion, !d.conn.TooOld(), nc.ConnectedServerVersion(), natsio.ServerLeast())
	d.holds(CodeHeaders, nc.HeadersSupported(), yes(nc.HeadersSupported()), yes(true))
}

// payload sends a message of the least size that is needed, to an inbox that nobody has:
// servers tell a client their own limit, and not that of its account or of the user.
func (d *diagnosis) payload(ctx context.Context) {
	nc, needs := d.conn.NC, strconv.Itoa(natsio.PayloadLeast)
	if nc.MaxPayload() < natsio.PayloadLeast {
		d.add(CodePayload, "", Breaks, strconv.FormatInt(nc.MaxPayload(), 10), needs)
		return
	}
	err := nc.Publish(nc.NewInbox(), make([]byte, natsio.PayloadLeast))
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, natsio.RequestTimeout)
		defer cancel()
		err = nc.FlushWithContext(ctx)
	}
	switch {
	case err == nil:
		d.add(CodePayload, "", OK, strconv.FormatInt(nc.MaxPayload(), 10), needs)
	case strings.Contains(strings.ToLower(fmt.Sprint(nc.LastError())), "maximum payload"):
		d.add(CodePayload, "", Breaks, "less, of the account or the user", needs)
	default:
		d.add(CodePayload, "", Unknown, err.Error(), needs)
	}
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// jetStream asks for the account, and reports whether it has JetStream.
func (d *diagnosis) jetStream(ctx context.Context) bool {
	err := d.conn.Attempt(ctx, d.conn.API+"INFO", func(ctx context.Context) (err error) {
		d.info, err = d.conn.JS.AccountInfo(ctx)
		return err
	})
	var denied *natsio.PermissionError
	switch {
	case err == nil:
		d.conn.SetDomain(d.info.Domain)
		has := "enabled"
		if d.info.Domain != "" {
			has += ", domain " + d.info.Domain
		}
		d.add(CodeJetStream, "", OK, has, "enabled")
		d.holds(CodeAPILevel, d.info.API.Level >= apiLevelLeast, strconv.Itoa(d.info.API.Level), strconv.Itoa(apiLevelLeast))
		return true
	case errors.As(err, &denied):
		d.denied = true
		c := found(CodeJetStream, "", Unknown, "this user may not ask", "enabled")
		c.Means, c.Do = denied.Error(), "connect as a user that may request "+denied.Subject
		d.checks = append(d.checks, c)
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount), errors.Is(err, nats.ErrNoResponders):
		d.add(CodeJetStream, "", Breaks, "none", "enabled")
	default:
		d.add(CodeJetStream, "", Unknown, err.Error(), "enabled")
	}
	d.info = nil
	return false
}

// readStreams reads the info of the streams that exist.
func (d *diagnosis) readStreams(ctx context.Context) {
	for _, name := range d.conn.Names().Streams() {
		_ = d.conn.Attempt(ctx, d.conn.API+"STREAM.INFO."+name, func(ctx context.Context) error {
			s, err := d.conn.JS.Stream(ctx, name)
			if err == nil {
				d.have[name] = s.CachedInfo()
			}
			return err
		}) // checkStreams tells its error
	}
	switch log := d.have[d.conn.Names().LogStream()]; {
	case d.o.Replicas > 0:
	case log != nil:
		d.o.Replicas = max(log.Config.Replicas, 1)
	case d.conn.NC.ConnectedClusterName() != "":
		d.o.Replicas = copiesBest
	default:
		d.o.Replicas = 1
	}
	cluster := d.conn.NC.ConnectedClusterName()
	d.holds(CodeCluster, d.o.Replicas == 1 || cluster != "", orNone(cluster), fmt.Sprintf("for %d copies", d.o.Replicas))
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

// checkStreams compares the streams that exist with streams.conf, and tells where they
// are. An account without any is ready for a session-actor to create them.
func (d *diagnosis) checkStreams(ctx context.Context) {
	all := d.conn.Names().Streams()
	differs, err := d.streams.Check(ctx, d.conf)
	r := OK
	if err != nil {
		r = Unknown
	}
	d.add(CodeStreams, "", r, fmt.Sprintf("%d of %d", len(d.have), len(all)), strconv.Itoa(len(all)))
	for _, f := range differs {
		if f.Missing && len(d.have) == 0 {
			continue
		}
		d.checks = append(d.checks, Check{Code: CodeStream, Of: f.Stream, Result: Breaks, Means: f.String()})
	}
	for _, name := range all {
		info := d.have[name]
		if info == nil {
			continue
		}
		r := OK
		if info.Config.Replicas < d.o.Replicas {
			r = Warning
		}
		d.add(CodePlacement, name, r, placement(info), strconv.Itoa(d.o.Replicas))
	}
}

// placement says where a stream's copies are.
func placement(info *jetstream.StreamInfo) string {
	text := fmt.Sprintf("%d in %s storage", max(info.Config.Replicas, 1), strings.ToLower(info.Config.Storage.String()))
	if c := info.Cluster; c != nil && c.Name != "" {
		servers := []string{c.Leader}
		for _, peer := range c.Replicas {
			servers = append(servers, peer.Name)
		}
		slices.Sort(servers)
		text += fmt.Sprintf(", cluster %s: %s", c.Name, strings.Join(servers, " "))
	}
	if p := info.Config.Placement; p != nil && len(p.Tags) > 0 {
		text += ", tags " + strings.Join(p.Tags, " ")
	}
	return text
}

// sync tells how the servers sync, as far as anybody could be asked.
func (d *diagnosis) sync() {
	level, how, asked := d.streams.Syncs()
	r := map[natsio.Durability]Result{natsio.DurabilityAlways: OK, natsio.DurabilityUnknown: Unknown}[level]
	if r == "" {
		r = Warning
	}
	d.add(CodeSync, "", r, how+" (asked: "+asked+")", "sync always")
}

// consumersOf is how many consumers this prefix needs: lanes, due wakes, and those that
// exist, or at least one for a model and one for tools.
func (d *diagnosis) consumersOf() int {
	have := 0
	for _, info := range d.have {
		have += info.State.Consumers
	}
	return max(have, d.conf.Lanes()+dueConsumers+targetsLeast)
}
