package traces

import (
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
)

// Variables are the variables of OpenTelemetry that name a collector for traces.
// The first one set counts.
var Variables = []string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"}

// HTTP returns an uploader that speaks OTLP over HTTP. It sends to url, such as
// http://127.0.0.1:4318/v1/traces, or, if that is empty, to the collector that
// OpenTelemetry's variables name. Headers, certificates, compression and
// time-outs come from the variables.
func HTTP(url string) Uploader {
	var options []otlptracehttp.Option
	if url != "" {
		options = append(options, otlptracehttp.WithEndpointURL(url))
	}
	return otlptracehttp.NewClient(options...)
}
