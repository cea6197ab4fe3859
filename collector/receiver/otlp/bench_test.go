package otlp

import (
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/rollway/rollway/collector/receiver/decodetest"
)

// BenchmarkDecode reads a request of 100 records in both forms.
func BenchmarkDecode(b *testing.B) {
	const record = `{"timeUnixNano":"1779972000000000000","severityNumber":17,"severityText":"error","body":{"stringValue":"failed to charge customer"},"attributes":[` +
		`{"key":"trace_id","value":{"stringValue":"00000000002a"}},{"key":"customer_id","value":{"stringValue":"cus_123"}},` +
		`{"key":"region","value":{"stringValue":"eu-west"}},{"key":"retry_count","value":{"intValue":"2"}}]}`
	const request = `{"resourceLogs":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"payment-api"}}]},"scopeLogs":[{"logRecords":[`
	text := request + strings.Repeat(record+",", 99) + record + `]}]}]}`
	logs, err := (&plog.JSONUnmarshaler{}).UnmarshalLogs([]byte(text))
	if err != nil {
		b.Fatal(err)
	}
	binary, err := (&plog.ProtoMarshaler{}).MarshalLogs(logs)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("json", func(b *testing.B) { decodetest.Benchmark(b, Protocol, inJSON, text, 100) })
	b.Run("protobuf", func(b *testing.B) { decodetest.Benchmark(b, Protocol, inProtobuf, string(binary), 100) })
}
