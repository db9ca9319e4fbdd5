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

// desk is a model that needs no key: it follows a script, at the pace of a real one.
func desk() refold.ModelRef {
	return refold.ModelRef{Provider: "script", Model: "trip-desk", Open: func() (executor.Model, error) { return script{}, nil }}
}

type script struct{}

// Generate implements executor.Model.
func (script) Generate(ctx context.Context, r executor.Request, delta func(string)) (executor.Answer, error) {
	text, call := next(r.Messages)
	for _, word := range strings.SplitAfter(text, " ") {
		select {
		case <-time.After(30 * time.Millisecond):
			delta(word)
		case <-ctx.Done():
			return executor.Answer{}, ctx.Err()
		}
	}
	answer := executor.Answer{Text: text}
	if call != nil {
		answer.Calls = []executor.AnswerCall{*call}
	}
	return answer, nil
}

// next returns what the model says, and the call that it makes.
func next(messages []executor.Message) (text string, call *executor.AnswerCall) {
	last := messages[len(messages)-1]
	if last.Role != "tool" {
		if len(last.Parts) > 0 {
			return "I have your picture. Where would you like to go?", nil
		}
		city := cityIn(last.Text)
		return fmt.Sprintf("Let me look at the weather in %s first.", city), to("weather_get", place{city})
	}
	asked := ""
	for _, m := range messages {
		if m.Role == "user" {
			asked = m.Text
		}
	}
	made := messages[len(messages)-2].Calls[0]
	switch {
	case made.Name == "train_book" && last.Error:
		return "All right, I have booked nothing. Tell me if another day suits you better.", nil
	case made.Name == "train_book":
		return "It is booked. Your ticket is on its way to you. Have a good trip!", nil
	case strings.Contains(strings.ToLower(asked), "weather"):
		return "That is how it looks on Friday. Shall I find you a train?", nil
	}
	city := cityIn(asked)
	return fmt.Sprintf("Take a warm coat. The morning train to %s has good seats left. Shall I book it?", city),
		to("train_book", trip{From: "Oslo S", To: city, Leave: "Friday, 08:25", Price: "549 kr"})
}

// cityIn returns the city that a text names.
func cityIn(text string) string {
	for _, city := range []string{"Tromsø", "Trondheim", "Stavanger"} {
		if strings.Contains(text, city) {
			return city
		}
	}
	return "Bergen"
}

func to(tool string, arguments any) *executor.AnswerCall {
	text, _ := json.Marshal(arguments) // structs of strings
	return &executor.AnswerCall{Name: tool, Arguments: string(text)}
}
