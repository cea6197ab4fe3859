package rollway

import (
	"bytes"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
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

// TestGuideKeysAndCuts does so for what the guide says of keys that come twice and
// of lines that are too long.
func TestGuideKeysAndCuts(t *testing.T) {
	doc, err := os.ReadFile("docs/LOGGER.md")
	if err != nil {
		t.Fatal(err)
	}
	block := func(calls ...[]slog.Attr) {
		t.Helper()
		var b bytes.Buffer
		l := mustNew(t, Options{MaxLine: 512, Outputs: []Output{{Writer: &b}}})
		l = l.With(slog.String("a", "logger"))
		for _, attrs := range calls {
			l.LogAt(t.Context(), aTime, 0, slog.LevelInfo, "m", attrs...)
		}
		if !bytes.Contains(doc, []byte("```\n"+b.String()+"```\n")) {
			t.Errorf("docs/LOGGER.md does not have\n%s", &b)
		}
	}
	block(
		[]slog.Attr{slog.String("a", "call 1"), slog.String("b", "x"), slog.String("a", "call 2")},
		[]slog.Attr{slog.Group("g", slog.Int("x", 1)), slog.Group("g", slog.Int("y", 2), slog.Int("x", 3))},
	)
	block([]slog.Attr{slog.Int("id", 7), slog.Any("ids", make([]int, 400)), slog.String("user", "u1"), slog.Any("m", map[string]string{"k": strings.Repeat("y", 600)})})
}
