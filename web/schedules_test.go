package web_test

// The schedules of a session: who may set them, and what they look like.

import (
	"net/http"
	"testing"

	"github.com/refold/refold"
	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/refoldtest"
	"github.com/refold/refold/web"
)

// schedules lists the schedules of a session. The list follows the log.
func (w *world) schedules() []session.Schedule {
	w.t.Helper()
	var list web.ScheduleList
	w.want(http.StatusOK, &list, "reader", "GET", "/v1/sessions/hello/schedules", "")
	return list.Schedules
}

func TestSchedulesAreSetByOperators(t *testing.T) {
	t.Parallel()
	w := serve(t, web.Options{}, refold.Model(refoldtest.Model(refoldtest.Say("Done."))))
	const all = "/v1/sessions/hello/schedules"
	const path = all + "/report"
	const body = `{"cron": "0 9 * * 1-5", "zone": "Europe/Berlin", "input": "Write the report.", "when_busy": "queue", "catch_up": "none", "config": {"provider": "openai", "model": "m"}}`
	w.refuse(http.StatusNotFound, "no_session", "acme", "GET", all, "")
	w.refuse(http.StatusNotFound, "no_session", "acme", "DELETE", path, "")
	for _, token := range []string{"reader", "asker", "approver"} {
		w.refuse(http.StatusForbidden, "forbidden", token, "PUT", path, body)
		w.refuse(http.StatusForbidden, "forbidden", token, "DELETE", path, "")
		w.refuse(http.StatusForbidden, "forbidden", token, "POST", path+"/pause", "")
		w.refuse(http.StatusForbidden, "forbidden", token, "POST", path+"/resume", "")
	}
	w.refuse(http.StatusUnprocessableEntity, "invalid_data", "acme", "PUT", path, `{"cron": "0 9 * *", "input": "x"}`)
	w.refuse(http.StatusUnprocessableEntity, "invalid_data", "acme", "PUT", path, `{"cron": "@daily", "zone": "Mars", "input": "x"}`)
	w.refuse(http.StatusBadRequest, "bad_request", "acme", "PUT", path, `{"cron": "@daily"}`)
	w.refuse(http.StatusBadRequest, "bad_request", "acme", "PUT", path, `{"cron": "@daily", "input": "x", "config": 3}`)
	w.refuse(http.StatusUnprocessableEntity, "invalid_data", "acme", "PUT", all+"/no.token", body)

	var set web.Taken
	w.want(http.StatusOK, &set, "acme", "PUT", path, body)
	got := w.schedules()
	if len(got) != 1 || got[0].Name != "report" || got[0].Rev != set.Seq || got[0].Next == 0 || got[0].Due < got[0].Next || got[0].Zone != "Europe/Berlin" || got[0].WhenBusy != "queue" || got[0].CatchUp != "none" {
		t.Errorf("got %+v of event %d", got, set.Seq)
	}
	w.refuse(http.StatusNotFound, "no_session", "other", "GET", all, "")
	w.refuse(http.StatusConflict, "stale", "acme", "PUT", path, `{"cron": "@daily", "input": "x", "rev": 1}`)
	w.want(http.StatusOK, nil, "acme", "POST", path+"/pause", "")
	if got := w.schedules(); got[0].Paused != "request" || got[0].Next != 0 {
		t.Errorf("paused is %+v", got)
	}
	w.want(http.StatusOK, nil, "acme", "POST", path+"/resume", "")
	if got := w.schedules(); got[0].Paused != "" || got[0].Next == 0 {
		t.Errorf("resumed is %+v", got)
	}
	w.want(http.StatusOK, nil, "acme", "DELETE", path, "")
	if got := w.schedules(); len(got) != 0 {
		t.Errorf("removed is %+v", got)
	}
	for _, gone := range []struct{ method, path string }{{"DELETE", path}, {"POST", path + "/pause"}, {"POST", path + "/resume"}} {
		w.refuse(http.StatusNotFound, "unknown_schedule", "acme", gone.method, gone.path, "")
	}
}
