package chaos

import (
	"net"
	"sync"
	"time"
)

// answerWithin is how long the answer to a message is waited for before the
// process that sent it is killed without one.
const answerWithin = 5 * time.Second

// proxy stands between one process and the server. It has what the process
// sends counted, and kills where that is due.
type proxy struct {
	part     Part
	server   func() string // its address now, empty while it is down
	aim      *aim
	kill     func(Kill) // carries it out, and returns when the victim is gone
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

// url is where the process connects.
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

// serve passes one connection on until either end of it is gone.
func (p *proxy) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", p.server())
	if err != nil {
		return // the client tries again
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

// keep remembers connections that close ends; false after it.
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
