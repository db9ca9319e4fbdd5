package chaos

import (
	"bufio"
	"errors"
	"net"
	"sync"
	"time"
)

// passage is one connection of a process.
type passage struct {
	proxy          *proxy
	client, server net.Conn

	mu       sync.Mutex
	pings    int    // sent to the server, the proxy's own included
	pongs    int    // received from the server
	kill     *Kill  // due once the awaited answer arrives; nil: none
	reply    string // subject of that answer; "": it is the pong to the proxy's own ping
	lastPing int    // number of that ping; 0: none
}

// up forwards what the process sends, until a kill.
func (c *passage) up() {
	from, to := bufio.NewReader(c.client), bufio.NewWriter(c.server)
	for {
		f, err := readFrame(from)
		if err != nil {
			return
		}
		kill, due := c.proxy.aim.pass(c.proxy.part, f)
		if due && kill.At.Side == Before {
			if to.Flush() != nil {
				return
			}
			c.proxy.kill(kill)
			if !kill.Term {
				return
			}
		}
		after := due && kill.At.Side == After
		if after {
			c.await(f, kill)
		} else if f.op == "PING" {
			c.pinged()
		}
		to.Write(f.raw) //nolint:errcheck // Flush reports it
		if after {
			to.WriteString("PING\r\n") //nolint:errcheck // Flush reports it
		}
		if from.Buffered() == 0 || after {
			if to.Flush() != nil {
				return
			}
		}
		if after && !kill.Term {
			return // down waits for the answer
		}
	}
}

func (c *passage) pinged() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pings++
}

// await prepares for the answer to a message before it is sent: on its reply
// subject, else to a PING after it, since a server reads in order.
func (c *passage) await(f *frame, s Kill) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pings++
	c.kill, c.reply, c.lastPing = &s, f.reply, c.pings
	if !s.Term {
		c.server.SetReadDeadline(time.Now().Add(answerWithin)) //nolint:errcheck // without it the wait has no limit
	}
}

// awaits reports whether a kill is due when the awaited answer arrives. Then the
// server's end of the connection must stay open, even without the process's.
func (c *passage) awaits() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kill != nil && !c.kill.Term
}

// answered handles a frame of the server, or an error of reading. due: it is the
// awaited answer, or there will be none. ours: it is for the proxy alone.
func (c *passage) answered(f *frame, err error) (s Kill, due, ours bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil && f.op == "PONG" {
		c.pongs++
		ours = c.pongs == c.lastPing
	}
	if c.kill == nil {
		return s, false, ours
	}
	var late net.Error
	switch {
	case err != nil:
		due = !c.kill.Term && errors.As(err, &late) && late.Timeout()
	case c.reply != "":
		due = f.delivered() && f.subject == c.reply
	default:
		due = c.pongs >= c.lastPing
	}
	if due {
		s, c.kill = *c.kill, nil
	}
	return s, due, ours
}

// down forwards what the server sends, until a kill.
func (c *passage) down() {
	from, to := bufio.NewReader(c.server), bufio.NewWriter(c.client)
	for {
		f, err := readFrame(from)
		kill, due, ours := c.answered(f, err)
		if due {
			c.proxy.kill(kill)
			if !kill.Term {
				return
			}
		}
		if err != nil {
			return
		}
		if ours {
			continue
		}
		to.Write(f.raw) //nolint:errcheck // Flush reports it
		if from.Buffered() == 0 {
			if to.Flush() != nil && !c.awaits() {
				return
			}
		}
	}
}
