package presence_test

// Services of any owner: their info, and requests to them.

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/refold/refold/internal/bus/bustest"
	"github.com/refold/refold/internal/bus/testbus"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/presence"
)

func TestServicesReturnsEveryInstance(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t)
	b := testbus.Connect(t, node, "")
	if all, err := b.Services(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("nobody is there: got %v (%v)", all, err)
	}
	raw, _ := testbus.JS(t, node)
	for _, name := range []string{"orders", "mail", "orders"} {
		s, err := micro.AddService(raw, micro.Config{Name: name, Version: "1.2.3", Description: "Does " + name})
		bustest.OK(t, err)
		bustest.OK(t, s.AddEndpoint("do", micro.HandlerFunc(func(micro.Request) {}), micro.WithEndpointSubject(name+".do"), micro.WithEndpointMetadata(map[string]string{"a": name})))
	}
	bustest.OK(t, raw.Flush())
	all, err := b.Services(t.Context())
	if err != nil || len(all) != 3 {
		t.Fatalf("got %v (%v), want three", all, err)
	}
	for i, name := range []string{"mail", "orders", "orders"} {
		s := all[i]
		if s.Name != name || s.ID == "" || s.Version != "1.2.3" || s.Description != "Does "+name || len(s.Endpoints) != 1 {
			t.Errorf("got %+v, want %s", s, name)
			continue
		}
		if e := s.Endpoints[0]; e.Name != "do" || e.Subject != name+".do" || e.QueueGroup != micro.DefaultQueueGroup || e.Metadata["a"] != name {
			t.Errorf("%s: got %+v", name, e)
		}
	}
	if !slices.IsSortedFunc(all[1:], func(a, b presence.FoundService) int { return strings.Compare(a.ID, b.ID) }) {
		t.Errorf("not by ID: %v", all)
	}
}

func TestRequestToAService(t *testing.T) {
	t.Parallel()
	node := bustest.Configured(t, `
		jetstream { store_dir: DIR }
		authorization { users: [ {user: a, password: p}, {user: u, password: p, permissions: { publish: { deny: ["secret.>"] } }} ] }
	`)
	as := func(user string) string { return strings.Replace(node.URL(), "://", "://"+user+":p@", 1) }
	b := testbus.ConnectWith(t, natsio.Options{URL: as("u")})
	raw, err := nats.Connect(as("a"))
	bustest.OK(t, err)
	defer raw.Close()
	s, err := micro.AddService(raw, micro.Config{Name: "orders", Version: "1.2.3"})
	bustest.OK(t, err)
	answers := map[string]func(r micro.Request) error{
		"echo":  func(r micro.Request) error { return r.Respond([]byte(r.Headers().Get("Key") + string(r.Data()))) },
		"fails": func(r micro.Request) error { return r.Error("503", "later", []byte("beside")) },
		"hangs": func(micro.Request) error { return nil },
	}
	for name, answer := range answers {
		if err := s.AddEndpoint(name, micro.HandlerFunc(func(r micro.Request) {
			if err := answer(r); err != nil {
				t.Error(err)
			}
		})); err != nil {
			t.Fatal(err)
		}
	}
	bustest.OK(t, raw.Flush())
	r, err := b.Request(t.Context(), presence.ServiceRequest{Subject: "echo", Header: map[string]string{"Key": "k"}, Data: []byte("!")})
	if want := (presence.ServiceReply{Data: []byte("k!")}); err != nil || string(r.Data) != "k!" || r.Error != "" || r.ErrorCode != "" {
		t.Errorf("got %+v (%v), want %+v", r, err, want)
	}
	r, err = b.Request(t.Context(), presence.ServiceRequest{Subject: "fails"})
	if err != nil || r.ErrorCode != "503" || r.Error != "later" || string(r.Data) != "beside" {
		t.Errorf("got %+v (%v), want 503, later", r, err)
	}
	if _, err = b.Request(t.Context(), presence.ServiceRequest{Subject: "nobody"}); !errors.Is(err, presence.ErrNobodyServes) {
		t.Errorf("nobody there: got %v, want %v", err, presence.ErrNobodyServes)
	}
	var denied *natsio.PermissionError
	if _, err = b.Request(t.Context(), presence.ServiceRequest{Subject: "secret.x", Patient: true}); !errors.As(err, &denied) {
		t.Errorf("denied: got %v, want a *natsio.PermissionError", err)
	}
	var large *natsio.MaxPayloadError
	if _, err = b.Request(t.Context(), presence.ServiceRequest{Subject: "echo", Data: make([]byte, 2<<20)}); !errors.As(err, &large) {
		t.Errorf("too large: got %v, want a *natsio.MaxPayloadError", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err = b.Request(ctx, presence.ServiceRequest{Subject: "hangs"}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v, want %v", err, context.Canceled)
	}
}

// A lost connection ends requests, unless they are patient.
func TestLostConnectionEndsImpatientRequests(t *testing.T) {
	t.Parallel()
	node := bustest.Server(t)
	b := testbus.Connect(t, node, "")
	asked := make(chan *nats.Msg, 2)
	raw, _ := testbus.JS(t, node)
	if _, err := raw.Subscribe("slow.*", func(m *nats.Msg) { asked <- m }); err != nil {
		t.Fatal(err)
	}
	bustest.OK(t, raw.Flush())
	ends := map[bool]chan error{true: make(chan error, 1), false: make(chan error, 1)}
	for patient, end := range ends {
		subject := map[bool]string{true: "slow.patient", false: "slow.other"}[patient]
		go func() {
			_, err := b.Request(t.Context(), presence.ServiceRequest{Subject: subject, Patient: patient})
			end <- err
		}()
	}
	var patient *nats.Msg
	for range ends {
		if m := <-asked; m.Subject == "slow.patient" {
			patient = m
		}
	}
	conns, err := node.Raw().Connz(nil)
	bustest.OK(t, err)
	for _, c := range conns.Conns {
		if c.Name != b.Names().Prefix() {
			continue
		}
		bustest.OK(t, node.Raw().DisconnectClientByID(c.Cid))
	}
	if err := <-ends[false]; !errors.Is(err, presence.ErrAnswerLost) {
		t.Errorf("got %v, want %v", err, presence.ErrAnswerLost)
	}
	if _, err := b.Services(t.Context()); err != nil { // now the server has its subscriptions again
		t.Fatal(err)
	}
	bustest.OK(t, patient.Respond([]byte("done")))
	if err := <-ends[true]; err != nil {
		t.Errorf("the patient one: got %v", err)
	}
}
