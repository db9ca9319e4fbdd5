package recorded

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Recording is a file of conversations. It is immutable and safe for concurrent
// use.
type Recording struct {
	conversations []*Conversation
	bySession     map[string]*Conversation
}

// Load reads a file of conversations, one a line. The error names the file, the
// line, and the message that is wrong. Load refuses a file without a
// conversation, two conversations with one id or session, and a conversation
// that no model could have had: a call without its result, a result without its
// call, a message of the model that answers nothing.
func Load(file string) (*Recording, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("open recording: %w", err)
	}
	defer f.Close()
	return Read(filepath.Base(file), f)
}

// Read is Load from a reader; name is the file's name in errors.
func Read(name string, from io.Reader) (*Recording, error) {
	r := &Recording{bySession: map[string]*Conversation{}}
	lines := bufio.NewReader(io.LimitReader(from, fileBytesMax+1))
	read := 0
	for number := 1; ; number++ {
		line, err := lines.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		if read += len(line); read > fileBytesMax {
			return nil, fmt.Errorf("%s: more than %d bytes: split it", name, fileBytesMax)
		}
		if len(bytes.TrimSpace(line)) > 0 {
			if err := r.add(line); err != nil {
				return nil, fmt.Errorf("%s:%d: %w", name, number, err)
			}
		}
		if err != nil {
			break
		}
	}
	if len(r.conversations) == 0 {
		return nil, fmt.Errorf(`%s: no conversation: each line is one, as {"id", "messages"}`, name)
	}
	return r, nil
}

func (r *Recording) add(line []byte) error {
	c, err := parseConversation(line)
	if err != nil {
		return err
	}
	if len(r.conversations) == conversationsMax {
		return fmt.Errorf("more than %d conversations: split the file", conversationsMax)
	}
	if other, taken := r.bySession[c.Session()]; taken {
		return fmt.Errorf("conversation %q: its session %s is that of conversation %q: give it another id", c.ID, c.Session(), other.ID)
	}
	r.conversations = append(r.conversations, c)
	r.bySession[c.Session()] = c
	return nil
}
