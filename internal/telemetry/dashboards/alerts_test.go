package dashboards_test

// Alert is a rule of Prometheus.
type Alert struct {
	Name     string
	Expr     string
	For      string // how long it must hold
	Severity string // page: somebody must act now; ticket: soon
	Summary  string
	Do       string
}

// Alerts are the rules.
var Alerts = []Alert{
	{"RefoldLaneWithoutOwner", "sum by (lane) (refold_lane_owned) == 0", "30s", "page",
		"Nobody owns lane {{ $labels.lane }}.", "Start a session-actor, or see in its log why it does not take its share."},
	{"RefoldLaneBehind", "max by (lane) (refold_lane_age_seconds) > 10", "1m", "page",
		"The oldest event of lane {{ $labels.lane }} waits for more than 10 s.", "See in the session-actors' logs what can't be stored."},
	{"RefoldEffectsWait", "sum by (class, target) (min_over_time(refold_effects_untaken[2m])) > 0", "3m", "page",
		"No bridge of {{ $labels.class }}/{{ $labels.target }} takes what waits.", "Start a bridge of this target, or more of them: refold tools check lists those that run."},
	{"RefoldSessionQuarantined", "max(refold_quarantined) > 0", "0m", "ticket",
		"{{ $value }} sessions are stopped.", "Find out why with refold replay SESSION --verify, then run refold release SESSION."},
	{"RefoldLogHasHoles", "max(refold_log_missing) > 0", "0m", "page",
		"The log has lost {{ $value }} events.", "Run refold verify --all --quarantine, and look at the disks of the NATS servers."},
	{"RefoldStreamsWrong", "max(refold_streams_wrong) > 0", "0m", "page",
		"A stream is missing, was changed or has no leader, a consumer is paused, or a limit of the account is reached.", "refold bridge doctor names it. docs/operations.md, What is noticed, says what to do."},
	{"RefoldForeignSystem", `sum(increase(refold_log_foreign_total{kind="heartbeat"}[5m])) > 0`, "0m", "page",
		"Another Refold system with this prefix is heard: two accounts are joined.", "foreign_system in the session-actors' logs, and refold bridge doctor, name it. docs/operations.md, Leafnodes, gateways, mirrors, says how to separate them."},
	{"RefoldOutcomeUnknown", "sum by (class, target) (increase(refold_outcome_unknown_total[15m])) > 0", "0m", "ticket",
		"Nobody knows whether calls of {{ $labels.target }} took effect.", "See why bridges of this target ended."},
	{"RefoldDurabilityWeak", `max(refold_durability{is="always"}) == 0 or max(refold_durability{is=~"unknown|interval"}) == 1`, "1m", "ticket",
		"The servers acknowledge before they sync.", "Set sync_interval: always on every server, or drop this alert if you accept that."},
	{"RefoldApprovalsExpire", `sum(increase(refold_approvals_total{decision="expired"}[1h])) > 0`, "0m", "ticket",
		"Calls were denied because nobody decided in time.", "See refold approvals."},
	{"RefoldSchedulePaused", `sum(increase(refold_notices_total{type="SchedulePaused"}[15m])) > 0`, "0m", "ticket",
		"A schedule was paused: its last runs failed, or it has no next time.", "refold sessions tells which sessions failed; refold schedule list SESSION says why. docs/operations.md, Schedules, says what to do."},
	{"RefoldWebhookDead", "sum by (webhook) (increase(refold_webhook_dead_total[15m])) > 0", "0m", "ticket",
		"The receiver of webhook {{ $labels.webhook }} did not take notices within a day: they are dead letters.", "webhook_dead in the server's log names the session and the failure. docs/http.md, Dead letters, says how to read them."},
	{"RefoldLogAlmostFull", "max(refold_log_bytes) > 0.8 * max(refold_log_limit_bytes)", "5m", "page",
		"The log is at 80 % of its limit.", "Raise the limit of the stream; at 90 % clients are refused."},
	{"RefoldRetentionStalled", "time() - max(last_over_time(refold_retain_last_seconds[30d])) > 2 * 86400", "0m", "ticket",
		"No pass of retention has ended for two days.", "See retention_failed in the log of refold retain, or start it again."},
	{"RefoldNotStored", `sum(increase(refold_commit_errors_total{code="stream_full"}[5m])) > 0`, "0m", "page",
		"A stream takes no more messages.", "Make room on the disks of the NATS servers, or raise the limits of their streams."},
}
