package chaos

import (
	"bufio"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/refold/refold/subjects"
)

// answerWithin is how long the answer to a message is waited for before the
// process that sent it is killed without one.
const answerWithin = 5 * time.Second

// proxy stands between one process and the server. It names and counts what
// the process sends, and has it killed at a point.
type proxy struct {
	part     Part
	server   string // address
	namer    namer
	listener net.Listener
	serving  sync.WaitGroup

	mu     sync.Mutex
	counts map[string]int
	passed []Point       // Before each, in order
	target *Point        // nil: nobody is killed (any more)
	kill   func()        // ends the process, and returns when it has
	struck chan struct{} // closed when it was killed
	conns  map[net.Conn]bool
	closed bool
}

// newProxy listens on loopback for the process, which is killed at the target
// by kill, once.
func newProxy(part Part, server string, names subjects.Names, target *Point, kill func()) (*proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{
		part: part, server: server, namer: namer{names}, listener: listener, target: target, kill: kill,
		counts: map[string]int{}, struck: make(chan struct{}), conns: map[net.Conn]bool{},
	}
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

// points returns what passed, both sides of each message.
func (p *proxy) points() []Point {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]Point, 0, 2*len(p.passed))
	for _, point := range p.passed {
		after := point
		after.Side = After
		all = append(all, point, after)
	}
	return all
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
	server, err := net.Dial("tcp", p.server)
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

// pass counts a message, and tells on which side of it the process is to be
// killed; empty: nowhere.
func (p *proxy) pass(f *frame) Side {
	if !f.published() {
		return ""
	}
	what, ok := p.namer.what(f)
	if !ok {
		return ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts[what]++
	n := p.counts[what]
	p.passed = append(p.passed, Point{Part: p.part, Side: Before, What: what, N: n})
	if t := p.target; t != nil && t.What == what && t.N == n {
		p.target = nil
		return t.Side
	}
	return ""
}

// strike kills the process. It returns when nothing of it runs.
func (p *proxy) strike() {
	p.kill()
	close(p.struck)
}

// passage is one connection of the process.
type passage struct {
	proxy          *proxy
	client, server net.Conn

	mu       sync.Mutex
	pings    int    // sent to the server, ours included
	pongs    int    // that came back
	last     bool   // the last message has been sent: its answer is awaited
	reply    string // on which the answer comes; empty: the pong to our own ping is the answer
	lastPing int
}

// up passes on what the process sends.
func (c *passage) up() {
	from, to := bufio.NewReader(c.client), bufio.NewWriter(c.server)
	for {
		f, err := readFrame(from)
		if err != nil {
			return
		}
		side := c.proxy.pass(f)
		if side == Before {
			if to.Flush() == nil {
				c.proxy.strike()
			}
			return
		}
		c.sent(f, side == After)
		to.Write(f.raw) //nolint:errcheck // Flush tells
		if side == After {
			to.WriteString("PING\r\n") //nolint:errcheck // Flush tells
		}
		if from.Buffered() == 0 || side == After {
			if to.Flush() != nil {
				return
			}
		}
		if side == After {
			return // down waits for the answer
		}
	}
}

// sent notes what is about to be sent. After the last message the answer is
// awaited: on its reply subject, or, if it has none, as the answer to a PING
// behind it, for a server reads in order.
func (c *passage) sent(f *frame, last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.op == "PING" {
		c.pings++
	}
	if last {
		c.pings++
		c.last, c.reply, c.lastPing = true, f.reply, c.pings
		c.server.SetReadDeadline(time.Now().Add(answerWithin)) //nolint:errcheck // then the answer alone is waited for
	}
}

func (c *passage) awaits() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

// answers reports that a frame of the server is the answer that is awaited.
func (c *passage) answers(f *frame) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.op == "PONG" {
		c.pongs++
	}
	switch {
	case !c.last:
		return false
	case c.reply != "":
		return f.delivered() && f.subject == c.reply
	}
	return c.pongs >= c.lastPing
}

// down passes on what the server sends, until the answer to the last message.
func (c *passage) down() {
	from, to := bufio.NewReader(c.server), bufio.NewWriter(c.client)
	for {
		f, err := readFrame(from)
		var late net.Error
		if c.awaits() && errors.As(err, &late) && late.Timeout() || err == nil && c.answers(f) {
			c.proxy.strike()
			return
		}
		if err != nil {
			return
		}
		to.Write(f.raw) //nolint:errcheck // Flush tells
		if from.Buffered() == 0 {
			if to.Flush() != nil && !c.awaits() {
				return
			}
		}
	}
}
