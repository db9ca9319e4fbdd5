package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/bridge/function"
)

// station knows the weather. It stands for a remote service.
type station struct {
	forecasts map[string][]string

	mu   sync.Mutex
	sent map[string]int // numbers of warnings, by idempotency key
}

func newStation() *station {
	return &station{sent: map[string]int{}, forecasts: map[string][]string{
		"Bergen": {"rain", "rain", "showers"}, "Oslo": {"sun", "clouds", "sun"},
	}}
}

// forecastArguments are the arguments of weather.get.
type forecastArguments struct {
	City string `json:"city" description:"Name of the city: Bergen or Oslo." minLength:"1"`
	Days int    `json:"days,omitempty" description:"How many days from today; 1 without it." minimum:"1" maximum:"3"`
}

// forecast is its result, which the model sees as JSON.
type forecast struct {
	City string   `json:"city"`
	Days []string `json:"days"`
}

func (s *station) get(_ context.Context, in forecastArguments) (forecast, error) {
	days, ok := s.forecasts[in.City]
	if !ok {
		return forecast{}, &executor.Error{Code: "unknown_city", Detail: "ask for Bergen or Oslo"}
	}
	return forecast{City: in.City, Days: days[:max(1, in.Days)]}, nil
}

// warnArguments are the arguments of weather.warn.
type warnArguments struct {
	City string `json:"city" minLength:"1"`
	Text string `json:"text" minLength:"1" maxLength:"160"`
}

// warn is the tool weather.warn. Its key makes sure that a warning is sent
// once, even if this process dies: a real service would store the key.
func (s *station) warn(ctx context.Context, in warnArguments) (string, error) {
	call, ok := function.CallOf(ctx)
	if !ok {
		return "", errors.New("weather.warn is called by a bridge")
	}
	if len(s.forecasts[in.City]) == 0 {
		return "", &executor.Error{Code: "unknown_city", Detail: "nobody is there to be warned"}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	number, again := s.sent[call.IdempotencyKey]
	if !again {
		number = len(s.sent) + 1
		s.sent[call.IdempotencyKey] = number
	}
	return fmt.Sprintf("warning %d is sent to %s: %s", number, in.City, in.Text), nil
}
