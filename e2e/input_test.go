package e2e_test

// Bad input to the real system; more of it is in the scenario files.

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"
)

// oldServer answers like a NATS server of version 2.13.
func oldServer(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				fmt.Fprintf(conn, "INFO {\"server_id\":\"OLD\",\"version\":\"2.13.4\",\"proto\":1,\"max_payload\":1048576,\"headers\":true,\"jetstream\":true}\r\n")
				for scan := bufio.NewScanner(conn); scan.Scan(); {
					if strings.HasPrefix(scan.Text(), "PING") {
						fmt.Fprint(conn, "PONG\r\n")
					}
				}
			}()
		}
	}()
	return "nats://" + l.Addr().String()
}

func TestOversizeAndBadNames(t *testing.T) {
	t.Parallel()
	url := startNATS(t)
	actor := startDaemon(t, "session-actor", "--nats", url)
	startDaemon(t, "bridge", "--nats", url, "--model", "scripted:echo")
	nc := connect(t, url)
	heard := listen(t, nc, "refold.out.s1")
	// 300 KiB of inline text, and an event over its limit: folded and refused.
	publish(t, nc, "refold.in.s1", runRequested(t, strings.Repeat("x", 300<<10)))
	publish(t, nc, "refold.in.s1", runRequested(t, strings.Repeat("x", 800<<10)))
	// A name that can't be a session's is skipped, counted and logged.
	publish(t, nc, "refold.in.bad!name", runRequested(t, "hi"))
	publish(t, nc, "refold.in.s1", runRequested(t, "hi"))
	if got := waitFinished(t, heard, 1); got.Lifecycle != "completed" {
		t.Errorf("the run after all that: %+v", got)
	}
	var codes []string
	for _, h := range heard.all() {
		var d struct {
			Code   string `json:"code"`
			Detail string `json:"detail"`
		}
		if h.Type == "EventRejected" && json.Unmarshal(h.Data, &d) == nil {
			codes = append(codes, d.Code)
			if !strings.Contains(d.Detail, "at most") {
				t.Errorf("the detail names no limit: %q", d.Detail)
			}
		}
	}
	if got := strings.Join(codes, " "); got != "limit_exceeded limit_exceeded" {
		t.Errorf("rejections: %s", got)
	}
	until(t, time.Minute, "a line about the bad name", func() bool { return strings.Contains(actor.out.String(), "bad!name") })
	verifyAll(t, url)
}
