package normalize_test

import (
	"fmt"
	"os"
	"time"

	"github.com/rollway/rollway/collector/normalize"
)

func Example() {
	body := `{"service":"payment-api","level":"error","message":"failed to charge customer","timestamp":"2026-05-28T14:40:00+02:00","metadata":{"retry_count":2}}
{"ts":1779972001.25,"lvl":40,"msg":"slow","took_ms":812}
not JSON
`
	n := normalize.New(normalize.Limits{})
	var batch normalize.Batch
	if err := n.Body(&batch, []byte(body), time.Now()); err != nil {
		fmt.Println("nothing to store:", err)
		return
	}
	os.Stdout.Write(batch.Lines)
	for _, r := range batch.Rejected {
		fmt.Printf("event %d: %s: %s\n", r.Index, r.Reason, r.Detail)
	}
	// Output:
	// {"time":"2026-05-28T12:40:00.000000000Z","level":"ERROR","msg":"failed to charge customer","service":"payment-api","attrs":{"retry_count":2}}
	// {"time":"2026-05-28T12:40:01.250000000Z","level":"WARN","msg":"slow","attrs":{"took_ms":812}}
	// event 2: syntax: not valid JSON at line 3, column 2 (offset 207): invalid character 'o' in literal null (expecting 'u')
}
