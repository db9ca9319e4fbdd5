package traces

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"

	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
)

// JSON returns spans as OTLP JSON, an object on one line, which the Collector's
// file receiver reads.
func JSON(resource *resourcepb.Resource, spans []*tracepb.Span) ([]byte, error) {
	text, err := protojson.MarshalOptions{UseEnumNumbers: true}.Marshal(&tracepb.TracesData{
		ResourceSpans: []*tracepb.ResourceSpans{Group(resource, spans)},
	})
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var tree any
	if err := decoder.Decode(&tree); err != nil {
		return nil, err
	}
	if err := hexIDs(tree); err != nil {
		return nil, err
	}
	return json.Marshal(tree)
}

// hexIDs converts ids from base64 to hexadecimal: the only difference between
// OTLP's JSON and protobuf's.
func hexIDs(tree any) error {
	switch node := tree.(type) {
	case []any:
		for _, child := range node {
			if err := hexIDs(child); err != nil {
				return err
			}
		}
	case map[string]any:
		for key, child := range node {
			text, is := child.(string)
			if !is || key != "traceId" && key != "spanId" && key != "parentSpanId" {
				if err := hexIDs(child); err != nil {
					return err
				}
				continue
			}
			id, err := base64.StdEncoding.DecodeString(text)
			if err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
			node[key] = hex.EncodeToString(id)
		}
	}
	return nil
}
