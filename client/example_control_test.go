package client_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/client"
)

// The same submission is one run, however many programs request it, and however
// often.
func ExampleClient_Run_submission() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	url, stop := startRefold(ctx)
	defer stop()
	c, err := client.Connect(ctx, client.Options{URL: url})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	for range 2 { // as after a crash, when nobody knows whether it was asked for
		from, err := c.LastNotice(ctx)
		if err != nil {
			log.Fatal(err)
		}
		seq, err := c.Run(ctx, "hello", "What is here?", client.RunOptions{Submission: "order-7"})
		if err != nil {
			log.Fatal(err)
		}
		end, err := c.End(ctx, "hello", seq, from+1, nil)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("run", end.Run, end.Lifecycle, end.Output.Text)
	}

	// Output:
	// run 1 completed You said: What is here?
	// run 1 completed You said: What is here?
}

// A run is steered, paused, resumed and cancelled. Each request returns its
// sequence in the log, and Taken returns its outcome.
func ExampleClient_Taken() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, stop := startWithoutModel(ctx, `{"v":1,"rules":1,"tools":[],"config":{"provider":"p","model":"m"}}`)
	defer stop()

	tell := func(seq uint64, err error) {
		if err != nil {
			log.Fatal(err)
		}
		v, err := c.Taken(ctx, "hello", seq)
		var refused *client.RejectedError
		switch {
		case errors.As(err, &refused):
			fmt.Println("refused:", refused.Code)
		case err != nil:
			log.Fatal(err)
		default:
			fmt.Println(v.Lifecycle, "waits for", v.WaitsFor, "queued:", len(v.Queue))
		}
	}
	photo, err := client.ReadFile("../internal/media/testdata/dot.png")
	if err != nil {
		log.Fatal(err)
	}
	active := client.ControlOptions{}
	tell(c.Run(ctx, "hello", "What is here?", client.RunOptions{}))
	tell(c.Steer(ctx, "hello", "And there?", client.ControlOptions{Files: []client.File{photo}}))
	tell(c.Pause(ctx, "hello", active))
	tell(c.Pause(ctx, "hello", active))
	tell(c.Resume(ctx, "hello", nil, active))
	tell(c.Run(ctx, "hello", "Then this.", client.RunOptions{}))
	tell(c.EditRun(ctx, "hello", "Then that.", client.ControlOptions{Run: 2}))
	tell(c.Cancel(ctx, "hello", client.ControlOptions{Run: 2}))
	tell(c.Interrupt(ctx, "hello", active))
	tell(c.Cancel(ctx, "hello", client.ControlOptions{Reason: "it takes too long"}))
	tell(c.CloseSession(ctx, "hello", ""))
	tell(c.Steer(ctx, "hello", "One more.", active))

	// Output:
	// running waits for model queued: 0
	// running waits for model queued: 0
	// paused waits for model queued: 0
	// refused: illegal_transition
	// running waits for model queued: 0
	// running waits for model queued: 1
	// running waits for model queued: 1
	// running waits for model queued: 0
	// interrupting waits for model queued: 0
	// cancelled waits for nobody queued: 0
	// cancelled waits for nobody queued: 0
	// refused: session_closed
}

// A run of completion explicit goes on until a client ends it.
func ExampleClient_CompleteRun() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	url, stop := startRefold(ctx)
	defer stop()
	c, err := client.Connect(ctx, client.Options{URL: url})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	explicit := client.RunOptions{Config: []byte(`{"provider":"scripted","model":"echo","completion":"explicit"}`)}
	for _, session := range []string{"good", "bad"} {
		seq, err := c.Run(ctx, session, "Is it done?", explicit)
		if err != nil {
			log.Fatal(err)
		}
		for { // programs with more to do follow the notices instead
			v, err := c.View(ctx, session)
			if err != nil {
				log.Fatal(err)
			}
			if v.WaitsFor == "input" {
				break
			}
		}
		if session == "good" {
			_, err = c.CompleteRun(ctx, session, client.ControlOptions{})
		} else {
			_, err = c.FailRun(ctx, session, "not_done", client.ControlOptions{Reason: "it is not"})
		}
		if err != nil {
			log.Fatal(err)
		}
		end, err := c.End(ctx, session, seq, 0, nil)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(end.Lifecycle, end.Code, end.Detail, end.Output.Text)
	}

	// Output:
	// completed   You said: Is it done?
	// failed not_done it is not You said: Is it done?
}

// Calls that wait for a person are shown, and the decision is about the arguments
// shown.
func ExampleClient_Approvals() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, stop := startWithoutModel(ctx, `{"v":1,"rules":1,"config":{"provider":"p","model":"m"},"tools":[{
		"tool_id":"mail.send","tool_name":"send_mail","executor":{"kind":"effect","target":"mail"},"approval":"always",
		"args_schema":{"type":"object","properties":{"to":{"type":"string"}},"required":["to"]}}]}`)
	defer stop()
	if _, err := c.Run(ctx, "hello", "Write to them all.", client.RunOptions{}); err != nil {
		log.Fatal(err)
	}
	says(ctx, c, session.DoorLLM, `{"type":"ToolCallsObserved","data":{"effect":"r1t1","calls":[
		{"tool_name":"send_mail","arguments":"{\"to\":\"ann\"}"},
		{"tool_name":"send_mail","arguments":"{\"to\":\"bob\"}"},
		{"tool_name":"send_mail","arguments":"{\"to\":\"eve\"}"}]}}`)

	waiting, err := c.Approvals(ctx, "hello") // of all sessions: ""
	if err != nil {
		log.Fatal(err)
	}
	for _, a := range waiting {
		switch a.Arguments {
		case `{"to":"eve"}`:
			_, err = c.Deny(ctx, a, client.DecideOptions{Reason: "she has left"})
		case `{"to":"bob"}`:
			_, err = c.Approve(ctx, a, client.DecideOptions{Arguments: `{"to":"robert"}`})
		default:
			_, err = c.Approve(ctx, a, client.DecideOptions{})
		}
		if err != nil {
			log.Fatal(err)
		}
	}
	v, err := c.View(ctx, "hello")
	if err != nil {
		log.Fatal(err)
	}
	for _, call := range v.Batch.Calls {
		fmt.Println(call.Effect, call.Status, cmp.Or(call.Detail, "-"))
	}
	edited, err := c.Arguments(ctx, "hello", "r1t1c1")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("waits for", v.WaitsFor, "and bob's is now", edited)

	// Output:
	// r1t1c0 open -
	// r1t1c1 waiting -
	// r1t1c2 ignored a person decided that the call does not run: she has left
	// waits for tools and bob's is now {"to":"robert"}
}

// A host loop executes the calls that notices announce and the view lists.
func ExampleClient_SettleCall() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, stop := startWithoutModel(ctx, `{"v":1,"rules":1,"config":{"provider":"p","model":"m"},"tools":[{
		"tool_id":"ui.show","tool_name":"show","executor":{"kind":"host_loop","target":"editor"},"args_schema":{"type":"object"}}]}`)
	defer stop()
	if _, err := c.Run(ctx, "hello", "Show me both.", client.RunOptions{}); err != nil {
		log.Fatal(err)
	}
	says(ctx, c, session.DoorLLM, `{"type":"ToolCallsObserved","data":{"effect":"r1t1","calls":[
		{"tool_name":"show","arguments":"{\"file\":\"a\"}"},{"tool_name":"show","arguments":"{\"file\":\"b\"}"}]}}`)

	settled := 0
	for n, err := range c.Notices(ctx, "hello", 0) {
		if err != nil {
			log.Fatal(err)
		}
		planned, ok := n.Body().(session.CallsPlanned)
		if !ok {
			continue
		}
		v, err := c.View(ctx, "hello")
		if err != nil {
			log.Fatal(err)
		}
		for _, call := range v.Batch.Calls {
			if call.HostLoop != "editor" || call.Status != session.CallOpen {
				continue
			}
			fmt.Println("group", planned.Group, call.Effect, call.ToolName, call.Arguments)
			_, err := c.SettleCall(ctx, "hello", session.ToolCallSettled{
				Effect: call.Effect, Status: string(session.CallSucceeded), PlanHash: v.Batch.PlanHash,
				Output: &session.Content{Text: "shown"},
			})
			if err != nil {
				log.Fatal(err)
			}
			settled++
		}
		if settled == len(v.Batch.Calls) {
			break
		}
	}
	v, err := c.View(ctx, "hello")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("waits for", v.WaitsFor)

	// Output:
	// group 0 r1t1c0 show {"file":"a"}
	// group 1 r1t1c1 show {"file":"b"}
	// waits for model
}

// says publishes an event to the session of the examples.
func says(ctx context.Context, c *client.Client, door session.Door, payload string) {
	if _, err := c.Publish(ctx, door, "hello", []byte(payload), ""); err != nil {
		panic(err)
	}
}
