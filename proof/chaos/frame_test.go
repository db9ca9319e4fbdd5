package chaos

// The NATS protocol as the proxy reads it: frames are forwarded byte for byte,
// and anything else ends the connection.

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestReadFrame(t *testing.T) {
	t.Parallel()
	text := "CONNECT {\"verbose\":false}\r\nPING\r\n" +
		"PUB a.b 5\r\nhello\r\n" +
		"pub a.b _INBOX.1 0\r\n\r\n" +
		"HPUB a.c 12 17\r\nNATS/1.0\r\n\r\nhello\r\n" +
		"HPUB a.c _INBOX.2 12 12\r\nNATS/1.0\r\n\r\n\r\n" +
		"MSG a.b 9 3\r\na\r\n\r\n" +
		"HMSG a.b 9 _INBOX.3 12 14\r\nNATS/1.0\r\n\r\nok\r\n" +
		"+OK\r\n\r\nSUB x 1\r\n"
	want := []frame{
		{op: "CONNECT"}, {op: "PING"},
		{op: "PUB", subject: "a.b", payload: []byte("hello")},
		{op: "PUB", subject: "a.b", reply: "_INBOX.1"},
		{op: "HPUB", subject: "a.c", headers: []byte("NATS/1.0\r\n\r\n"), payload: []byte("hello")},
		{op: "HPUB", subject: "a.c", reply: "_INBOX.2", headers: []byte("NATS/1.0\r\n\r\n")},
		{op: "MSG", subject: "a.b", payload: []byte("a\r\n")},
		{op: "HMSG", subject: "a.b", reply: "_INBOX.3", headers: []byte("NATS/1.0\r\n\r\n"), payload: []byte("ok")},
		{op: "+OK"}, {}, {op: "SUB"},
	}
	r := bufio.NewReaderSize(strings.NewReader(text), 16) // lines and payloads are longer than the buffer
	passed := ""
	for i, w := range want {
		f, err := readFrame(r)
		if err != nil {
			t.Fatalf("frame %d: %v", i, err)
		}
		passed += string(f.raw)
		got := frame{op: f.op, subject: f.subject, reply: f.reply}
		if got.op != w.op || got.subject != w.subject || got.reply != w.reply {
			t.Errorf("frame %d: got %+v, want %+v", i, got, w)
		}
		if string(f.headers) != string(w.headers) || string(f.payload) != string(w.payload) {
			t.Errorf("frame %d: got headers %q and payload %q, want %q and %q", i, f.headers, f.payload, w.headers, w.payload)
		}
	}
	if passed != text {
		t.Errorf("passed on %q, want %q", passed, text)
	}
	if _, err := readFrame(r); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: got %v, want EOF", err)
	}
}

func TestReadFrameRefuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"PUB a.b\r\n", "PUB a.b x y z 1\r\n", "PUB a.b many\r\n", "PUB a.b -1\r\n", "HPUB a.b 20 10\r\n",
		"PUB a.b 99999999999\r\n", "PUB a.b 5\r\nhel",
	} {
		if f, err := readFrame(bufio.NewReader(strings.NewReader(text))); err == nil {
			t.Errorf("%q: got %+v, want an error", text, f)
		}
	}
}
