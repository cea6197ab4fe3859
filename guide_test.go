package rollway

import (
	"bytes"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"testing"
	"time"
)

// TestGuide holds docs/LOGGER.md to what the formats print: each block of
// output there is that of the calls above it.
func TestGuide(t *testing.T) {
	doc, err := os.ReadFile("docs/LOGGER.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		enc  Encoder
	}{
		{`JSON{}`, JSON{}},
		{`JSON{Errors: ErrorDetail}`, JSON{Errors: ErrorDetail}},
		{`JSON{Layout: "time:@timestamp level:severity msg:message service error attrs:", Time: RFC3339Milli, Duration: Seconds}`,
			JSON{Layout: "time:@timestamp level:severity msg:message service error attrs:", Time: RFC3339Milli, Duration: Seconds}},
		{`Logfmt{}`, Logfmt{}},
		{`Logfmt{Layout: "level msg error attrs", Errors: ErrorDetail, Duration: Milliseconds}`,
			Logfmt{Layout: "level msg error attrs", Errors: ErrorDetail, Duration: Milliseconds}},
		{`Console{UTC: true}`, Console{UTC: true}},
		{`Console{UTC: true, Errors: ErrorDetail}`, Console{UTC: true, Errors: ErrorDetail}},
	} {
		var b bytes.Buffer
		l := mustNew(t, Options{Outputs: []Output{{Writer: &b, Encoder: c.enc}}, Caller: LevelOff})
		l = l.With(slog.String("service", "payment-api"))
		failed := fmt.Errorf("load rules: %w", &fs.PathError{Op: "open", Path: "rules.yaml", Err: fs.ErrNotExist})
		l.LogAt(t.Context(), aTime, 0, slog.LevelInfo, "charged", slog.String("customer", "cus 123"), slog.Duration("took", 1530*time.Microsecond), slog.Group("card", slog.String("kind", "visa"), slog.Bool("3ds", true)))
		l.Named("rules").LogAt(t.Context(), aTime, 0, slog.LevelWarn, "keeping the old rules", slog.Any("error", failed))
		block := "`" + c.name + "`\n```\n" + b.String() + "```\n"
		if !bytes.Contains(doc, []byte(block)) {
			t.Errorf("docs/LOGGER.md does not have\n%s", block)
		}
	}
}
