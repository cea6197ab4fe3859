package loki

import (
	"strings"
	"testing"

	"github.com/rollway/rollway/collector/receiver/decodetest"
)

// BenchmarkDecode reads a request of 100 lines in JSON, and of 100 lines that are JSON.
func BenchmarkDecode(b *testing.B) {
	for name, value := range map[string]string{
		"text": `["1779972000000000000","failed to charge customer cus_123 in eu-west, attempt 2 of 3",{"trace_id":"00000000002a"}]`,
		"json": `["1779972000000000000","{\"level\":\"error\",\"message\":\"failed to charge customer\",\"customer_id\":\"cus_123\",\"region\":\"eu-west\",\"retry_count\":2}"]`,
	} {
		body := `{"streams":[{"stream":{"service_name":"payment-api","level":"error","env":"prod"},"values":[` + strings.Repeat(value+",", 99) + value + `]}]}`
		b.Run(name, func(b *testing.B) { decodetest.Benchmark(b, Protocol, "application/json", body, 100) })
	}
}
