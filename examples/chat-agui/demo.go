package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/refold/refold"
	"github.com/refold/refold/bridge/executor"
)

// demo is a model that needs no key: it answers by a few words of what it is told, and
// writes as slowly as a real one.
func demo(pause time.Duration) refold.ModelRef {
	return refold.ModelRef{Provider: "demo", Model: "travel-desk", Open: func() (executor.Model, error) { return desk{pause}, nil }}
}

// desk implements executor.Model.
type desk struct{ pause time.Duration } // between words

// Generate implements executor.Model.
func (d desk) Generate(ctx context.Context, r executor.Request, delta func(string)) (executor.Answer, error) {
	last := r.Messages[len(r.Messages)-1]
	var text, tool string
	var arguments any
	if last.Role == "tool" {
		text = afterTool(r.Messages)
	} else {
		text, tool, arguments = answer(last)
	}
	for _, word := range strings.SplitAfter(text, " ") {
		select {
		case <-time.After(d.pause):
			delta(word)
		case <-ctx.Done():
			return executor.Answer{}, ctx.Err()
		}
	}
	a := executor.Answer{Text: text}
	if tool != "" {
		raw, err := json.Marshal(arguments)
		if err != nil {
			return executor.Answer{}, err
		}
		a.Calls = []executor.AnswerCall{{Name: tool, Arguments: string(raw)}}
	}
	return a, nil
}

// answer returns what the desk says to a user, and the call that it makes.
func answer(m executor.Message) (text, tool string, arguments any) {
	said := strings.ToLower(m.Text)
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(said, w) {
				return true
			}
		}
		return false
	}
	files := 0
	for _, p := range m.Parts {
		if len(p.Data) > 0 {
			files++
		}
	}
	switch {
	case files > 0:
		return fmt.Sprintf("Thank you, I have it: %d in pictures and papers. It goes with your booking.", files), "", nil
	case has("book", "yes", "ticket"):
		return "I will book that.", "tickets_book", order{What: "Fløibanen funicular", Tickets: 2, When: "today at 14:00"}
	case has("time", "clock"):
		return "Your page knows.", "local_time", struct{}{}
	case has("bergen", "today", "weather"):
		return "Let me see what the day is like.", "weather_get", city{"Bergen"}
	}
	return "I know the weather in Bergen, and I can book tickets for the funicular. What would you like?", "", nil
}

// afterTool returns what the desk says to the result of its last call.
func afterTool(all []executor.Message) string {
	result := all[len(all)-1]
	for i := len(all) - 1; i >= 0; i-- {
		for _, c := range all[i].Calls {
			switch {
			case c.ID != result.CallID:
			case c.Name == "weather_get":
				return "Rain until noon: begin at the Fish Market, under a roof, and look at the wooden houses of Bryggen between two showers. " +
					"After lunch it is clear, so take the funicular up to Fløyen and walk down through the woods. Shall I book two tickets for 14:00?"
			case c.Name == "local_time" && !result.Error:
				return "It is " + result.Text + " where you are. The last funicular goes at 23:00."
			case result.Error:
				return "Then I have booked nothing. Tell me if I should look for another time."
			}
		}
	}
	return "Your tickets are booked. Be at the lower station ten minutes before. Have a good day in Bergen!"
}
