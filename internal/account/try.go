package account

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/streams"
	"github.com/refold/refold/subjects"
)

// tryPrefix begins the prefix of streams that try creates.
const tryPrefix = "refold-try-"

// try creates each stream of streams.conf, and a consumer of each kind, under a prefix of
// its own, and deletes the stream before it creates the next one.
func (d *diagnosis) try(ctx context.Context) {
	names, err := subjects.New(tryPrefix + strings.ToLower(rand.Text()[:8]))
	if err != nil {
		panic(err) // a constant and a few letters
	}
	conf, err := streams.ParseConf(streams.File, names)
	if err != nil {
		panic(err) // the file is built in, and was parsed under another prefix
	}
	consumer, err := subjects.BridgeName(session.ClassTool, "host")
	if err != nil {
		panic(err) // constants
	}
	consumers := map[string]string{names.LogStream(): subjects.LaneName(0), names.EffectsStream(): consumer, names.TimersStream(): subjects.DueConsumer}
	own := d.conn.Names().Streams()
	for i, name := range names.Streams() {
		d.tryStream(ctx, conf, name, own[i], consumers[name])
	}
}

// tryStream creates and deletes a stream in place of another one.
func (d *diagnosis) tryStream(ctx context.Context, conf *streams.Conf, name, of, consumer string) {
	var cfg jetstream.StreamConfig
	d.decode(conf, name, &cfg)
	cfg.Replicas = d.o.Replicas
	var made jetstream.Stream
	err := d.conn.Attempt(ctx, d.conn.API+"STREAM.CREATE."+name, func(ctx context.Context) (err error) {
		made, err = d.conn.JS.CreateStream(ctx, cfg)
		return err
	})
	if err != nil {
		d.refused(CodeTry, of, err)
		if natsio.CodeOf(err) != 0 {
			return
		}
	}
	defer d.remove(ctx, name) // also if no answer came: it may be there
	if made == nil {
		return
	}
	d.add(CodeTry, of, OK, placement(made.CachedInfo()), strconv.Itoa(d.o.Replicas))
	if consumer == "" {
		return
	}
	var want jetstream.ConsumerConfig
	d.decode(conf, consumer, &want)
	err = d.conn.Attempt(ctx, d.conn.API+"CONSUMER.CREATE."+name+"."+consumer, func(ctx context.Context) error {
		_, err := d.conn.JS.CreateConsumer(ctx, name, want)
		if err == nil {
			_, err = d.conn.JS.ResetConsumer(ctx, name, consumer)
		}
		return err
	})
	if err != nil {
		d.refused(CodeTryConsumer, of+" > "+consumer, err)
		return
	}
	d.add(CodeTryConsumer, of+" > "+consumer, OK, "created and reset", "")
}

// decode reads what streams.conf has for a name.
func (d *diagnosis) decode(conf *streams.Conf, name string, into any) {
	data, err := conf.ConfJSON(name)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		panic(err) // it is a name of this file, in the form of the API
	}
}

// refused adds that the servers refuse something. A user who may not ask learns nothing.
func (d *diagnosis) refused(code Code, of string, err error) {
	r := Breaks
	if denied := (*natsio.PermissionError)(nil); errors.As(err, &denied) || natsio.IsTransient(err) {
		r = Unknown
	}
	d.add(code, of, r, natsio.Typed(err).Error(), "")
}

// remove deletes a stream, also if ctx has ended. One that is not there is deleted.
func (d *diagnosis) remove(ctx context.Context, name string) {
	ctx = context.WithoutCancel(ctx)
	err := d.conn.Attempt(ctx, d.conn.API+"STREAM.DELETE."+name, func(ctx context.Context) error {
		return d.conn.JS.DeleteStream(ctx, name)
	})
	if denied := (*natsio.PermissionError)(nil); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) && !errors.As(err, &denied) {
		d.add(CodeLeft, name, Breaks, natsio.Typed(err).Error(), name)
	}
}
