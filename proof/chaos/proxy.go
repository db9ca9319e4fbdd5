package chaos

import (
	"net"
	"sync"
	"time"
)

// answerWithin is how long the answer to a message may take before the kill.
const answerWithin = 5 * time.Second

// proxy forwards between one process and the server. It counts the process's
// messages, and kills where that is due.
type proxy struct {
	part     Part
	server   func() string // its present address, "" while it is down
	aim      *aim
	kill     func(Kill) // carries it out, and returns when the victim has ended
	listener net.Listener
	serving  sync.WaitGroup

	mu     sync.Mutex
	conns  map[net.Conn]bool
	closed bool
}

// newProxy listens on loopback for the process.
func newProxy(part Part, server func() string, a *aim, kill func(Kill)) (*proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{part: part, server: server, aim: a, kill: kill, listener: listener, conns: map[net.Conn]bool{}}
	p.serving.Go(p.accept)
	return p, nil
}

// url is the address for the process.
func (p *proxy) url() string { return "nats://" + p.listener.Addr().String() }

// close ends it and all connections through it.
func (p *proxy) close() {
	p.listener.Close()
	p.mu.Lock()
	p.closed = true
	for conn := range p.conns {
		conn.Close()
	}
	p.mu.Unlock()
	p.serving.Wait()
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.serving.Go(func() { p.serve(client) })
	}
}

// serve forwards one connection until either end closes.
func (p *proxy) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", p.server())
	if err != nil {
		return // the client retries
	}
	defer server.Close()
	if !p.keep(client, server) {
		return
	}
	defer p.drop(client, server)
	c := &passage{proxy: p, client: client, server: server}
	var both sync.WaitGroup
	both.Go(func() {
		c.up()
		if !c.awaits() {
			server.Close()
		}
	})
	both.Go(func() {
		c.down()
		server.Close()
		client.Close()
	})
	both.Wait()
}

// keep registers connections for close; it returns false after close.
func (p *proxy) keep(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range conns {
		p.conns[conn] = true
	}
	return !p.closed
}

func (p *proxy) drop(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range conns {
		delete(p.conns, conn)
	}
}
