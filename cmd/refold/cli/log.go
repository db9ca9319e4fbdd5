package cli

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
	"github.com/refold/refold/cmd/settings"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/transcript"
)

// logCommand prints events.
type logCommand struct {
	Session string `arg:"" archive:"" help:"The session, or the file of its archive: a name with a dot or a slash."`
	From    uint64 `placeholder:"SEQ" help:"Begin with this sequence of the log."`
	To      uint64 `placeholder:"SEQ" help:"End with this sequence of the log. Default: the newest event."`
	JSON    bool   `name:"json" help:"Print a JSON object an event."`
}

// logEvent is an event as it is printed.
type logEvent struct {
	Session string          `json:"session"`
	Seq     uint64          `json:"seq"`
	Time    int64           `json:"time"` // Unix ms, of the log
	Door    session.Door    `json:"door"`
	Type    string          `json:"type,omitempty"`
	ID      string          `json:"id,omitempty"`
	By      string          `json:"by,omitempty"`
	At      int64           `json:"at,omitempty"` // Unix ms, of the publisher's clock
	Data    json.RawMessage `json:"data,omitempty"`
	Fault   string          `json:"fault,omitempty"`   // why the payload can't be decoded
	Payload string          `json:"payload,omitempty"` // base64; only with fault
}

// Run prints the events of a session as they are stored.
func (l logCommand) Run(ctx context.Context, s streams, conn connection) error {
	if l.To != 0 && l.From > l.To {
		return &statusError{statusUsage, "log: --from is after --to"}
	}
	c, sid, err := conn.reader(ctx, l.Session)
	if err != nil {
		return err
	}
	defer c.Close()
	n, screen := 0, settings.ScreenOf(s.out)
	for e, err := range c.Read(ctx, sid, l.From, l.To) {
		if err != nil {
			return err
		}
		n++
		l.print(screen, readEvent(e))
	}
	switch {
	case n == 0 && l.From == 0 && l.To == 0:
		return client.ErrNoSession
	case n == 0:
		fmt.Fprintln(s.err, "the session has no event there")
	}
	return nil
}

// readEvent decodes an event. A payload that can't be decoded is kept as base64.
func readEvent(e session.Event) logEvent {
	out := logEvent{Session: e.Session, Seq: e.Seq, Time: e.Time, Door: e.Door}
	env, err := session.ReadEnvelope(e.Payload)
	if err == nil && len(env.Data) > 0 {
		out.Data, err = codec.ToJSON(env.Data)
	}
	if err != nil {
		out.Fault, out.Payload = err.Error(), base64.StdEncoding.EncodeToString(e.Payload)
		return out
	}
	out.Type, out.ID, out.By, out.At = env.Type, env.ID, env.By, env.At
	return out
}

func (l logCommand) print(screen settings.Screen, e logEvent) {
	if l.JSON {
		printJSON(screen, e)
		return
	}
	at := time.UnixMilli(e.Time).UTC().Format("2006-01-02 15:04:05.000Z")
	head := fmt.Sprintf("%d  %s  %s  %s", e.Seq, at, e.Door, transcript.OrDash(e.Type))
	if e.ID != "" {
		head += "  id " + e.ID
	}
	if e.By != "" {
		head += "  by " + e.By
	}
	screen.Paint(settings.Bold, settings.Spelled(head))
	if e.Fault != "" {
		fmt.Fprintf(screen, "\n  can't be decoded: %s\n  payload, as base64: %s\n", e.Fault, e.Payload)
		return
	}
	var data bytes.Buffer
	if len(e.Data) > 0 {
		data.WriteString("\n  ")
		_ = json.Indent(&data, e.Data, "  ", "  ") // ToJSON made it: it is valid
	}
	fmt.Fprintf(screen, "%s\n", data.Bytes())
}
