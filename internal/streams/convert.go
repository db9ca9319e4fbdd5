package streams

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/refold/refold/internal/natsio"
)

const (
	chunkBytes  = 128 << 10        // of a backup on its way
	chunkWithin = 30 * time.Second // after which the server counts as gone
)

// Converted is what Convert did with a stream.
type Converted struct {
	Stream   string `json:"stream"`
	Messages uint64 `json:"messages"`
	Done     bool   `json:"converted"` // false: messages could be deleted from it already
}

// Convert makes streams that were created with deny_delete true ones from which an eraser
// may delete: it backs each up into dir, deletes it and restores it with the other
// setting. Messages keep their sequences and times, consumers their positions. No other
// program may be connected meanwhile. If it ends early, the same call with the same dir
// completes the work. A backup stays in dir.
func (s *Streams) Convert(ctx context.Context, dir string, told func(Converted)) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, name := range []string{s.names.LogStream(), s.names.SnapshotsStream()} {
		done, err := s.convert(ctx, &backup{streams: s, name: name, dir: dir})
		if err != nil {
			return fmt.Errorf("convert %s: %w", name, err)
		}
		told(done)
	}
	return nil
}

func (s *Streams) convert(ctx context.Context, b *backup) (Converted, error) {
	info, err := s.info(ctx, b.name)
	switch {
	case err != nil:
		return Converted{}, err
	case info == nil:
		if err := b.read(); errors.Is(err, os.ErrNotExist) {
			return Converted{}, fmt.Errorf("the stream does not exist, and %s has no backup of it: give the directory of the conversion that did not end", b.dir)
		} else if err != nil {
			return Converted{}, err
		}
	case !info.Config.DenyDelete:
		return Converted{Stream: b.name, Messages: info.State.Msgs}, nil
	default:
		if err := b.save(ctx); err != nil {
			return Converted{}, fmt.Errorf("back it up: %w", err)
		}
		if err := s.conn.Retry(ctx, func(ctx context.Context) error { return s.conn.JS.DeleteStream(ctx, b.name) }); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			return Converted{}, err
		}
	}
	if err := b.restore(ctx); err != nil {
		return Converted{}, fmt.Errorf("restore it: %w; its backup is in %s: the same command again goes on", err, b.dir)
	}
	restored, err := s.info(ctx, b.name)
	if err != nil {
		return Converted{}, err
	}
	if restored == nil || restored.State.Msgs != b.State.Messages || restored.State.LastSeq != b.State.LastSeq {
		return Converted{}, fmt.Errorf("the restored stream is not what it was: its backup is in %s", b.dir)
	}
	return Converted{Stream: b.name, Messages: b.State.Messages, Done: true}, nil
}

// backup is a stream in two files: the server's answer to a snapshot request, and its bytes.
type backup struct {
	streams   *Streams
	name, dir string

	natsio.Answer
	Config   map[string]any  `json:"config"`
	RawState json.RawMessage `json:"state"`
	State    struct {
		Messages uint64 `json:"messages"`
		LastSeq  uint64 `json:"last_seq"`
	} `json:"-"`
}

func (b *backup) file(kind string) string { return filepath.Join(b.dir, b.name+"."+kind) }

// read reads the first file, which is written when the second one is complete.
func (b *backup) read() error {
	data, err := os.ReadFile(b.file("json"))
	if err == nil {
		err = json.Unmarshal(data, b)
	}
	if err == nil {
		err = json.Unmarshal(b.RawState, &b.State)
	}
	return err
}

// save writes the files.
func (b *backup) save(ctx context.Context) error {
	conn := b.streams.conn
	inbox := conn.NC.NewInbox()
	sub, err := conn.NC.SubscribeSync(inbox)
	if err != nil {
		return err
	}
	defer sub.Unsubscribe()
	if err := sub.SetPendingLimits(-1, -1); err != nil {
		return err
	}
	out, err := os.OpenFile(b.file("snapshot"), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	request := map[string]any{"deliver_subject": inbox, "chunk_size": chunkBytes, "jsck": true}
	if err := conn.Ask(ctx, "STREAM.SNAPSHOT."+b.name, request, b); err != nil {
		return err
	}
	for {
		within, cancel := context.WithTimeout(ctx, chunkWithin)
		m, err := sub.NextMsgWithContext(within)
		cancel()
		if err != nil {
			return err
		}
		if status := m.Header.Get("Status"); len(m.Data) == 0 && status != "" && status != "204" {
			return fmt.Errorf("the server ended the backup: %s %s", status, m.Header.Get("Description"))
		}
		if len(m.Data) == 0 {
			break
		}
		if _, err := out.Write(m.Data); err != nil {
			return err
		}
		if m.Reply != "" {
			if err := m.Respond(nil); err != nil {
				return err
			}
		}
	}
	if err := out.Sync(); err != nil {
		return err
	}
	answer, err := json.Marshal(map[string]any{"config": b.Config, "state": b.RawState})
	if err != nil {
		return err
	}
	if err := os.WriteFile(b.file("json.new"), answer, 0o600); err != nil {
		return err
	}
	if err := os.Rename(b.file("json.new"), b.file("json")); err != nil {
		return err
	}
	return b.read()
}

// restore creates the stream from the files, with deny_delete false.
func (b *backup) restore(ctx context.Context) error {
	conn := b.streams.conn
	in, err := os.Open(b.file("snapshot"))
	if err != nil {
		return err
	}
	defer in.Close()
	b.Config["deny_delete"] = false
	var begun struct {
		natsio.Answer
		Deliver string `json:"deliver_subject"`
	}
	if err := conn.Ask(ctx, "STREAM.RESTORE."+b.name, map[string]any{"config": b.Config, "state": b.RawState}, &begun); err != nil {
		return err
	}
	send := func(data []byte) ([]byte, error) {
		ctx, cancel := context.WithTimeout(ctx, chunkWithin)
		defer cancel()
		m, err := conn.NC.RequestWithContext(ctx, begun.Deliver, data)
		if err != nil {
			return nil, err
		}
		return m.Data, nil
	}
	chunk := make([]byte, chunkBytes)
	for {
		n, err := io.ReadFull(in, chunk)
		if n > 0 {
			if _, err := send(chunk[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	answer, err := send(nil)
	if err != nil {
		return err
	}
	var made natsio.Answer
	if err := json.Unmarshal(answer, &made); err != nil {
		return err
	}
	if made.Error != nil {
		return made.Error
	}
	return nil
}
