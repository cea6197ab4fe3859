package rollway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestMaxLine(t *testing.T) {
	const limit = 512
	huge := strings.Repeat("é\n\x00x", 5000)
	many := make([]slog.Attr, 500)
	for i := range many {
		many[i] = slog.String(itoa(i), "some value")
	}
	for name, log := range map[string]func(l *Logger){
		"message": func(l *Logger) { l.Info(context.Background(), huge, slog.Int("n", 7)) },
		"value":   func(l *Logger) { l.Info(context.Background(), "short", slog.String("v", huge), slog.Int("n", 7)) },
		"key":     func(l *Logger) { l.Info(context.Background(), "short", slog.String(huge, "v")) },
		"error":   func(l *Logger) { l.Info(context.Background(), "short", slog.Any("error", errors.New(huge))) },
		"any":     func(l *Logger) { l.Info(context.Background(), "short", slog.Any("a", map[string]string{"k": huge})) },
		"group":   func(l *Logger) { l.Info(context.Background(), "short", slog.Group("g", slog.String("v", huge))) },
		"wrapped": func(l *Logger) {
			l.Info(context.Background(), "short", slog.Any("e", fmt.Errorf("outer: %w", errors.New(huge))))
		},
		"With error": func(l *Logger) { l.With(slog.Any("error", errors.New(huge))).Info(context.Background(), "short") },
		"stack":      func(l *Logger) { l.Info(context.Background(), "short", slog.String("stack", huge)) },
		"raw": func(l *Logger) {
			l.Info(context.Background(), "short", slog.Any("r", json.RawMessage(`["`+strings.Repeat("x", 3000)+`"]`)))
		},
		"name":       func(l *Logger) { l.Named(huge).WithGroup(huge).Info(context.Background(), "short", slog.Int("n", 1)) },
		"many":       func(l *Logger) { l.Info(context.Background(), "short", many...) },
		"With":       func(l *Logger) { l.With(slog.String("v", huge)).Info(context.Background(), "short", slog.Int("n", 7)) },
		"With slot":  func(l *Logger) { l.With(slog.String("service", huge)).Info(context.Background(), "short") },
		"With group": func(l *Logger) { l.WithGroup("g").With(many...).Info(context.Background(), "short", slog.Int("n", 7)) },
		"context":    func(l *Logger) { l.Info(ContextWith(context.Background(), slog.String("v", huge)), "short") },
	} {
		for fname, enc := range map[string]Encoder{"json": JSON{}, "layout": JSON{Layout: "msg service:s attrs:"}, "logfmt": Logfmt{}, "console": Console{}, "top": JSON{Layout: "msg attrs:"},
			"logfmt, detail": Logfmt{Errors: ErrorDetail}, "console, detail": Console{Errors: ErrorDetail, Layout: "attrs level msg"}, "custom": Custom{new(shout)}} {
			var b bytes.Buffer
			l := mustNew(t, Options{Outputs: []Output{{Writer: &b, Encoder: enc}}, MaxLine: limit, Caller: LevelOff})
			log(l)
			got := b.String()
			if len(got) > limit || !strings.HasSuffix(got, "\n") || fname != "custom" && strings.Count(strings.ReplaceAll(got, "\n    ", ""), "\n") != 1 || !utf8.ValidString(got) {
				t.Errorf("%s, %s: %d bytes: %q", fname, name, len(got), got)
			}
			if !strings.Contains(got, cutKey) && fname != "custom" {
				t.Errorf("%s, %s: it does not say that it was cut: %q", fname, name, got)
			}
			if strings.HasPrefix(got, "{") && !json.Valid(b.Bytes()) {
				t.Errorf("%s, %s: not valid JSON: %s", fname, name, got)
			}
			if name != "message" && !strings.Contains(strings.ToLower(got), "short") {
				t.Errorf("%s, %s: a short message was lost: %s", fname, name, got)
			}
		}
	}
}

func TestMaxLineSaysTheLength(t *testing.T) {
	var b, whole bytes.Buffer
	cut := mustNew(t, Options{Outputs: []Output{{Writer: &b}}, MaxLine: 600})
	all := mustNew(t, Options{Outputs: []Output{{Writer: &whole}}})
	rng := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		value := strings.Repeat("a\"", rng.IntN(600))
		handleAt(cut, aTime, "m", slog.String("v", value))
		handleAt(all, aTime, "m", slog.String("v", value))
		var got struct {
			Attrs struct {
				Cut int `json:"cut_from_bytes"`
			}
		}
		if err := json.Unmarshal(b.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		switch {
		case whole.Len() <= 600 && b.String() != whole.String():
			t.Fatalf("a line of %d bytes was changed: %s", whole.Len(), b.String())
		case whole.Len() > 600 && got.Attrs.Cut != whole.Len():
			t.Fatalf("cut_from_bytes is %d, want %d", got.Attrs.Cut, whole.Len())
		}
		b.Reset()
		whole.Reset()
	}
}
