package main

// The key is nowhere except in requests to its provider, whatever the provider
// answers: not in the log of events, effects, notices or snapshots, and not in
// the daemon's logs.

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/llm/provider"
	"github.com/refold/refold/planner"
)

func TestNothingStoredHoldsKeys(t *testing.T) {
	t.Parallel()
	const key = "sk-live-0123456789-very-secret"
	// Each run asks once: all of these are final, and all tell the key.
	replies := []struct {
		status int
		body   string
	}{
		{401, `{"error":{"message":"Incorrect API key provided: ` + key + `"}}`},
		{400, `{"error":{"type":"invalid_request_error","message":"` + key + ` may not"}}`},
		{404, `{"error":{"code":404,"status":"NOT_FOUND","message":"` + key + `"}}`},
		{403, key},
	}
	for _, p := range provider.All {
		kind := p.Kind
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			asked := make(chan int, 1)
			asked <- 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				n := <-asked
				asked <- n + 1
				if !bytes.Contains(fmt.Append(nil, r.Header), []byte(key)) {
					t.Errorf("request %d has no key: %v", n, r.Header)
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(replies[n%len(replies)].status)
				fmt.Fprint(w, replies[n%len(replies)].body)
			}))
			defer server.Close()
			d := planner.Builtin()
			install, err := codec.Marshal(session.InstallRecord{
				Config:         &session.RunConfig{Provider: kind, Model: "m"},
				DefaultProfile: d.DefaultProfile, ProfileByProvider: d.ProfileByProvider, Profiles: d.Profiles, Rules: session.RulesVersion, Tools: d.Tools, V: session.Version,
			})
			bustest.OK(t, err)
			s := startSystem(t, install)
			stop := s.daemon(t, nil, "--log-level", "debug", "--model", kind+"="+kind+":"+server.URL, "--key-file", kind+"="+write(t, "key", key+"\n"))
			for i, reply := range replies {
				if end := s.ask(t, "s1", fmt.Sprint("run ", i)); end.Lifecycle != session.Failed {
					t.Errorf("after %d: got %+v", reply.status, end)
				}
			}
			if n := <-asked; n != len(replies) {
				t.Errorf("asked %d times, want %d: a reply was not final", n, len(replies))
			}
			if _, log := stop(); bytes.Contains([]byte(log), []byte(key)) {
				t.Errorf("the log tells the key: %s", log)
			}
			js, err := s.nc.JetStream()
			bustest.OK(t, err)
			read := 0
			for stream := range js.Streams() {
				for seq := stream.State.FirstSeq; seq <= stream.State.LastSeq; seq++ {
					msg, err := js.GetMsg(stream.Config.Name, seq)
					if err != nil { // deleted
						continue
					}
					read++
					if bytes.Contains(msg.Data, []byte(key)) || bytes.Contains(fmt.Append(nil, msg.Header), []byte(key)) {
						t.Errorf("%s, %d, %s: holds the key: %q", stream.Config.Name, seq, msg.Subject, msg.Data)
					}
				}
			}
			if read < 4*len(replies) {
				t.Errorf("read %d messages of %d runs", read, len(replies))
			}
		})
	}
}
