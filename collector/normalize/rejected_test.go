package normalize

import (
	"strings"
	"testing"
	"time"
)

func BenchmarkRejected(b *testing.B) {
	for name, line := range map[string]string{
		"valid short": "{\"msg\":\"x\"}\n", "valid": `{"time":"2026-05-28T12:40:00Z","level":"info","msg":"request served","method":"GET","path":"/cart","status":200,"ms":12.5}` + "\n",
		"valid empty": "{}\n", "number": "1\n", "junk": "junk\n", "broken": `{"time":"2026-05-28T12:40:00Z","level":"info","msg":"request served","method":"GET","path":"/cart","status":200,"ms":12.5` + "\n",
		"long junk": strings.Repeat("junk ", 20) + "\n",
		"utf8":      `{"time":"2026-05-28T12:40:00Z","level":"info","msg":"request ` + "\xff" + ` served","method":"GET","path":"/cart","status":200,"ms":12.5}` + "\n",
	} {
		body := []byte(strings.Repeat(line, 60_000/len(line)))
		b.Run(name, func(b *testing.B) {
			n := New(Limits{})
			var batch Batch
			batch.KeepDeadLetters(1 << 20)
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				batch.Reset()
				n.Body(&batch, body, time.Unix(1e9, 0))
			}
		})
	}
}
