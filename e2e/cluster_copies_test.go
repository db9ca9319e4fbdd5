package e2e_test

import (
	"bytes"
	"fmt"
	"maps"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// clusterStreams are all streams of Refold.
var clusterStreams = []string{"REFOLD_LOG", "REFOLD_FX", "REFOLD_OUT", "REFOLD_TIMERS", "KV_REFOLD_SNAPSHOTS", "OBJ_REFOLD_BLOBS", "REFOLD_PACKS"}

// stored is a message as a stream's copy has it.
type stored struct {
	seq     uint64
	subject string
	time    string
	data    []byte
}

func (s stored) String() string {
	return fmt.Sprintf("%d %s %s %.80q", s.seq, s.subject, s.time, s.data)
}

// copyOf reads all that a server has of a stream. A direct get is answered from
// the copy of any server that can be reached: of the one that is asked, once it
// is alone.
func copyOf(nc *nats.Conn, stream string) ([]stored, error) {
	inbox := nc.NewRespInbox()
	sub, err := nc.SubscribeSync(inbox)
	if err != nil {
		return nil, err
	}
	defer sub.Unsubscribe()
	var all []stored
	for from := uint64(1); ; {
		request := fmt.Sprintf(`{"seq":%d,"batch":1000,"next_by_subj":">"}`, from)
		if err := nc.PublishRequest("$JS.API.DIRECT.GET."+stream, inbox, []byte(request)); err != nil {
			return nil, err
		}
		for {
			msg, err := sub.NextMsg(30 * time.Second)
			if err != nil {
				return nil, fmt.Errorf("read %s from %d on: %w", stream, from, err)
			}
			if status := msg.Header.Get("Status"); status == "404" {
				return all, nil
			} else if status == "204" {
				if msg.Header.Get("Nats-Num-Pending") == "0" {
					return all, nil
				}
				break
			} else if status != "" {
				return nil, fmt.Errorf("read %s from %d on: status %s %s", stream, from, status, msg.Header.Get("Description"))
			}
			seq, err := strconv.ParseUint(msg.Header.Get("Nats-Sequence"), 10, 64)
			if err != nil {
				return nil, fmt.Errorf("read %s from %d on: %w", stream, from, err)
			}
			from = seq + 1
			all = append(all, stored{seq, msg.Header.Get("Nats-Subject"), msg.Header.Get("Nats-Time-Stamp"), msg.Data})
		}
	}
}

// difference says where two copies of a stream differ; empty: nowhere.
func difference(one, other []stored) string {
	for i := range max(len(one), len(other)) {
		switch {
		case i >= len(one):
			return fmt.Sprintf("the first has %d messages; the other has more: %s", len(one), other[i])
		case i >= len(other):
			return fmt.Sprintf("the other has %d messages; the first has more: %s", len(other), one[i])
		case one[i].seq != other[i].seq || one[i].subject != other[i].subject || one[i].time != other[i].time || !bytes.Equal(one[i].data, other[i].data):
			return fmt.Sprintf("%s, and %s", one[i], other[i])
		}
	}
	return ""
}

// extent is how far a copy of a stream goes.
type extent struct {
	Messages uint64 `json:"messages"`
	FirstSeq uint64 `json:"first_seq"`
	LastSeq  uint64 `json:"last_seq"`
	Deleted  int    `json:"num_deleted"`
}

// extents returns how far a server's own copies go, by stream.
func (s *clusterServer) extents() (map[string]extent, error) {
	var jsz struct {
		Accounts []struct {
			Streams []struct {
				Name  string `json:"name"`
				State extent `json:"state"`
			} `json:"stream_detail"`
		} `json:"account_details"`
	}
	if err := s.monitoring("/jsz?streams=true", &jsz); err != nil {
		return nil, err
	}
	all := map[string]extent{}
	for _, account := range jsz.Accounts {
		for _, stream := range account.Streams {
			all[stream.Name] = stream.State
		}
	}
	return all, nil
}

// copies waits until the copies of every stream go equally far and, read on a
// connection to each server, are the same messages, which it returns.
func (c *cluster) copies() map[string][]stored {
	c.t.Helper()
	var all map[string][]stored
	var differs string
	agree := eventually(c.t, time.Minute, func() bool {
		if differs = c.apartBy(); differs != "" {
			return false
		}
		all = c.servers[0].read(c.t)
		for _, s := range c.servers[1:] {
			for stream, have := range s.read(c.t) {
				if where := difference(all[stream], have); where != "" {
					differs = fmt.Sprintf("%s and %s differ in %s: %s", c.servers[0].name, s.name, stream, where)
					return false
				}
			}
		}
		return true
	})
	if !agree {
		c.t.Fatalf("the copies of the streams are not alike after a minute: %s", differs)
	}
	return all
}

// apartBy says how far the copies of the streams go, if not equally far.
func (c *cluster) apartBy() string {
	var all []map[string]extent
	for _, s := range c.servers {
		have, err := s.extents()
		if err != nil || len(have) != len(clusterStreams) {
			return fmt.Sprintf("%s tells of %d streams (%v)", s.name, len(have), err)
		}
		if all = append(all, have); !maps.Equal(all[0], have) {
			return fmt.Sprint(all)
		}
	}
	return ""
}

// read reads all streams on a connection to a server.
func (s *clusterServer) read(t testing.TB) map[string][]stored {
	t.Helper()
	nc, err := nats.Connect(s.url, nats.Timeout(30*time.Second))
	if err != nil {
		t.Fatalf("connect to %s: %v", s.name, err)
	}
	defer nc.Close()
	all := map[string][]stored{}
	for _, stream := range clusterStreams {
		if all[stream], err = copyOf(nc, stream); err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
	}
	return all
}

// eventually waits until something holds, for at most a time, and reports
// whether it did.
func eventually(t testing.TB, within time.Duration, holds func() bool) bool {
	t.Helper()
	for deadline := time.Now().Add(within); ; <-time.After(100 * time.Millisecond) {
		if holds() {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
	}
}
