package dashboards_test

// Dashboard is a page of panels.
type Dashboard struct {
	Name   string // of its file
	Title  string
	Panels []Panel
}

// Panel shows some queries over time.
type Panel struct {
	Title   string
	Unit    string // of Grafana: s, bytes, short, ops
	Queries []Query
}

// Query is a query of Prometheus, and the legend of its series.
type Query struct{ Expr, Legend string }

// rate shows the increase of a counter in a second, by some labels.
func rate(title, counter, by string) Panel {
	return Panel{title, "ops", []Query{{sum("rate("+counter+"[$__rate_interval])", by), legend(by)}}}
}

// slow shows the median and the 95th percentile of a histogram of seconds.
func slow(title, histogram, by string) Panel {
	labels, name := "le", ""
	if by != "" {
		labels, name = "le, "+by, " "+legend(by)
	}
	quantile := func(q string) string {
		return "histogram_quantile(" + q + ", " + sum("rate("+histogram+"_bucket[$__rate_interval])", labels) + ")"
	}
	return Panel{title, "s", []Query{{quantile("0.5"), "median" + name}, {quantile("0.95"), "95 %" + name}}}
}

// level shows a gauge, added up by some labels.
func level(title, unit, gauge, by string) Panel {
	return Panel{title, unit, []Query{{sum(gauge, by), legend(by)}}}
}

// most is level with the greatest value instead of the sum.
func most(title, unit, gauge, by string) Panel {
	expr := "max(" + gauge + ")"
	if by != "" {
		expr = "max by (" + by + ") (" + gauge + ")"
	}
	return Panel{title, unit, []Query{{expr, legend(by)}}}
}

func sum(expr, by string) string {
	if by == "" {
		return "sum(" + expr + ")"
	}
	return "sum by (" + by + ") (" + expr + ")"
}

// All are the dashboards.
var All = []Dashboard{
	{"overview", "Refold: overview", []Panel{
		rate("Runs that ended", "refold_runs_total", "lifecycle"),
		slow("Duration of runs", "refold_run_duration_seconds", "lifecycle"),
		rate("Events", "refold_events_total", "outcome"),
		slow("Event to stored outputs", "refold_event_latency_seconds", ""),
		level("Effects that wait", "short", "refold_effects_waiting", "class, target"),
		rate("Cost, millionths", "refold_cost_total", "model"),
		most("Stopped sessions", "short", "refold_quarantined", ""),
		most("Durability", "short", "refold_durability", "is"),
	}},
	{"sessions", "Refold: sessions", []Panel{
		slow("Wait in the queue", "refold_run_queue_duration_seconds", ""),
		slow("Turns", "refold_turn_duration_seconds", "target, outcome"),
		{"Turns a run", "short", []Query{{"histogram_quantile(0.95, " + sum("rate(refold_run_turns_bucket[$__rate_interval])", "le, lifecycle") + ")", "95 % {{lifecycle}}"}}},
		rate("Calls", "refold_calls_total", "tool, status"),
		slow("Duration of calls", "refold_call_duration_seconds", "target"),
		rate("Refused calls", "refold_calls_refused_total", "code"),
		rate("Approvals", "refold_approvals_total", "decision"),
		slow("Wait for a person", "refold_approval_duration_seconds", ""),
		rate("Rejected events", "refold_rejections_total", "code"),
		rate("Events that name no session", "refold_events_skipped_total", ""),
		rate("Messages of other systems", "refold_log_foreign_total", "kind"),
		rate("Notices", "refold_notices_total", "type"),
		rate("Budgets exceeded", "refold_budget_breaches_total", "budget"),
		rate("Retries", "refold_retries_total", "code"),
		rate("Runs by code", "refold_runs_total", "lifecycle, code"),
	}},
	{"fleet", "Refold: session-actors and bridges", []Panel{
		level("Owners of lanes", "short", "refold_lane_owned", "lane"),
		most("Age of lanes", "s", "refold_lane_age_seconds", "lane"),
		most("Undelivered events", "short", "refold_lane_pending", "lane"),
		level("Unacknowledged events", "short", "refold_lane_unstored", "lane"),
		rate("Lanes taken over", "refold_lane_takeovers_total", "lane"),
		rate("Lanes begun anew", "refold_lane_resets_total", "lane"),
		slow("Folding", "refold_fold_duration_seconds", ""),
		level("Sessions in memory", "short", "refold_sessions_memory", "instance"),
		level("Memory of sessions", "bytes", "refold_sessions_bytes", "instance"),
		rate("Loads", "refold_sessions_loads_total", "from"),
		slow("Duration of loads", "refold_load_duration_seconds", ""),
		rate("Effects asked", "refold_effects_asked_total", "class, target"),
		rate("Effects withdrawn", "refold_effects_withdrawn_total", "class, target"),
		level("Effects that nobody has taken", "short", "refold_effects_untaken", "class, target"),
		rate("Unknown outcomes", "refold_outcome_unknown_total", "class, target"),
		level("Effects carried out", "short", "refold_bridge_in_flight", "target"),
		level("Slots", "short", "refold_bridge_slots", "target"),
		rate("Settled", "refold_bridge_settled_total", "instance"),
		rate("Given back", "refold_bridge_given_back_total", "target"),
		rate("Claims", "refold_claims_total", "outcome"),
		slow("Duration of starts", "refold_bridge_execute_duration_seconds", "class, outcome"),
		rate("Caches", "refold_bridge_cache_total", "cache, outcome"),
		most("Troubles of targets", "short", "refold_bridge_troubles", "target"),
		slow("Wakes that session-actors settled: late by", "refold_wakes_late_seconds", ""),
		rate("Webhooks: tries", "refold_webhook_tries_total", "webhook, outcome"),
		most("Webhooks: notices that wait", "short", "refold_webhook_waiting", "webhook"),
		rate("Webhooks: dead letters", "refold_webhook_dead_total", "webhook"),
	}},
	{"models", "Refold: models", []Panel{
		rate("Tokens", "refold_tokens_total", "model, kind"),
		rate("Cost, millionths", "refold_cost_total", "model"),
		slow("Generations", "gen_ai_client_operation_duration_seconds", "gen_ai_request_model, error_type"),
		slow("First words", "gen_ai_client_operation_time_to_first_chunk_seconds", "gen_ai_request_model"),
		{"Tokens a generation", "short", []Query{{"histogram_quantile(0.95, " + sum("rate(gen_ai_client_token_usage_bucket[$__rate_interval])", "le, gen_ai_request_model, gen_ai_token_type") + ")", "95 % {{gen_ai_request_model}} {{gen_ai_token_type}}"}}},
		rate("Further tries", "refold_bridge_retried_total", "target"),
		most("Open breakers", "short", "refold_bridge_open_breaker", "target"),
	}},
	{"storage", "Refold: storage", []Panel{
		slow("Storing", "refold_store_duration_seconds", ""),
		{"Messages stored together", "short", []Query{{"histogram_quantile(0.95, " + sum("rate(refold_commit_messages_bucket[$__rate_interval])", "le") + ")", "95 %"}}},
		rate("Messages not stored", "refold_commit_errors_total", "code"),
		{"Size of the log", "bytes", []Query{{"max(refold_log_bytes)", "size"}, {"max(refold_log_limit_bytes)", "limit"}}},
		most("Lost events", "short", "refold_log_missing", ""),
		{"Clocks that are off", "s", []Query{{"max(abs(refold_clock_ahead_seconds))", "session-actors"}, {"max(abs(refold_bridge_clock_ahead_seconds))", "bridges"}}},
		most("What is wrong with streams", "short", "refold_streams_wrong", ""),
		rate("Snapshots", "refold_snapshots_total", "outcome"),
		rate("Compared snapshots", "refold_snapshots_compared_total", "outcome"),
		rate("Sessions stopped", "refold_quarantines_total", "reason"),
		rate("Retention: sessions", "refold_retain_sessions_total", "outcome"),
		most("Retention: sessions that wait", "short", "refold_retain_waiting", ""),
		{"Retention: since its last pass", "s", []Query{{"time() - max(refold_retain_last_seconds)", "age"}}},
	}},
}

// Unshown are metrics that need no dashboard, and why.
var Unshown = map[string]string{
	"refold.build":                                           "a label of other series: it says what runs",
	"refold.rules":                                           "as refold.build",
	"refold.telemetry.dropped":                               "its alert is in the collector's own metrics",
	"gen_ai.client.inference.duration":                       "in place of gen_ai.client.operation.duration, if asked for",
	"gen_ai.client.inference.time_to_first_chunk":            "in place of gen_ai.client.operation.time_to_first_chunk, if asked for",
	"gen_ai.client.inference.usage.input_tokens":             "in place of gen_ai.client.token.usage, if asked for",
	"gen_ai.client.inference.usage.output_tokens":            "in place of gen_ai.client.token.usage, if asked for",
	"gen_ai.client.inference.usage.cache_read.input_tokens":  "a part of the input tokens; refold.tokens shows it",
	"gen_ai.client.inference.usage.cache_write.input_tokens": "a part of the input tokens",
	"gen_ai.client.inference.usage.reasoning.output_tokens":  "a part of the output tokens; refold.tokens shows it",
	"gen_ai.client.inference.operation.input_tokens":         "in place of gen_ai.client.token.usage, if asked for",
	"gen_ai.client.inference.operation.output_tokens":        "in place of gen_ai.client.token.usage, if asked for",
	"refold.bridge.deltas":                                   "how much is streamed says nothing of how well",
}
