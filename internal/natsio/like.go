package natsio

import (
	"cmp"
	"strings"

	"github.com/nats-io/nats.go"
)

// addresses returns where a connection connects to.
func addresses(nc *nats.Conn) string {
	return cmp.Or(strings.Join(nc.Opts.Servers, ","), nc.Opts.Url)
}

// like returns the option that takes from nc's options who connects, and how. Its
// callbacks stay with nc: they would tell its owner of connections that are not
// theirs.
func (c *Conn) like(nc *nats.Conn) nats.Option {
	of := nc.Opts
	if of.Dialer != nil {
		c.dial.Dialer = *of.Dialer
	}
	c.dial.custom = of.CustomDialer
	return func(o *nats.Options) error {
		o.NoRandomize, o.SkipHostLookup, o.IgnoreDiscoveredServers = of.NoRandomize, of.SkipHostLookup, of.IgnoreDiscoveredServers
		o.Secure, o.TLSCertCB, o.RootCAsCB, o.TLSHandshakeFirst = of.Secure, of.TLSCertCB, of.RootCAsCB, of.TLSHandshakeFirst
		if of.TLSConfig != nil {
			o.TLSConfig = of.TLSConfig.Clone()
		}
		o.UserJWT, o.Nkey, o.SignatureCB = of.UserJWT, of.Nkey, of.SignatureCB
		o.User, o.Password, o.UserInfo = of.User, of.Password, of.UserInfo
		o.Token, o.TokenHandler = of.Token, of.TokenHandler
		o.InboxPrefix, o.ProxyPath, o.Compression = of.InboxPrefix, of.ProxyPath, of.Compression
		o.WebSocketConnectionHeaders, o.WebSocketConnectionHeadersHandler = of.WebSocketConnectionHeaders, of.WebSocketConnectionHeadersHandler
		return nil
	}
}
